"""Reading a file of canonical JSON lines: whole, or not at all."""

from __future__ import annotations

from typing import TypeVar

from pydantic import ValidationError

from roundkit.core.errors import Refused
from roundkit.models.base import Record

Line = TypeVar("Line", bound=Record)


class LinesProblem(ValueError):
    """The bytes are not such a file: the message says which line and why."""


def read_lines(data: bytes, kind: type[Line], *, name: str) -> tuple[Line, ...]:
    """Read a file of canonical JSON lines; what is cut off or written another way is none.

    Raises:
        LinesProblem: a line has no end, is not canonical, or does not fit the model.
    """
    if data and not data.endswith(b"\n"):
        raise LinesProblem(f"{name} ends within a line")
    found = []
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        try:
            record = kind.from_bytes(line, place=name)
        except (Refused, ValidationError) as error:
            raise LinesProblem(f"{name} line {number} is no {kind.__name__}") from error
        if record.to_bytes() != line:
            raise LinesProblem(f"{name} line {number} is not canonical")
        found.append(record)
    return tuple(found)
