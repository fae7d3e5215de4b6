"""The verified reader of an exported wave campaign: the index first, then each file against it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from roundkit.core.canonical import digest_bytes
from roundkit.core.errors import Refusal
from roundkit.evidence import layout, wave_layout
from roundkit.evidence.folder import EvidenceFolder
from roundkit.evidence.indexed import RecordType, canonical_record, listing_problems, read_indexed
from roundkit.evidence.problem import EvidenceProblem, problem
from roundkit.models.evidence import IndexedFile, WaveIndex

_DEEPEST = 4
"""``waves/<tag>/shards/<index>``."""
_MOST_SEAL_BYTES = 1024


@dataclass(frozen=True)
class WaveEvidence:
    """An exported campaign. Nothing is returned that does not have the digest of the index.

    Attributes:
        path: The folder.
        index: What the folder holds.
        digest: SHA-256 of the index, the digest of the evidence.
    """

    path: Path
    index: WaveIndex
    digest: str

    @cached_property
    def names(self) -> frozenset[str]:
        """The path of every file but index and seal."""
        return frozenset(self._files)

    def read(self, name: str) -> bytes:
        """Return a file's bytes.

        Raises:
            EvidenceProblem: the index does not list it, or its bytes are others.
        """
        return read_indexed(EvidenceFolder(self.path), self._files, name)

    def record(self, name: str, kind: type[RecordType]) -> RecordType:
        """Return a record.

        Raises:
            EvidenceProblem: as :meth:`read`; ``malformed`` or ``not-canonical``.
        """
        return canonical_record(self.read(name), name, kind)

    def optional(self, name: str, kind: type[RecordType]) -> RecordType | None:
        """Return a record, None where there is no such file.

        Raises:
            EvidenceProblem: as :meth:`record`.
        """
        return self.record(name, kind) if name in self.names else None

    def lines(self, name: str, kind: type[RecordType]) -> Iterator[RecordType]:
        """Yield the records of a file of lines; a missing file has none.

        Raises:
            EvidenceProblem: as :meth:`record`, and where the last line is not whole.
        """
        if name not in self.names:
            return
        *lines, rest = self.read(name).split(b"\n")
        if rest:
            raise problem("malformed", f"the last line of {name} is not whole", where=name)
        for number, line in enumerate(lines, 1):
            yield canonical_record(line, f"{name}: line {number}", kind)

    def verify(self) -> None:
        """Check the bytes of every file.

        Raises:
            EvidenceProblem: with every file that does not agree.
        """
        refusals: list[Refusal] = []
        for name in sorted(self.names):
            try:
                self.read(name)
            except EvidenceProblem as found:
                refusals += found.refusals
        if refusals:
            raise EvidenceProblem(refusals)

    @cached_property
    def _files(self) -> dict[str, IndexedFile]:
        return {file.path: file for file in self.index.files}


def open_wave_evidence(path: Path) -> WaveEvidence:
    """Open an exported campaign; its names and sizes are held against its index.

    Raises:
        EvidenceProblem: ``no-evidence``: no index; a malformed one; or files missing, extra, linked or of
            another size.
    """
    folder = EvidenceFolder(path)
    if not os.path.lexists(path / wave_layout.INDEX):
        raise problem(
            "no-evidence",
            "these are no exported waves: `roundkit waves export` makes a folder that can be audited",
            where=wave_layout.INDEX,
        )
    data = folder.read(wave_layout.INDEX, limit=layout.MAX_INDEX_BYTES)
    digest = digest_bytes(data)
    if folder.read(wave_layout.SEAL, limit=_MOST_SEAL_BYTES) != wave_layout.seal_bytes(digest):
        said = f"{wave_layout.SEAL} does not name the digest of {wave_layout.INDEX}"
        raise problem("wrong-seal", said, where=wave_layout.SEAL)
    evidence = WaveEvidence(path, canonical_record(data, wave_layout.INDEX, WaveIndex), digest)
    there = folder.list_files(deepest=_DEEPEST)
    present = {name: there[name] for name in there if name not in {wave_layout.INDEX, wave_layout.SEAL}}
    refusals = [*_listed_twice(evidence.index), *listing_problems(evidence._files, present)]
    if refusals:
        raise EvidenceProblem(refusals)
    return evidence


def _listed_twice(index: WaveIndex) -> Iterator[Refusal]:
    names = [file.path for file in index.files]
    if names != sorted(set(names)):
        yield Refusal("bad-name", "the index lists a file twice, or out of order", wave_layout.INDEX)
