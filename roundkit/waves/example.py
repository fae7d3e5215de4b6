"""The example campaign that ships: small C functions, made on this machine by its own compiler."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from roundkit.core.errors import refuse
from roundkit.core.process import run
from roundkit.core.resources import shipped

_COMPILERS = ("cc", "gcc", "clang")


def make_example(folder: Path, targets: int) -> None:
    """Make the tree, the tools and the plan of the example.

    Args:
        folder: A folder that does not exist yet.
        targets: How many functions.

    Raises:
        Refused: ``no-compiler``, ``exists``.
        CommandFailed: something else went wrong.
    """
    if not any(map(shutil.which, _COMPILERS)):
        raise refuse(
            "no-compiler",
            f"this machine has no C compiler ({', '.join(_COMPILERS)}), and the example's gate is one",
            remedy="install one, e.g. Debian's gcc; your own campaign needs what its own commands need",
        )
    if folder.exists():
        raise refuse("exists", f"{folder} exists", place=str(folder), remedy="name a folder that does not")
    script = shipped("templates") / "waves-c" / "make_example.py"
    run([sys.executable, "-B", script, folder.resolve(), str(targets)])
