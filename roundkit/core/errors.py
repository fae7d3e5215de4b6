"""The one way in which roundkit tells a person that something was refused."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from dataclasses import dataclass

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
"""What the system says where a disk is full."""
MAKE_ROOM = "make room and run it again"
"""What to do then."""
_NOT_PERMITTED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


@dataclass(frozen=True)
class Refusal:
    """One reason for refusing: a stable code, where it is, what it is, and what would fix it.

    Attributes:
        code: Stable kebab-case identifier, e.g. ``scope-overlap``.
        message: One sentence in plain words that contains the offending value.
        place: File and key (``round.yaml: lanes[1].globs``), or a command-line option.
        remedy: What the reader can do about it.
    """

    code: str
    message: str
    place: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        """Render as ``[code] place: message (remedy)``."""
        place = f"{self.place}: " if self.place else ""
        remedy = f"\n    → {self.remedy}" if self.remedy else ""
        return f"[{self.code}] {place}{self.message}{remedy}"


class RoundkitError(Exception):
    """Base of every error that roundkit raises on purpose. Shown without a traceback."""

    exit_code = 1

    def _render_traceback_(self) -> list[str]:
        """Show a notebook's reader the sentence that a terminal's reader gets, and no traceback."""
        from roundkit.core.codes import told

        return [f"roundkit: {told(self)}"]


class Refused(RoundkitError):
    """The request was refused, with every problem found at once; what had been recorded stays as it was."""

    exit_code = 3

    def __init__(self, refusals: Iterable[Refusal] | Refusal) -> None:
        self.refusals = (refusals,) if isinstance(refusals, Refusal) else tuple(refusals)
        super().__init__("\n".join(str(refusal) for refusal in self.refusals))


def refuse(code: str, message: str, *, place: str = "", remedy: str = "") -> Refused:
    """Build a :class:`Refused` with one refusal, for ``raise refuse(...)``."""
    return Refused(Refusal(code=code, message=message, place=place, remedy=remedy))


def system_refusal(error: OSError) -> Refusal:
    """Say what the operating system refused in the form of every refusal: code, place, remedy."""
    place = "" if error.filename is None else str(error.filename)
    said = error.strerror or str(error)
    if error.errno in NO_SPACE:
        return Refusal("disk-full", said, place, MAKE_ROOM)
    if error.errno in _NOT_PERMITTED:
        remedy = "give this user the right to it, be the user who has it, or name another place"
        return Refusal("not-permitted", said, place, remedy)
    return Refusal(
        "host-error", f"the system refused: {said}", place, "look at that place, then run it again"
    )
