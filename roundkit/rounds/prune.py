"""Prune: once the evidence of a closed round stands elsewhere, its directory shrinks to what points there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from roundkit.core.canonical import digest_file
from roundkit.core.clock import now_utc
from roundkit.core.errors import refuse
from roundkit.core.files import atomic_write
from roundkit.evidence import EvidenceProblem, open_evidence
from roundkit.measure.trees import remove_tree
from roundkit.models.evidence import EvidencePointer
from roundkit.rounds.layout import RoundFolder, evidence_folder, read_plan
from roundkit.rounds.locks import hold_lock
from roundkit.store import open_store

Audit = Callable[[Path, str], Sequence[str]]
"""Takes an evidence folder and the digest expected of it; returns what is wrong with it."""


def prune(folder: RoundFolder, *, audit: Audit) -> EvidencePointer:
    """Leave plan, ledger and a pointer to the evidence of a closed round, and remove the rest.

    The pointer is written before anything is removed. Killed after that, prune goes on where it was when it
    is run again.

    Args:
        folder: The round.
        audit: Recomputes the evidence.

    Returns:
        The pointer that the directory keeps.

    Raises:
        Refused: ``not-closed``, ``evidence-missing``, ``evidence-differs``, ``serve-running``,
            ``close-running``, or the plan was changed. Nothing was removed.
        OSError: something cannot be removed; run again, prune goes on.
    """
    with ExitStack() as locks:
        if folder.store.is_dir():
            locks.enter_context(hold_lock(folder.serve_lock, code="serve-running", what="serve"))
            locks.enter_context(hold_lock(folder.close_lock, code="close-running", what="close"))
        begun = folder.pointer_file.exists()
        pointer = _begun_before(folder) if begun else _point_to_evidence(folder)
        _check_evidence(folder, pointer, audit)
        if not begun:
            _keep(folder, pointer)
        folder.launch_file.unlink(missing_ok=True)
        # The store last: whoever looks meanwhile finds its locks.
        for part in (folder.lanes, folder.homes, folder.checkouts, folder.trials, folder.store):
            remove_tree(part)
        _remove_link(folder.root / "lanes")
    return pointer


def _remove_link(link: Path) -> None:
    """Remove what led to clones that lay elsewhere."""
    if link.is_symlink():
        link.unlink()


def _begun_before(folder: RoundFolder) -> EvidencePointer:
    data = folder.pointer_file.read_bytes()
    try:
        return EvidencePointer.from_bytes(data, place=str(folder.pointer_file))
    except ValueError as error:
        raise refuse(
            "malformed",
            f"no pointer to evidence: {error}",
            place=str(folder.pointer_file),
            remedy="remove the file, if roundkit did not write it",
        ) from error


def _point_to_evidence(folder: RoundFolder) -> EvidencePointer:
    plan = read_plan(folder)
    digest = None
    if folder.database.exists():
        with open_store(folder.database, read_only=True) as store:
            digest = store.steps.get("evidence") if store.steps.get("advanced") is not None else None
    if digest is None:
        raise refuse(
            "not-closed",
            f"round {plan.round_id} is not closed",
            place=str(folder.root),
            remedy="run `roundkit close ROUND_DIR` to its end first",
        )
    return EvidencePointer(
        format="roundkit-evidence-pointer/1",
        campaign_id=plan.campaign.campaign_id,
        round_id=plan.round_id,
        round_digest=plan.digest(),
        evidence=str(evidence_folder(plan)),
        index_sha256=digest.decode(),
        pruned_utc=now_utc(),
    )


def _check_evidence(folder: RoundFolder, pointer: EvidencePointer, audit: Audit) -> None:
    place = Path(pointer.evidence)
    if not (place / "index.json").is_file():
        raise refuse(
            "evidence-missing",
            f"there is no evidence at {place}",
            place=str(place),
            remedy="put the exported folder back; this directory is the only other copy of the round",
        )
    problems = [*audit(place, pointer.index_sha256)]
    if not problems:
        plans = {pointer.round_digest, digest_file(folder.plan_file), _round_digest(place)}
        problems = [] if len(plans) == 1 else ["it is the evidence of another plan"]
    if problems:
        raise refuse(
            "evidence-differs",
            f"the evidence is not what was exported: {'; '.join(problems)}",
            place=str(place),
            remedy="restore the exported folder; `roundkit audit` shows every check",
        )


def _round_digest(evidence: Path) -> str | None:
    try:
        return open_evidence(evidence).round_digest
    except EvidenceProblem:
        return None


def _keep(folder: RoundFolder, pointer: EvidencePointer) -> None:
    """Write the ledger, and then the pointer, which says that everything else may go."""
    ledger = open_evidence(Path(pointer.evidence)).ledger
    atomic_write(folder.ledger_file, ledger.to_bytes())
    atomic_write(folder.pointer_file, pointer.to_bytes())
