"""prefilter.py INPUT OUTPUT TREE: does a draft name the symbols that the original refers to?

No compiler runs: words are cheap to compare, and bare code does not show a wrong symbol.
"""

import json
import re
import sys
from pathlib import Path

from elf import read_functions

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
WORD = re.compile(r"[A-Za-z_]\w*")


def main() -> None:
    """Answer for every draft."""
    request = json.loads(Path(sys.argv[1]).read_text())
    tree = Path(sys.argv[3])
    known = {word for word in WORD.findall((tree / "include/unit.h").read_text()) if word.startswith("ext_")}
    objects: dict = {}
    results = []
    for draft in request["drafts"]:
        group = draft["group"]
        if group not in objects:
            objects[group] = read_functions(tree / f"ref/{group}.o")
        text = COMMENT.sub(" ", (Path(request["folder"]) / draft["path"]).read_text(errors="replace"))
        status, reason = judged(draft["name"], text, objects[group], known)
        identity = {key: draft[key] for key in ("group", "name", "sha256")}
        results.append({**identity, "status": status, "reason": reason})
    Path(sys.argv[2]).write_text(json.dumps({"results": results}))


def judged(name: str, text: str, functions: dict, known: set[str]) -> tuple[str, str]:
    """Return the status of one draft, and why."""
    words = set(WORD.findall(text))
    if name not in words or name not in functions:
        return "nothing-to-check", f"it does not define {name}"
    wanted, named = functions[name].symbols(), words & known
    if wanted == named:
        return "agree", ""
    return "mismatch", f"it names {', '.join(sorted(named)) or 'nothing'}, not {', '.join(sorted(wanted))}"


if __name__ == "__main__":
    main()
