"""What every record has in common: frozen, closed to unknown keys, finite numbers, canonical bytes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

import rfc8785
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainSerializer, StringConstraints

from roundkit.core.canonical import canonical_bytes, digest_bytes, parse_json
from roundkit.core.clock import format_utc
from roundkit.core.errors import refuse


def _to_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("a time needs a timezone, e.g. 2026-01-31T12:00:00Z")
    return moment.astimezone(UTC)


UtcTime = Annotated[datetime, AfterValidator(_to_utc), PlainSerializer(format_utc, when_used="json")]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
CommitId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
IDENTIFIER_LENGTH = 64
"""Characters that an identifier may have: it becomes a file name and a part of a branch."""

Identifier = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=IDENTIFIER_LENGTH)
]
Argv = Annotated[tuple[Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")], ...], Field(min_length=1)]
"""A program and its arguments; no program can be started with a NUL in one."""
Glob = Annotated[str, StringConstraints(min_length=1)]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
PositiveSeconds = Annotated[float, Field(gt=0.0, le=1e9)]
"""Seconds, up to some 30 years: a moment that lies so far ahead can still be written as a date."""
Count = Annotated[int, Field(ge=0, le=2**53 - 1)]
"""A number from 0 on that canonical JSON holds exactly (RFC 8785 counts in doubles)."""
PositiveCount = Annotated[int, Field(ge=1, le=2**53 - 1)]
"""The same from 1 on."""
Provenance = Literal["scripted", "stub", "replay", "person", "model"]


def is_missing(value: object) -> bool:
    """Say that a field is left out of canonical bytes, so that older records keep their digest."""
    return value is None


class Record(BaseModel):
    """Base of every model that crosses a door or reaches a disk."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True)

    def to_json_value(self) -> dict[str, Any]:
        """Return the record as plain JSON values."""
        value: dict[str, Any] = self.model_dump(mode="json", by_alias=True)
        return value

    def to_bytes(self) -> bytes:
        """Return the record's canonical JSON bytes (RFC 8785)."""
        return canonical_bytes(self.to_json_value())

    def digest(self) -> str:
        """Return the SHA-256 of the canonical bytes."""
        return digest_bytes(self.to_bytes())

    @classmethod
    def from_bytes(cls, data: bytes, *, place: str) -> Self:
        """Read a record from strict JSON.

        Raises:
            Refused: the bytes are not strict JSON, or hold an integer that no record holds (``malformed``).
            pydantic.ValidationError: they do not fit the model.
        """
        parse_json(data, place=place, writable=True)
        return cls.model_validate_json(data, strict=True)


def check_writable(record: Record, what: str) -> None:
    """Check that a record of somebody's own words has canonical bytes.

    Raises:
        Refused: ``wrong-value``: it holds an integer or a text that canonical JSON does not have.
    """
    try:
        record.to_bytes()
    except (rfc8785.CanonicalizationError, UnicodeError) as error:
        raise refuse(
            "wrong-value",
            f"{what} cannot be written as canonical JSON: {error}",
            remedy="use integers below 2^53 and texts that are valid UTF-8, file names included",
        ) from error
