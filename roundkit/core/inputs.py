"""Files that somebody names: read whole, or refused with what to do."""

from __future__ import annotations

from pathlib import Path

from roundkit.core.errors import refuse

_REMEDY = "name a file that is there and may be read"


def read_input(path: Path, *, place: str | None = None, remedy: str = _REMEDY) -> bytes:
    """Return the bytes of a file that somebody named.

    Args:
        path: The file.
        place: The option that names it; the file itself if none.
        remedy: What would help.

    Raises:
        Refused: ``missing-file``: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise refuse(
            "missing-file", f"cannot read {path}: {error.strerror}", place=place or str(path), remedy=remedy
        ) from error
