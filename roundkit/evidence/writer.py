"""The one writer of evidence: built beside its place, verified, then renamed into it."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from roundkit.core.canonical import digest_bytes
from roundkit.core.files import sync_folder
from roundkit.evidence import layout
from roundkit.evidence.events import EventLike, events_bytes
from roundkit.evidence.problem import problem
from roundkit.evidence.reader import RoundEvidence, open_evidence
from roundkit.models.evidence import EvidenceIndex, IndexedFile, SecretReveal
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.ledger import RoundLedger
from roundkit.models.round_plan import RoundPlan
from roundkit.models.run_spec import RunSpec

_CHUNK_BYTES = 1 << 20


def export_round(
    target: Path,
    *,
    plan_bytes: bytes,
    ledger: RoundLedger,
    run_spec: RunSpec,
    secret: SecretReveal,
    experiments: Iterable[ExperimentRecord],
    blobs: Mapping[str, Path],
    events: Iterable[EventLike | Mapping[str, Any]],
    previous: str | None,
    exported_utc: datetime,
    tool_version: str,
    duplicates: Iterable[ExperimentRecord] = (),
) -> str:
    """Write the evidence folder of a closed round; the same input gives the same bytes.

    The folder is built under a hidden name beside ``target``, synced, read back in full and renamed. A
    folder that a killed export left under that name is built anew. A target that already holds exactly
    this evidence is left as it is.

    Args:
        target: The folder to make; its parent is made when missing.
        plan_bytes: The frozen plan, exactly as it was frozen.
        ledger: The record of the round.
        run_spec: How every trial ran.
        secret: The coordinator's secret, revealed.
        experiments: Every recorded experiment, whatever its outcome.
        blobs: Digest of every submitted file (the target text of symlinks) to a file with its bytes.
        events: What happened, oldest first.
        previous: Digest of the previous round's index; None for a campaign's first.
        exported_utc: When it is exported; recorded by the caller, so that a resumed export repeats it.
        tool_version: The version of roundkit.
        duplicates: Records of experiments that had been given up; they count for nothing.

    Returns:
        The digest of the evidence: SHA-256 of ``index.json``.

    Raises:
        EvidenceProblem: the target holds other evidence (``evidence-differs``), the plan, ledger and run
            specification do not belong together, or a blob's bytes do not have its digest.
        OSError: the folder cannot be written.
    """
    records = {record.experiment_id: record for record in experiments}
    _check_belonging(plan_bytes, ledger, run_spec, secret)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    if partial.exists():
        shutil.rmtree(partial)
    partial.mkdir(mode=0o755)
    files = {
        layout.PLAN: plan_bytes,
        layout.LEDGER: ledger.to_bytes(),
        layout.RUN_SPEC: run_spec.to_bytes(),
        layout.SECRET: secret.to_bytes(),
        layout.EVENTS: events_bytes(events),
        **{layout.experiment_file(name): record.to_bytes() for name, record in records.items()},
        **{layout.duplicate_file(record.digest()): record.to_bytes() for record in duplicates},
    }
    rows = [_write(partial, name, data) for name, data in files.items()]
    rows += [_copy_blob(partial, digest, source) for digest, source in sorted(blobs.items())]
    index = EvidenceIndex(
        format="roundkit-evidence/1",
        kind="round",
        campaign_id=ledger.campaign_id,
        subject_id=ledger.round_id,
        exported_utc=exported_utc,
        tool_version=tool_version,
        previous=previous,
        files=tuple(sorted(rows, key=lambda row: row.path)),
    ).to_bytes()
    digest = digest_bytes(index)
    _write(partial, layout.INDEX, index)
    _write(partial, layout.SEAL, layout.seal_bytes(digest))
    for folder in (*(partial / name for name in layout.FOLDERS), partial):
        if folder.is_dir():
            sync_folder(folder)
    _verified(partial)
    _move_into_place(partial, target, digest)
    return digest


def _move_into_place(partial: Path, target: Path, digest: str) -> None:
    if target.is_dir() and any(target.iterdir()):
        standing = _verified(target)
        shutil.rmtree(partial)
        if standing.digest != digest:
            raise problem(
                "evidence-differs",
                f"{target.name} already holds evidence {standing.digest}, which is not what would be written",
                where=str(target),
                remedy="evidence is never rewritten: move the standing folder away if it is not this round's",
            )
        return
    partial.rename(target)
    sync_folder(target.parent)


def _verified(folder: Path) -> RoundEvidence:
    evidence = open_evidence(folder)
    evidence.verify()
    return evidence


def _check_belonging(plan_bytes: bytes, ledger: RoundLedger, run_spec: RunSpec, secret: SecretReveal) -> None:
    plan = RoundPlan.from_bytes(plan_bytes, place=layout.PLAN)
    digest = digest_bytes(plan_bytes)
    claims = {
        "plan: canonical bytes": digest_bytes(plan.to_bytes()),
        "ledger: round_digest": ledger.round_digest,
        "run specification: round_digest": run_spec.round_digest,
    }
    for what, claimed in claims.items():
        if claimed != digest:
            raise problem(
                "digest-mismatch", f"{what} is {claimed}, the plan's digest is {digest}", where=layout.PLAN
            )
    if digest_bytes(bytes.fromhex(secret.secret_hex)) != plan.secret_sha256:
        raise problem(
            "digest-mismatch", "the secret is not the one whose digest the plan holds", where=layout.SECRET
        )


def _write(root: Path, name: str, data: bytes) -> IndexedFile:
    path = root / name
    path.parent.mkdir(mode=0o755, exist_ok=True)
    with _created(path) as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    return IndexedFile(path=name, size=len(data), sha256=digest_bytes(data))


def _copy_blob(root: Path, digest: str, source: Path) -> IndexedFile:
    name = layout.blob_file(digest)
    path = root / name
    path.parent.mkdir(mode=0o755, exist_ok=True)
    hashed, size = hashlib.sha256(), 0
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as reading, _created(path) as writing:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise problem("not-a-file", "a stored blob is not a regular file", where=digest)
        while piece := reading.read(_CHUNK_BYTES):
            hashed.update(piece)
            size += len(piece)
            writing.write(piece)
        writing.flush()
        os.fsync(writing.fileno())
    if hashed.hexdigest() != digest:
        raise problem("digest-mismatch", f"a stored blob has the digest {hashed.hexdigest()}", where=digest)
    return IndexedFile(path=name, size=size, sha256=digest)


def _created(path: Path) -> Any:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    return os.fdopen(descriptor, "wb")
