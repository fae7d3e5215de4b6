"""Advancing the campaign: a chain of commits in its repository, and the owner's plan updated in place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from roundkit.core.clock import format_utc
from roundkit.core.files import atomic_write
from roundkit.core.git import Repository, identity_environment
from roundkit.core.yamlfile import dump_yaml, load_yaml
from roundkit.models.ledger import CompositionStep, LaneRecord, RoundLedger
from roundkit.models.round_plan import RoundPlan
from roundkit.rounds.candidate import COMMITTER, COMMITTER_EMAIL
from roundkit.rounds.export import evidence_name
from roundkit.rounds.requests import Bench
from roundkit.rules.outcome import ending_of, entry_reason
from roundkit.store import RoundStore


def advance_campaign(bench: Bench, store: RoundStore, ledger: RoundLedger, index_digest: str) -> str | None:
    """Write the commit chain and update ``campaign.yaml``; return the new incumbent, or None.

    Both are repeatable: the same ledger gives the same commits, and a plan that has this round's rows
    already is left alone.
    """
    head = _write_chain(bench, ledger, index_digest) if ledger.advanced else None
    update_campaign_file(bench.plan, ledger, head)
    if store.steps.get("advanced") is None:
        with store.transaction():
            store.steps.put("advanced", (head or "").encode())
    return head


def _write_chain(bench: Bench, ledger: RoundLedger, index_digest: str) -> str:
    plan = bench.plan
    campaign = Repository(Path(plan.repository))
    campaign.git("fetch", "--quiet", "--no-tags", bench.folder.repository, ledger.head)
    parent = plan.incumbent
    for step in _accepted_steps(ledger):
        lane = plan.lane(step.lane)
        message = (
            f"{lane.id}: {' '.join(lane.hypothesis.split())}\n\n"
            f"Roundkit-Round: {plan.round_id}\nRoundkit-Ticket: {step.ticket}\nRoundkit-Lane: {lane.id}\n"
            f"Roundkit-Plane: {lane.plane}\nRoundkit-Evidence: {evidence_name(plan)}\n"
            f"Roundkit-Evidence-Index: {index_digest}\n"
        )
        identity = identity_environment(COMMITTER, COMMITTER_EMAIL, format_utc(ledger.closed_utc))
        arguments = ("commit-tree", str(step.tree), "-p", parent, "-F", "-")
        parent = campaign.git(*arguments, env=identity, stdin=message.encode()).text
    campaign.git("update-ref", f"refs/heads/roundkit/{plan.round_id}", parent)
    return parent


def _accepted_steps(ledger: RoundLedger) -> list[CompositionStep]:
    accepted = ending_of(ledger.rerun).lanes
    return [step for step in ledger.composition if step.kept and step.lane in accepted]


def update_campaign_file(plan: RoundPlan, ledger: RoundLedger, head: str | None) -> None:
    """Write the round's results into ``campaign.yaml``, keeping its comments and order."""
    path = Path(plan.campaign_path)
    before = path.read_bytes()
    content = load_yaml(before, place=path.name)
    ledger_path = f"{evidence_name(plan)}/round-ledger.json"
    if content["search_state"].get("last_round_ledger") == ledger_path or _has_rows(content, plan.round_id):
        return
    for record in ledger.lanes:
        _update_entry(content, plan, ledger, record, head, ledger_path)
    state = content["search_state"]
    if state["incumbent_revision"] == plan.incumbent:
        state["last_round_ledger"] = ledger_path
        if head is not None:
            state["incumbent_revision"] = head
            state["incumbent_evidence"] = ledger_path
            state["next_candidate_parent"] = head
    atomic_write(path, dump_yaml(content), mode=path.stat().st_mode & 0o777)


def _has_rows(content: Any, round_id: str) -> bool:
    return any(row.get("round") == round_id for row in content.get("search_plan_revisions") or [])


def _update_entry(
    content: Any, plan: RoundPlan, ledger: RoundLedger, record: LaneRecord, head: str | None, evidence: str
) -> None:
    if record.outcome == "no-result":
        return
    entry = next(entry for entry in content["search_plan"] if entry["id"] == record.entry)
    row = CommentedMap(
        time=format_utc(ledger.closed_utc),
        round=plan.round_id,
        entry=record.entry,
    )
    row["from"], row["to"] = str(entry["status"]), record.entry_status
    row["reason"], row["evidence"] = entry_reason(record, plan.round_id), evidence
    if record.outcome == "skipped":
        row["changed_condition"] = f"incumbent {head or plan.incumbent}"
    _append(content, "search_plan_revisions", row)
    entry["status"] = record.entry_status
    if record.outcome == "no-passing-ticket":
        negative = CommentedMap(
            entry=record.entry,
            round=plan.round_id,
            conditions=f"incumbent {plan.incumbent}",
            reason=record.sentence,
            evidence=evidence,
        )
        _append(content, "negative_memory", negative)


def _append(content: Any, key: str, row: CommentedMap) -> None:
    rows = content.get(key)
    if not rows:
        # An empty `[]` is in flow style; rows read better one below the other.
        rows = CommentedSeq()
        content[key] = rows
    rows.append(row)
