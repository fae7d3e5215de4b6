"""Turns knob files into latency_ms: a fixed model, and a little noise that the seed decides.

Each stage costs its milliseconds times (1 - value of its knob). Stages in one `shared` group stand behind one
bottleneck: the largest value counts for all of them.
"""

import hashlib
import json
import os
import random


def load(path):
    with open(path, encoding="utf-8") as stream:
        return json.load(stream)


def latency_ms(model, values):
    grouped = {name for group in model["shared"] for name in group}
    total = model["base_ms"]
    total += sum(ms * (1.0 - values[name]) for name, ms in model["stages"].items() if name not in grouped)
    for group in model["shared"]:
        best = max(values[name] for name in group)
        total += sum(model["stages"][name] for name in group) * (1.0 - best)
    return total


def main():
    model = load("bench/model.json")
    values = {name: float(load(f"knobs/{name}.json")["value"]) for name in model["stages"]}
    level = latency_ms(model, values)
    content = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
    readings = []
    for repetition in range(int(os.environ["ROUNDKIT_REPETITIONS"])):
        source = random.Random(f"{os.environ['ROUNDKIT_SEED']}/{content}/{repetition}")
        readings.append(level * (1.0 + model["noise"] * source.gauss(0.0, 1.0)))
    with open(os.environ["ROUNDKIT_RESULT_PATH"], "w", encoding="utf-8") as stream:
        json.dump({"metrics": {"latency_ms": readings}}, stream)


main()
