"""Where somebody wants files: looked at before the work that they are for, which may take hours."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from roundkit.core.errors import Refused, refuse


def check_outputs(files: Mapping[str, Path | None]) -> None:
    """Refuse places that nothing could be written to, before anything is measured for them.

    Args:
        files: The file of each option; ``--from`` is read and not written.

    Raises:
        Refused: ``output-folder``: it takes no file there, or ``same-file``: two options name one file.
    """
    taken: dict[Path, str] = {}
    for option, path in files.items():
        if path is None:
            continue
        if option != "--from":
            _check_folder(path, option)
        other = taken.setdefault(path.resolve(), option)
        if other != option:
            raise refuse(
                "same-file", f"{path} is the file of {other} too", place=option, remedy="name another file"
            )


def _check_folder(path: Path, place: str) -> None:
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir():
        what = "is a folder" if path.is_dir() else "lies in a folder that does not exist"
        raise _no_place(f"{path} {what}", place)
    try:
        # Rights alone do not tell: a file system may be read-only, full, or none that takes files.
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"\0")
    except OSError as error:
        raise _no_place(f"{folder} takes no file: {error.strerror}", place) from error


def _no_place(message: str, place: str) -> Refused:
    return refuse("output-folder", message, place=place, remedy="name a file in an existing folder")
