"""What an index binds: nothing else lies there, and nothing is returned that has not its size and digest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from roundkit.core.canonical import digest_bytes
from roundkit.core.errors import Refusal, Refused
from roundkit.evidence import layout
from roundkit.evidence.folder import EvidenceFolder
from roundkit.evidence.problem import problem
from roundkit.models.base import Record
from roundkit.models.evidence import IndexedFile

RecordType = TypeVar("RecordType", bound=Record)


def read_indexed(folder: EvidenceFolder, files: Mapping[str, IndexedFile], name: str) -> bytes:
    """Return the bytes of one indexed file.

    Args:
        folder: Where it lies.
        files: What the index says of each.
        name: Which one.

    Raises:
        EvidenceProblem: the index does not list it, or its bytes are others.
    """
    entry = files.get(name)
    if entry is None:
        raise problem("missing-file", f"the index lists no {name}", where=name)
    if entry.size > layout.MAX_RECORD_BYTES:
        raise problem("too-large", f"{name} has {entry.size} bytes", where=name)
    data = folder.read(name, limit=layout.MAX_RECORD_BYTES)
    if len(data) != entry.size:
        raise problem("wrong-size", f"{name} has {len(data)} bytes, the index says {entry.size}", where=name)
    if digest_bytes(data) != entry.sha256:
        raise problem("wrong-digest", f"the bytes of {name} are not those of the index", where=name)
    return data


def listing_problems(files: Mapping[str, IndexedFile], present: Mapping[str, int]) -> Iterator[Refusal]:
    """Yield what is missing, too much or of another size.

    Args:
        files: What the index says of each.
        present: Sizes of what lies there, but for the index itself.
    """
    for name in sorted(files.keys() - present):
        yield Refusal("missing-file", f"{name} is missing", name)
    for name in sorted(present.keys() - files):
        yield Refusal("extra-file", f"{name!a} is not in the index", name)
    for name in sorted(files.keys() & present):
        if files[name].size != present[name]:
            said = f"{name} has {present[name]} bytes, the index says {files[name].size}"
            yield Refusal("wrong-size", said, name)


def canonical_record(data: bytes, where: str, kind: type[RecordType]) -> RecordType:
    """Return the record that some bytes are.

    Raises:
        EvidenceProblem: ``malformed`` or ``not-canonical``.
    """
    try:
        record = kind.from_bytes(data, place=where)
        written = record.to_bytes()  # it may hold a figure that canonical JSON does not have
    except (Refused, ValueError) as error:
        raise problem("malformed", f"{where} is no {kind.__name__}", where=where) from error
    if written != data:
        raise problem("not-canonical", f"{where} is not canonical JSON", where=where)
    return record
