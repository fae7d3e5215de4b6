"""draw.py INPUT OUTPUT TREE: every target of the band, beginning somewhere else in each wave.

A target that no agent can draft would else come back in every wave and keep the others out.
"""

import json
import sys
from pathlib import Path

request = json.loads(Path(sys.argv[1]).read_text())
rows = json.loads((Path(sys.argv[3]) / "targets.json").read_text())
under = request["under"] or float("inf")
inside = [row for row in rows if request["at_least"] <= row["size"] < under]
first = (int(request["tag"]) - 1) * request["targets"] % max(1, len(inside))
Path(sys.argv[2]).write_text(json.dumps({"targets": inside[first:] + inside[:first]}))
