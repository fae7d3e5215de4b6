"""From the store of a closed round to its evidence folder."""

from __future__ import annotations

from pathlib import Path

import roundkit
from roundkit.core.canonical import digest_file
from roundkit.core.errors import refuse
from roundkit.evidence.writer import export_round
from roundkit.models.evidence import SecretReveal
from roundkit.models.ledger import RoundLedger
from roundkit.models.round_plan import RoundPlan
from roundkit.rounds.layout import evidence_folder
from roundkit.rounds.requests import Bench
from roundkit.store import RoundStore


def export_evidence(bench: Bench, store: RoundStore, ledger: RoundLedger) -> str:
    """Write and verify the evidence of a round; return the digest of its index.

    Raises:
        Refused: the folder holds other evidence already (``evidence-exists``).
    """
    target = evidence_folder(bench.plan)
    done = store.steps.get("evidence")
    if done is not None and (target / "index.json").is_file():
        return done.decode()
    blobs = {
        entry.sha256: bench.folder.blobs / entry.sha256
        for ticket in ledger.tickets
        for entry in ticket.manifest.entries
        if entry.sha256 is not None and (bench.folder.blobs / entry.sha256).is_file()
    }
    if target.exists() and store.steps.get("evidence-started") is None:
        raise refuse(
            "evidence-exists",
            f"{target} exists already",
            place=str(target),
            remedy="move it away, or give the round another id",
        )
    if store.steps.get("evidence-started") is None:
        with store.transaction():
            store.steps.put("evidence-started", b"1")
    digest = export_round(
        target,
        plan_bytes=bench.folder.plan_file.read_bytes(),
        ledger=ledger,
        run_spec=bench.spec,
        secret=SecretReveal(format="roundkit-secret/1", secret_hex=bench.secret.hex()),
        experiments=store.experiments.records(),
        blobs=blobs,
        events=[
            {"time": event.time, "kind": event.kind, "fields": event.fields} for event in store.events.all()
        ],
        previous=previous_digest(bench.plan),
        exported_utc=ledger.closed_utc,
        tool_version=roundkit.__version__,
        duplicates=store.experiments.duplicates(),
    )
    with store.transaction():
        store.steps.put("evidence", digest.encode())
    return digest


def previous_digest(plan: RoundPlan) -> str | None:
    """Return the index digest of the campaign's previous round, or None for its first."""
    last = plan.campaign.search_state.last_round_ledger
    if last is None:
        return None
    index = (Path(plan.campaign_path).parent / last).parent / "index.json"
    if not index.is_file():
        raise refuse(
            "previous-evidence-missing",
            f"the previous round's evidence index {index} is missing",
            place="campaign.yaml: search_state.last_round_ledger",
            remedy="restore the evidence folder, so that the chain of rounds stays whole",
        )
    return digest_file(index)
