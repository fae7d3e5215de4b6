"""gate.py INPUT OUTPUT TREE STAGING: compile the unit with its drafts and compare it byte for byte.

The unit is what the tree has banked of it and the drafts. Where it does not compile as a whole, each draft is
tried alone, and those that are right are compiled together once more: what is banked was built as one.
"""

import json
import sys
from pathlib import Path

from compiling import compile_unit
from elf import Function, read_functions


def main() -> None:
    """Answer for one group."""
    request = json.loads(Path(sys.argv[1]).read_text())
    tree, staging = Path(sys.argv[3]), Path(sys.argv[4])
    group = request["group"]
    names = [target["name"] for target in request["targets"]]
    unit = Unit(tree, staging, group, names)
    rejected = unit.wrong(names)
    if rejected is None:
        print(f"{group}: as a whole it does not compile; every draft alone", flush=True)
        rejected = {}
        for name in names:
            alone = unit.wrong([name])
            rejected |= {name: unit.said} if alone is None else alone
        left = [name for name in names if name not in rejected]
        together = unit.wrong(left)
        rejected |= dict.fromkeys(left, unit.said) if together is None else together
    banked = [name for name in names if name not in rejected]
    print(f"{group}: {len(banked)} of {len(names)} are byte for byte the original", flush=True)
    Path(sys.argv[2]).write_text(json.dumps({"banked": banked, "rejected": rejected}))


class Unit:
    """One translation unit: its reference object, what is banked of it, and what is staged."""

    def __init__(self, tree: Path, staging: Path, group: str, asked: list[str]) -> None:
        self.header = tree / "include/unit.h"
        self.reference = read_functions(tree / f"ref/{group}.o")
        self.staged = {path.stem: path for path in (staging / "src" / group).glob("*.c")}
        banked = {path.stem: path for path in (tree / "src" / group).glob("*.c")}
        # What an earlier call of this wave found right is staged as well, and no longer asked about.
        settled = {name: path for name, path in self.staged.items() if name not in asked}
        self.standing = {**banked, **settled}
        self.object = staging / "unit.o"
        self.said = ""

    def wrong(self, names: list[str]) -> dict[str, str] | None:
        """Return which of some drafts are wrong, beside what is banked; None where they do not compile."""
        sources = {**self.standing, **{name: self.staged[name] for name in names}}
        said = compile_unit(self.header, [sources[name] for name in sorted(sources)], self.object)
        if said:
            self.said = f"it does not compile: {said.splitlines()[0]}"
            return None
        made = read_functions(self.object)
        return {name: reason for name in names if (reason := differs(made.get(name), self.reference[name]))}


def differs(made: Function | None, wanted: Function) -> str:
    """Say how a function differs from the original, nothing where it does not."""
    if made is None:
        return "it does not define the function"
    if made.code != wanted.code:
        same = sum(a == b for a, b in zip(made.code, wanted.code, strict=False))
        return f"{same} of {len(wanted.code)} bytes are the same, {len(made.code)} were made"
    return "" if made.refers == wanted.refers else "it refers to other symbols"


if __name__ == "__main__":
    main()
