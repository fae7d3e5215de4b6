"""harvest.py INPUT OUTPUT: which shapes were banked, so that later agents know what already worked."""

import json
import sys
from collections import Counter
from pathlib import Path

request = json.loads(Path(sys.argv[1]).read_text())
shapes = Counter(target["family"] for target in request["targets"])
lines = [f"- {shape}: {count} banked" for shape, count in sorted(shapes.items())]
Path(sys.argv[2]).write_text(
    json.dumps({"lessons": f"# Wave {request['tag']}\n\n" + "\n".join(lines) + "\n"})
)
