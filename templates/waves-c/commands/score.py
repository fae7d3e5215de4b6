"""score.py INPUT OUTPUT TREE STAGING: by how many bytes does each attempt differ from the original?"""

import json
import sys
from pathlib import Path

from compiling import compile_unit
from elf import read_functions

NOT_COMPILED = 1_000_000.0

request = json.loads(Path(sys.argv[1]).read_text())
tree, staging = Path(sys.argv[3]), Path(sys.argv[4])
scores = {}
for draft in request["drafts"]:
    wanted = read_functions(tree / f"ref/{draft['group']}.o")[draft["name"]]
    source, made = Path(request["folder"]) / draft["path"], staging / "attempt.o"
    if compile_unit(tree / "include/unit.h", [source], made):
        scores[draft["sha256"]] = NOT_COMPILED
        continue
    function = read_functions(made).get(draft["name"])
    code = b"" if function is None else function.code
    differing = sum(a != b for a, b in zip(code, wanted.code, strict=False))
    scores[draft["sha256"]] = float(differing + abs(len(code) - len(wanted.code)))
Path(sys.argv[2]).write_text(json.dumps({"scores": scores}))
