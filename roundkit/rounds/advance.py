"""Advancing the campaign: a chain of commits in its repository, and the owner's plan updated in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from roundkit.core.clock import format_utc
from roundkit.core.errors import refuse
from roundkit.core.files import atomic_write
from roundkit.core.git import Repository, identity_environment
from roundkit.core.yamlfile import dump_yaml, read_yaml
from roundkit.models.ledger import CompositionStep, LaneRecord, RoundLedger
from roundkit.models.round_plan import RoundPlan
from roundkit.rounds.candidate import COMMITTER, COMMITTER_EMAIL
from roundkit.rounds.layout import evidence_name
from roundkit.rounds.requests import Bench
from roundkit.rules.outcome import ending_of, entry_reason
from roundkit.store import RoundStore


def advance_campaign(
    bench: Bench, store: RoundStore, ledger: RoundLedger, index_digest: str, report: Callable[[str], None]
) -> str | None:
    """Write the commit chain and update ``campaign.yaml``; return the new incumbent, or None.

    Both are repeatable until they are noted as done: the same ledger gives the same commits, and a plan that
    has this round's rows already is left alone. From then on they are their owner's, who may have gone on.

    Raises:
        Refused: as for :func:`check_campaign_file`; close again once the file is mended.
    """
    done = store.steps.get("advanced")
    if done is not None:
        return done.decode() or None
    head = _write_chain(bench, ledger, index_digest) if ledger.advanced else None
    moved = update_campaign_file(bench.plan, ledger, head)
    if head is not None and not moved:
        report(
            f"{bench.plan.campaign_path}: search_state names another incumbent than the round started from"
            f" and stays as it is; the round's own result is {head}"
        )
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


def check_campaign_file(plan: RoundPlan) -> None:
    """Make sure, before anything is decided, that the owner's plan can take the round's results.

    Raises:
        Refused: ``missing-file``, ``malformed-yaml``, ``campaign-file``.
    """
    _read_campaign_file(plan)


def update_campaign_file(plan: RoundPlan, ledger: RoundLedger, head: str | None) -> bool:
    """Write the round's results into ``campaign.yaml``, keeping its comments and order.

    Returns:
        Whether ``search_state`` is this round's: it moves only where it still names I0 as the incumbent.

    Raises:
        Refused: as for :func:`check_campaign_file`; nothing was written.
    """
    path = Path(plan.campaign_path)
    content = _read_campaign_file(plan)
    state = content["search_state"]
    ledger_path = f"{evidence_name(plan)}/round-ledger.json"
    if state.get("last_round_ledger") == ledger_path:
        return True
    if _has_rows(content, plan.round_id):
        return False
    for record in ledger.lanes:
        _update_entry(content, plan, ledger, record, head, ledger_path)
    moves = bool(state["incumbent_revision"] == plan.incumbent)
    if moves:
        state["last_round_ledger"] = ledger_path
        if head is not None:
            state["incumbent_revision"] = head
            state["incumbent_evidence"] = ledger_path
            state["next_candidate_parent"] = head
    atomic_write(path, dump_yaml(content), mode=path.stat().st_mode & 0o777)
    return moves


def _read_campaign_file(plan: RoundPlan) -> Any:
    """Return the owner's plan as it is now; they may have edited it since the round was frozen."""
    path = Path(plan.campaign_path)
    _, content = read_yaml(path)
    missing = list(_missing_places(plan, content))
    if missing:
        raise refuse(
            "campaign-file",
            f"the round's results have no place: {', '.join(missing)}",
            place=str(path),
            remedy="put back what the round started from, and close again",
        )
    return content


def _missing_places(plan: RoundPlan, content: Any) -> Iterator[str]:
    if not isinstance(content, dict):
        yield "the file holds no keys"
        return
    state = content.get("search_state")
    if not isinstance(state, dict) or "incumbent_revision" not in state:
        yield "no search_state.incumbent_revision"
    for key in ("search_plan_revisions", "negative_memory", "search_plan"):
        listed = content.get(key) or []
        if not isinstance(listed, list):
            yield f"{key} is no list"
        elif not all(isinstance(row, dict) for row in listed):
            yield f"{key} has a row without keys"
    entries = content.get("search_plan")
    rows = [row for row in entries if isinstance(row, dict)] if isinstance(entries, list) else []
    known = {str(row.get("id")) for row in rows if "status" in row}
    for lane in plan.lanes:
        if lane.entry not in known:
            yield f"search_plan has no entry {lane.entry} with a status"


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
