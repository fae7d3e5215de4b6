"""Canonical JSON (RFC 8785), strict reading of JSON, and the one digest: SHA-256 in lower-case hex."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import rfc8785

from roundkit.core.errors import refuse

_CHUNK_BYTES = 1 << 20
_SHOWN_CHARACTERS = 80

LARGEST_INTEGER = 2**53 - 1
"""The largest integer that canonical JSON holds, and every JSON reader reads as it was written."""


def canonical_bytes(value: Any) -> bytes:
    """Return the RFC 8785 bytes of a JSON value.

    Raises:
        rfc8785.CanonicalizationError: the value holds NaN, an infinity, an integer beyond 2^53 or a
            type that JSON does not have.
    """
    return rfc8785.dumps(value)


def digest_bytes(data: bytes) -> str:
    """Return the SHA-256 of some bytes as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def digest_json(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON of a value."""
    return digest_bytes(canonical_bytes(value))


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, read in pieces.

    Raises:
        OSError: the file cannot be read.
    """
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(_CHUNK_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def parse_json(
    data: bytes,
    *,
    place: str,
    code: str = "malformed",
    constants: bool = False,
    writable: bool = False,
) -> Any:
    """Parse JSON strictly: UTF-8, no duplicate keys, no NaN or infinities.

    Args:
        data: The bytes to parse.
        place: What to call them in an error.
        code: The refusal's code.
        writable: Refuse integers that :func:`canonical_bytes` could not write again.
        constants: Take ``NaN`` and the infinities as well, which Python's ``json`` writes.

    Raises:
        Refused: the bytes are not strict JSON.
    """
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique_keys,
            parse_constant=float if constants else _no_constant,
            parse_int=_writable_integer if writable else int,
        )
    except (ValueError, RecursionError) as error:
        raise refuse(code, f"not strict JSON: {error}", place=place) from error


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"duplicate key {key[:_SHOWN_CHARACTERS]!r}")
        result[key] = value
    return result


def _writable_integer(digits: str) -> int:
    value = int(digits)
    if abs(value) > LARGEST_INTEGER:
        raise ValueError(f"{digits[:_SHOWN_CHARACTERS]} is beyond 2^53; write it as a text")
    return value


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
