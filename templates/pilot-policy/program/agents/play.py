"""Plays the agent of one lane by the script in plays.json: waits, writes, submits, reads the verdict.

A play is looked up by run and lane (`S2` and `L3`), else by lane alone. What differs between runs stands in
for agents that do not do the same twice.
"""

import json
import pathlib
import subprocess
import sys
import time

LANE = sys.argv[1]
WRAPPER = ".roundkit/round"
PATIENCE_S = "50"


def wrapper(*words):
    done = subprocess.run([sys.executable, WRAPPER, *words], capture_output=True, text=True)
    print(done.stdout.strip() or done.stderr.strip(), flush=True)
    return json.loads(done.stdout)


def plays():
    here = json.loads(pathlib.Path(".roundkit/lane.json").read_text(encoding="utf-8"))
    run = here["round_id"].partition("-")[0]
    script = json.loads(pathlib.Path("agents/plays.json").read_text(encoding="utf-8"))
    return script.get(run, {}).get(LANE, script["every run"][LANE])


def main():
    for step in plays():
        time.sleep(step["work_s"])
        if "value" not in step:
            continue
        knob = {name: step[name] for name in ("value", "mode") if name in step}
        pathlib.Path(f"knobs/{LANE}.json").write_text(json.dumps(knob) + "\n", encoding="utf-8")
        ticket = wrapper("submit")["ticket"]
        while wrapper("status", ticket, "--wait", PATIENCE_S)["state"] not in {"measured", "rejected"}:
            pass


main()
