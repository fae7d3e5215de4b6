"""Reading a trial's files for eligibility: each counts only whole, canonical, and as its record binds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

from pydantic import ValidationError

from roundkit.core.canonical import digest_bytes
from roundkit.core.errors import Refused
from roundkit.models.base import Record
from roundkit.models.pilot_evidence import TrialFiles
from roundkit.models.pilot_trial import ArchivedFile, TrialRecord

ReasonCode = Literal[
    "missing",
    "linked",
    "malformed",
    "truncated",
    "substituted",
    "disagrees",
    "out-of-order",
    "stated",
    "clock",
    "not-blinded",
    "overlapping",
]
"""Why an item is not there: the file is not, or is a link; cannot be read as what it is to be; was cut off;
is not the file that was bound; does not agree with other evidence; lies in the wrong order; was only stated
by a person; has a clock that says nothing; the reviewer did not attest to have been blinded; or reviewed
something else at the same time."""

_OF_PROBLEM: dict[str, ReasonCode] = {
    "missing-file": "missing",
    "not-a-file": "linked",
    "hard-linked": "linked",
    "too-large": "malformed",
}
RecordType = TypeVar("RecordType", bound=Record)
RECORD_NAME = "record.json"


class Ineligible(Exception):
    """An item is not there; caught where items are decided."""

    def __init__(self, code: ReasonCode, detail: str) -> None:
        self.code = code
        self.detail = detail
        super().__init__(f"{code}: {detail}")


@dataclass(frozen=True)
class Bound:
    """A trial's files with the record that binds them.

    Attributes:
        files: What was read.
        record: The trial's record.
    """

    files: TrialFiles
    record: TrialRecord

    def entry(self, name: str) -> ArchivedFile | None:
        """Return what the record says of a file; null where it says nothing."""
        return next((entry for entry in self.record.files if entry.path == name), None)

    def data(self, name: str) -> bytes:
        """Return the bytes of a file that the record binds.

        Raises:
            Ineligible: it is not there, is not the one of the record, or was cut off while it was archived.
        """
        data, entry = raw(self.files, name), self.entry(name)
        if entry is None:
            raise Ineligible("substituted", f"the record binds no {name}")
        if len(data) != entry.size or digest_bytes(data) != entry.sha256:
            raise Ineligible("substituted", f"{name} is not the file that the record binds")
        if name in self.record.truncated:
            raise Ineligible("truncated", f"{name} was cut off while it was archived")
        return data

    def read(self, name: str, kind: type[RecordType]) -> RecordType:
        """Return a record that the trial's record binds.

        Raises:
            Ineligible: as :meth:`data`, or it is malformed.
        """
        return parsed(self.data(name), name, kind)


def bind(files: TrialFiles) -> Bound:
    """Return a trial's files with their record.

    Raises:
        Ineligible: there is no record, or it is malformed.
    """
    return Bound(files, parsed(raw(files, RECORD_NAME), RECORD_NAME, TrialRecord))


def raw(files: TrialFiles, name: str) -> bytes:
    """Return a file's bytes, whoever wrote them.

    Raises:
        Ineligible: there are none.
    """
    found = files.get(name)
    if found.data is None:
        code = _OF_PROBLEM.get(found.problem or "", "malformed")
        words = {"missing": "is not there", "linked": "is a link or no regular file"}
        raise Ineligible(code, f"{name} {words.get(code, f'cannot be read ({found.problem})')}")
    return found.data


def parsed(data: bytes, name: str, kind: type[RecordType]) -> RecordType:
    """Return what canonical bytes say.

    Raises:
        Ineligible: they are not canonical JSON of that kind.
    """
    try:
        record = kind.from_bytes(data, place=name)
        canonical = record.to_bytes() == data
    except (Refused, ValidationError) as error:
        raise Ineligible("malformed", f"{name} is no {kind.__name__}, or is cut off") from error
    if not canonical:
        raise Ineligible("malformed", f"{name} is not canonical JSON")
    return record
