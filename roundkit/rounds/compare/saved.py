"""Comparisons as files: where one may be written, and reading one back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from roundkit.core.errors import refuse
from roundkit.models.comparison import Comparison


def check_outputs(files: Mapping[str, Path | None]) -> None:
    """Refuse places that nothing could be written to, before anything is measured for them.

    Args:
        files: The file of each option; ``--from`` is read and not written.

    Raises:
        Refused: ``output-folder``, or ``same-file``: two options name one file.
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
    if path.is_dir() or not path.absolute().parent.is_dir():
        what = "is a folder" if path.is_dir() else "lies in a folder that does not exist"
        raise refuse(
            "output-folder", f"{path} {what}", place=place, remedy="name a file in an existing folder"
        )


def read_comparison(path: Path) -> Comparison:
    """Read what ``roundkit measure --json`` wrote.

    Raises:
        Refused: ``missing-file``, ``malformed`` or ``not-a-comparison``.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise refuse("missing-file", f"cannot read {path}: {error.strerror}", place="--from") from error
    try:
        return Comparison.from_bytes(data, place=str(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise refuse(
            "not-a-comparison",
            f"{path} is no comparison: {where}: {first['msg']}",
            place="--from",
            remedy="give a file that `roundkit measure --json` wrote",
        ) from error
