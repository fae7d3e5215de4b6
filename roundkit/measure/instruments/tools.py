"""The tools themselves: where they are, and which version."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

from roundkit.core.process import CommandFailed, run

_PLACES = "/usr/local/bin:/usr/bin:/bin"
"""Where tools are looked up; the same folders are seen inside every boundary."""

_TIMEOUT_S = 30.0


def find_tool(name: str) -> Path | None:
    """Return the path of a tool, None where this machine lacks it."""
    found = shutil.which(name, path=_PLACES)
    return None if found is None else Path(found)


@cache
def tool_version(path: Path) -> str:
    """Return what ``--version`` prints, in one line; the path where it prints nothing."""
    try:
        done = run([path, "--version"], timeout_s=_TIMEOUT_S, env={"PATH": _PLACES, "LC_ALL": "C"})
    except (CommandFailed, OSError):
        return path.name
    return done.text.partition("\n")[0].strip() or path.name
