"""make_example.py DIR [TARGETS]: make the example campaign: a git tree of C functions, and its commands.

The functions come from a few dozen shapes, always the same ones. Their originals are compiled by this
machine's compiler; what an agent gets is the assembly, and the gate compares bytes with the object.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "commands"))

from compiling import FLAGS, compile_unit, compiler  # noqa: E402
from shapes import SHAPES  # noqa: E402

A_UNIT = 10
HELPERS = [f"ext_{number:02d}" for number in range(12)]
PLAYS = (
    "right", "right", "wrong-symbol", "right", "right", "wrong-body", "right", "slow", "right", "truncated",
    "right", "right", "right", "wrong-body", "right", "silent", "right", "right", "right", "crashing",
)  # fmt: skip
"""What the scripted agents do with one target after the other."""


def main() -> None:
    """Make the folder."""
    folder = Path(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    if compiler() is None:
        raise SystemExit("there is no C compiler (cc, gcc or clang): install one, e.g. Debian's gcc")
    folder.mkdir(parents=True, exist_ok=True)
    tree, tools = folder / "tree", folder / "tools"
    for name in ("asm", "include", "ref", "src"):
        (tree / name).mkdir(parents=True)
    rows = [target(number) for number in range(count)]
    (tree / "targets.json").write_text(json.dumps(rows, indent=1) + "\n")
    externs = "".join(f"extern int {name}(int);\n" for name in HELPERS)
    (tree / "include/unit.h").write_text(externs)
    units = sorted({row["group"] for row in rows})
    (tree / "src/index.txt").write_text("".join(f"{unit}\n" for unit in units))
    for unit in units:
        make_unit(tree, unit, [row for row in rows if row["group"] == unit], folder)
    for name in ("commands", "agents"):
        shutil.copytree(HERE / name, tools / name, ignore=shutil.ignore_patterns("__pycache__"))
    plan = (HERE / "wave-plan.yaml").read_text()
    (folder / "wave-plan.yaml").write_text(plan.replace("targets: 40", f"targets: {max(1, count // 5)}"))
    commit(tree)
    print(f"{count} functions in {len(units)} units at {folder}")


def target(number: int) -> dict:
    """Return one target with what the scripted agents know of it."""
    shape = list(SHAPES)[number % len(SHAPES)]
    unit, name = f"unit_{number // A_UNIT:02d}", f"{shape}_{number:03d}"
    symbol, constant = HELPERS[number * 5 % len(HELPERS)], 1003 + 17 * number
    other = HELPERS[(number * 5 + 1) % len(HELPERS)]
    source = SHAPES[shape].replace("NAME", name).replace("SYMBOL", symbol).replace("K", str(constant))
    data = {
        "source": source, "plays": PLAYS[number % len(PLAYS)], "symbol": symbol, "other_symbol": other,
        "body": str(constant), "other_body": str(constant + 1), "seconds": 2.0,
    }  # fmt: skip
    return {
        "group": unit, "name": name, "size": len(source), "family": shape, "input": f"asm/{unit}/{name}.s",
        "output": f"src/{unit}/{name}.c", "data": data,
    }  # fmt: skip


def make_unit(tree: Path, unit: str, rows: list[dict], folder: Path) -> None:
    """Compile a unit's originals, and keep the object and each function's assembly, but not the source."""
    originals = folder / "originals" / unit
    originals.mkdir(parents=True)
    sources = []
    for row in rows:
        sources.append(originals / f"{row['name']}.c")
        sources[-1].write_text(row["data"]["source"])
    said = compile_unit(tree / "include/unit.h", sources, tree / f"ref/{unit}.o")
    if said:
        raise SystemExit(f"the originals of {unit} do not compile: {said}")
    whole = "".join(f'#include "{path.resolve()}"\n' for path in (tree / "include/unit.h", *sources))
    done = subprocess.run(
        [compiler(), "-S", *(flag for flag in FLAGS if flag != "-c"), "-o", "-", "-"],
        input=whole, capture_output=True, text=True, check=True,
    )  # fmt: skip
    (tree / "asm" / unit).mkdir()
    for row in rows:
        found = re.search(rf"^{row['name']}:.*?^\s*\.size", done.stdout, re.MULTILINE | re.DOTALL)
        text = found.group(0) if found else done.stdout
        (tree / row["input"]).write_text(text + "\n")


def commit(tree: Path) -> None:
    """Make a repository of the tree."""
    who = {"GIT_AUTHOR_NAME": "example", "GIT_AUTHOR_EMAIL": "example@localhost"}
    who |= {name.replace("AUTHOR", "COMMITTER"): value for name, value in who.items()}
    git = ["git", "-C", str(tree), "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false"]
    for words in (["init", "-q", "--initial-branch=main"], ["add", "-A"], ["commit", "-qm", "The tree"]):
        subprocess.run([*git, *words], check=True, env={**os.environ, **who})


if __name__ == "__main__":
    main()
