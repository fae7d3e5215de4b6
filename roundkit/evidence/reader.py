"""The verified reader: the index first, then each file against it at the moment it is read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from roundkit.core.canonical import digest_bytes
from roundkit.core.errors import Refusal, Refused
from roundkit.evidence import layout
from roundkit.evidence.events import Event, parse_events
from roundkit.evidence.folder import EvidenceFolder
from roundkit.evidence.indexed import listing_problems, read_indexed
from roundkit.evidence.problem import EvidenceProblem, problem
from roundkit.models.base import Record
from roundkit.models.evidence import EvidenceIndex, IndexedFile, SecretReveal
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.ledger import RoundLedger
from roundkit.models.round_plan import RoundPlan
from roundkit.models.run_spec import RunSpec

RecordType = TypeVar("RecordType", bound=Record)


@dataclass(frozen=True)
class RoundEvidence:
    """The evidence of one round. Nothing is returned that does not have the digest of the index.

    Attributes:
        path: The folder.
        index: What the folder must hold.
        digest: SHA-256 of ``index.json``, the digest of the evidence.
    """

    path: Path
    index: EvidenceIndex
    digest: str

    @cached_property
    def _files(self) -> dict[str, IndexedFile]:
        return {file.path: file for file in self.index.files}

    @property
    def _folder(self) -> EvidenceFolder:
        return EvidenceFolder(self.path)

    def read(self, name: str) -> bytes:
        """Return the bytes of one indexed file.

        Raises:
            EvidenceProblem: the index does not list it, or its bytes are others.
        """
        return read_indexed(self._folder, self._files, name)

    def verify(self) -> None:
        """Check the bytes of every file, not only of those that were read.

        Raises:
            EvidenceProblem: with every file that does not agree.
        """
        refusals: list[Refusal] = []
        for entry in self.index.files:
            try:
                if self._folder.digest(entry.path, size=entry.size) != entry.sha256:
                    refusals.append(
                        Refusal(
                            "wrong-digest",
                            f"the bytes of {entry.path} are not those of the index",
                            entry.path,
                        )
                    )
            except EvidenceProblem as found:
                refusals.extend(found.refusals)
        if refusals:
            raise EvidenceProblem(refusals)

    @cached_property
    def plan_bytes(self) -> bytes:
        """The exact bytes that were frozen."""
        return self.read(layout.PLAN)

    @property
    def round_digest(self) -> str:
        """SHA-256 of the frozen bytes."""
        return digest_bytes(self.plan_bytes)

    @cached_property
    def plan(self) -> RoundPlan:
        """The frozen plan."""
        return _record(RoundPlan, self.plan_bytes, layout.PLAN)

    @cached_property
    def ledger(self) -> RoundLedger:
        """The record of the round."""
        return self._load(RoundLedger, layout.LEDGER)

    @cached_property
    def run_spec(self) -> RunSpec:
        """How every trial ran."""
        return self._load(RunSpec, layout.RUN_SPEC)

    @cached_property
    def secret(self) -> bytes:
        """The coordinator's secret."""
        return bytes.fromhex(self._load(SecretReveal, layout.SECRET).secret_hex)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """What happened, in order."""
        return parse_events(self.read(layout.EVENTS), place=layout.EVENTS)

    @cached_property
    def experiment_ids(self) -> tuple[str, ...]:
        """The id of every recorded experiment, sorted."""
        prefix, suffix = f"{layout.EXPERIMENTS}/", ".json"
        return tuple(
            name[len(prefix) : -len(suffix)] for name in sorted(self._files) if name.startswith(prefix)
        )

    @cached_property
    def blob_digests(self) -> frozenset[str]:
        """The digest of every submitted file whose bytes are here."""
        prefix = f"{layout.BLOBS}/"
        return frozenset(name[len(prefix) :] for name in self._files if name.startswith(prefix))

    def experiment(self, experiment_id: str) -> ExperimentRecord:
        """Return one experiment's record.

        Raises:
            EvidenceProblem: there is none of that id, or the file holds another.
        """
        name = layout.experiment_file(experiment_id)
        record = self._load(ExperimentRecord, name)
        if record.experiment_id != experiment_id:
            raise problem("malformed", f"{name} records {record.experiment_id}", where=name)
        return record

    def experiments(self) -> Iterator[ExperimentRecord]:
        """Yield every experiment's record, in order of ids."""
        return (self.experiment(experiment_id) for experiment_id in self.experiment_ids)

    @cached_property
    def duplicates(self) -> dict[str, ExperimentRecord]:
        """The records that came in late, by their digest; nothing rests on them."""
        prefix, suffix = f"{layout.DUPLICATES}/", ".json"
        digests = [
            name[len(prefix) : -len(suffix)] for name in sorted(self._files) if name.startswith(prefix)
        ]
        return {digest: self._load(ExperimentRecord, layout.duplicate_file(digest)) for digest in digests}

    def blob(self, digest: str) -> bytes:
        """Return the bytes of a submitted file.

        Raises:
            EvidenceProblem: they are not here.
        """
        return self.read(layout.blob_file(digest))

    def _load(self, model: type[RecordType], name: str) -> RecordType:
        return _record(model, self.read(name), name)


def open_evidence(path: Path) -> RoundEvidence:
    """Open the evidence folder of a round.

    The index is read and checked, and the folder's names and sizes are held against it. Bytes are checked
    when they are read; :meth:`RoundEvidence.verify` checks all of them at once.

    Raises:
        EvidenceProblem: no evidence, a malformed index, files missing, extra, linked or of another size.
    """
    folder = EvidenceFolder(path)
    if not path.is_dir():
        raise problem(
            "no-evidence",
            f"{path} is not a folder",
            where=str(path),
            remedy="name the folder that holds index.json",
        )
    if not any(os.path.lexists(path / name) for name in (layout.INDEX, layout.SEAL, layout.LEDGER)):
        raise problem(
            "no-evidence",
            f"it holds no evidence of a round: there is no {layout.INDEX}",
            where=str(path),
            remedy="name the folder that `roundkit close` printed; it lies beside campaign.yaml",
        )
    data = folder.read(layout.INDEX, limit=layout.MAX_INDEX_BYTES)
    digest = digest_bytes(data)
    if folder.read(layout.SEAL, limit=1024) != layout.seal_bytes(digest):
        raise problem(
            "wrong-seal", f"{layout.SEAL} does not name the digest of {layout.INDEX}", where=layout.SEAL
        )
    index = _record(EvidenceIndex, data, layout.INDEX)
    _check_names(index)
    _check_listing(index, folder.list_files())
    return RoundEvidence(path=path, index=index, digest=digest)


def find_evidence(root: Path) -> list[Path]:
    """Return every evidence folder at or below a folder, sorted, without following links or opening any."""
    found: list[Path] = []
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        if any(entry.name == layout.INDEX and _is_regular(entry) for entry in entries):
            found.append(folder)
            continue
        waiting.extend(
            folder / entry.name
            for entry in entries
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
        )
    return sorted(found)


def _is_regular(entry: os.DirEntry[str]) -> bool:
    return stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode)


def _record(model: type[RecordType], data: bytes, name: str) -> RecordType:
    try:
        record = model.from_bytes(data, place=name)
        written = record.to_bytes()  # it may hold a figure that canonical JSON does not have
    except Refused as error:
        raise EvidenceProblem(error.refusals) from error
    except ValueError as error:
        raise problem("malformed", f"{name} does not fit its format: {error}", where=name) from error
    if written != data:
        raise problem("not-canonical", f"{name} is not canonical JSON", where=name)
    return record


def _check_names(index: EvidenceIndex) -> None:
    paths = [file.path for file in index.files]
    if paths != sorted(set(paths)):
        raise problem(
            "malformed", "the files of the index are not sorted, or one is named twice", where=layout.INDEX
        )
    for file in index.files:
        if not layout.is_known_name(file.path):
            raise problem("bad-name", f"the format has no file {file.path!r}", where=layout.INDEX)
        duplicate = file.path.startswith(f"{layout.DUPLICATES}/")
        if duplicate and file.path != layout.duplicate_file(file.sha256):
            raise problem("bad-name", f"{file.path} has the digest {file.sha256}", where=layout.INDEX)
        if file.path.startswith(f"{layout.BLOBS}/") and file.path != layout.blob_file(file.sha256):
            raise problem("bad-name", f"{file.path} has the digest {file.sha256}", where=layout.INDEX)
    if missing := [name for name in layout.REQUIRED if name not in paths]:
        raise problem("missing-file", f"the index lists no {', '.join(missing)}", where=layout.INDEX)


def _check_listing(index: EvidenceIndex, found: dict[str, int]) -> None:
    present = {name: size for name, size in found.items() if name not in layout.UNINDEXED}
    refusals = list(listing_problems({file.path: file for file in index.files}, present))
    if refusals:
        raise EvidenceProblem(refusals)
