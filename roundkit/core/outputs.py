"""Where somebody wants files: looked at before the work that they are for, which may take hours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from roundkit.core.errors import Refused, refuse
from roundkit.core.files import takes_no_file


def check_outputs(files: Mapping[str, Path | None], *, folders_made: bool = False) -> None:
    """Refuse places that nothing could be written to, before anything is measured for them.

    Args:
        files: The file of each option; ``--from`` is read and not written.
        folders_made: Whether folders that are missing above a file will be made.

    Raises:
        Refused: ``output-folder``: it takes no file there, or ``same-file``: two options name one file.
    """
    taken: dict[Path, str] = {}
    for option, path in files.items():
        if path is None:
            continue
        if option != "--from":
            _check_file(path, option, folders_made=folders_made)
        other = taken.setdefault(path.resolve(), option)
        if other != option:
            raise refuse(
                "same-file", f"{path} is the file of {other} too", place=option, remedy="name another file"
            )


def check_new_folder(folder: Path, place: str) -> None:
    """Refuse a folder that could not be made, or not be written to, before the work that it is for.

    Args:
        folder: It may exist; so may only some of the folders above it.
        place: The option that names it.

    Raises:
        Refused: ``output-folder``.
    """
    above = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
    if not above.is_dir():
        raise refuse("output-folder", f"{above} is a file", place=place, remedy="name another folder")
    _check_takes_files(above, place)


def _check_file(path: Path, place: str, *, folders_made: bool) -> None:
    folder = path.absolute().parent
    if folders_made and not path.is_dir():
        check_new_folder(folder, place)
        return
    if path.is_dir() or not folder.is_dir():
        what = "is a folder" if path.is_dir() else "lies in a folder that does not exist"
        raise _no_place(f"{path} {what}", place)
    _check_takes_files(folder, place)


def _check_takes_files(folder: Path, place: str) -> None:
    if (why := takes_no_file(folder, 1)) is not None:
        remedy = "name a place that this user may write to, and that has room"
        raise _no_place(f"{folder} takes no file: {why.strerror}", place, remedy) from why


def _no_place(message: str, place: str, remedy: str = "name a file in an existing folder") -> Refused:
    return refuse("output-folder", message, place=place, remedy=remedy)
