"""Where a pilot's notebook finds the pilot that its parameter names."""

from __future__ import annotations

from pathlib import Path

from roundkit.core.errors import refuse
from roundkit.core.resources import near


def pilot_folder(path: str | Path, *, holds: tuple[str, ...]) -> Path:
    """Return a pilot's folder by a path that is absolute, or relative to this folder or one above it.

    Args:
        path: The path.
        holds: The files of which it has one, by which its reader knows it.

    Raises:
        Refused: ``no-pilot``.
    """
    found = near(path)
    names = " or ".join(holds)
    if found is None or not any((found / name).exists() for name in holds):
        name = Path(path).name
        raise refuse(
            "no-pilot",
            f"there is no folder {name!r}"
            if found is None
            else f"{name} holds no pilot: there is no {names}",
            place="pilot",
            remedy=f"give the folder that `roundkit pilot prepare` made, which holds {names}",
        )
    return found
