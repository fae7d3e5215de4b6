"""Build step: fails where a knob file says "broken"."""

import pathlib
import sys

for knob in sorted(pathlib.Path("knobs").glob("*.json")):
    if "broken" in knob.read_text(encoding="utf-8"):
        sys.exit(f"{knob} is broken")
