"""The synthetic program: each lane owns a knob file; a protected benchmark turns knobs into a latency."""

from __future__ import annotations

BENCH = '''\
"""Turns knob files into metrics.latency_ms: a fixed model, and a little noise that the seed decides.

Each stage costs its milliseconds times (1 - value of its knob). Stages in one `shared` group stand behind one
bottleneck: the largest value counts for all of them. A `reinforcing` row [a, b, share] saves that share of
both stages once more, times both values. A knob's `mode` may break the program.
"""

import hashlib
import json
import os
import random
import sys
import time

sys.path.insert(0, os.getcwd())

from knobkit import load_knobs

MODEL = json.load(open("bench/model.json"))


def latency_ms(knobs):
    values = {name: float(knob.get("value", 0.0)) for name, knob in knobs.items()}
    total = MODEL["base_ms"]
    grouped = {name for group in MODEL["shared"] for name in group}
    for name, cost in MODEL["stages"].items():
        if name not in grouped:
            total += cost * (1.0 - values.get(name, 0.0))
    for group in MODEL["shared"]:
        best = max(values.get(name, 0.0) for name in group)
        total += sum(MODEL["stages"][name] for name in group) * (1.0 - best)
    for first, second, share in MODEL["reinforcing"]:
        both = MODEL["stages"][first] + MODEL["stages"][second]
        total -= share * both * values.get(first, 0.0) * values.get(second, 0.0)
    return total


def main():
    knobs = load_knobs()
    modes = {knob.get("mode") for knob in knobs.values()}
    if "crash" in modes:
        os._exit(3)
    if "hang" in modes:
        time.sleep(600)
    level = latency_ms(knobs)
    content = hashlib.sha256(json.dumps(knobs, sort_keys=True).encode()).hexdigest()
    readings = []
    for repetition in range(int(os.environ["ROUNDKIT_REPETITIONS"])):
        source = random.Random("%s/%s/%d" % (os.environ["ROUNDKIT_SEED"], content, repetition))
        readings.append(level * (1.0 + MODEL["noise"] * source.gauss(0.0, 1.0)))
    if "nan" in modes:
        readings = [float("nan")] * len(readings)
    answer = {"answer": -1 if "wrong" in modes else 42}
    with open(os.path.join(os.environ["ROUNDKIT_OUTPUT_DIR"], "answer.json"), "w") as stream:
        json.dump(answer, stream)
    metrics = {} if "missing" in modes else {"latency_ms": readings}
    with open(os.environ["ROUNDKIT_RESULT_PATH"], "w") as stream:
        json.dump({"metrics": metrics}, stream)


main()
'''

VALIDATE = '''\
"""Exits 1 unless the benchmark's answer is the right one."""

import json
import os
import sys

with open(os.path.join(os.environ["ROUNDKIT_OUTPUT_DIR"], "answer.json")) as stream:
    answer = json.load(stream)["answer"]
if answer != 42:
    sys.exit("the answer is %r, not 42" % answer)
'''

BUILD = '''\
"""Build step: fails where a knob file says "broken", else leaves a small output."""

import os
import sys

for name in sorted(os.listdir("knobs")):
    with open(os.path.join("knobs", name)) as stream:
        if "broken" in stream.read():
            sys.exit("knobs/%s is broken" % name)
os.makedirs("build", exist_ok=True)
with open("build/stamp.txt", "w") as stream:
    stream.write("built")
'''

SMOKE = '''\
"""Smoke test: the knobs can be read; fails where a knob's mode is "smoke"."""

import os
import sys

sys.path.insert(0, os.getcwd())

from knobkit import load_knobs

if any(knob.get("mode") == "smoke" for knob in load_knobs().values()):
    sys.exit("there is smoke")
'''

PACKAGE = '''\
"""The program's package: reads the knobs."""

import json
import os


def load_knobs(folder="knobs"):
    """Return every knob by its lane."""
    knobs = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".json"):
            with open(os.path.join(folder, name)) as stream:
                knobs[name[: -len(".json")]] = json.load(stream)
    return knobs
'''

FILES = {
    "bench/bench.py": BENCH,
    "bench/validate.py": VALIDATE,
    "build.py": BUILD,
    "smoke.py": SMOKE,
    "knobkit/__init__.py": PACKAGE,
    "README.md": "A program of knobs.\n",
    ".gitignore": "build/\n__pycache__/\n*.log\n",
}

CAMPAIGN = """\
# The owner's words: make the knobs fast.
format: roundkit-campaign/1
campaign_id: knobs
repository:
  path: .
  branch: main
metric: {name: latency_ms, unit: ms, direction: lower}
benchmark:
  argv: ["{python}", "-I", "-S", "bench/bench.py"]  # one process
  timeout_s: 20
  instrument: reported
validator: {argv: ["{python}", "-I", "-S", "bench/validate.py"], timeout_s: 20}
build: {argv: ["{python}", "-I", "-S", "build.py"], timeout_s: 20}
smoke: {argv: ["{python}", "-I", "-S", "smoke.py"], timeout_s: 20}
target_package: knobkit
protected_paths:
  - bench/**  # what judges is nobody's to change
runtime: {python: PYTHON}
environment: {PYTHONDONTWRITEBYTECODE: "1"}
limits:
  output_bytes: 65536
  output_kill_bytes: 4194304
  file_bytes: 67108864
  disk_bytes: 67108864
  disk_files: 10000
  open_files: 256
  tmp_bytes: 16777216
intake: {max_files: 200, max_file_bytes: 1048576, max_total_bytes: 4194304}
test_plan:
  ab_ba_pairs: 6
  repetitions: 2
  min_gain: 0.01
  loss_margin: 0.01
  sigma_min: 2.0
  order_margin: 0.02
  remeasure_limit: 2
  noise: {sigma: 0.002, instrument: reported, machine: any, date: "2026-01-01", trial_s: 0.05}
  drift: {allowance: 0.5, limit: 5.0, single_limit: 8.0}
search_plan: []
search_plan_revisions: []  # grows downwards
negative_memory: []
budget: {lanes_per_round: 8}
search_state:
  incumbent_revision: INCUMBENT  # moved by close
"""

ROUND = """\
# One round over the knobs.
format: roundkit-round/1
round_id: r01
device_sets: []
cpu_pinning: false
aa_interval: 4
composition: {fallback: best-single, fresh_standalone: false}
deadline_utc: DEADLINE
lane_environment: none
lanes: []
"""
