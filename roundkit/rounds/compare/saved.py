"""Comparisons as files: reading one back."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from roundkit.core.errors import refuse
from roundkit.core.inputs import read_input
from roundkit.models.comparison import Comparison


def read_comparison(path: Path) -> Comparison:
    """Read what ``roundkit measure --json`` wrote.

    Raises:
        Refused: ``missing-file``, ``malformed`` or ``not-a-comparison``.
    """
    data = read_input(path, place="--from", remedy="name a file that `roundkit measure --json` wrote")
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
