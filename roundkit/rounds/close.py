"""Close: select, compose, rerun, export, advance. Killed anywhere, it goes on where it was."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from roundkit.core.clock import format_utc, is_expired, now_utc
from roundkit.core.errors import refuse
from roundkit.host.lease import default_lease_root
from roundkit.measure.pool import DevicePool, LocalPool
from roundkit.models.ledger import RoundLedger
from roundkit.rounds.advance import advance_campaign
from roundkit.rounds.compose import compose, head_after, rerun
from roundkit.rounds.export import evidence_folder, export_evidence
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.locks import describe_holder, hold_lock, is_held
from roundkit.rounds.measuring import Closer
from roundkit.rounds.provisioning import provisioned
from roundkit.rounds.requests import Bench
from roundkit.rounds.serve import Report, open_bench
from roundkit.rounds.waiting import unseen_submissions
from roundkit.rules.outcome import STATEMENT, ending_of, lane_records
from roundkit.rules.selection import composition_order, select_tickets
from roundkit.store import RoundStore, open_store


@dataclass(frozen=True)
class CloseOutcome:
    """A closed round: its ledger, its evidence, and the new incumbent in the campaign repository."""

    ledger: RoundLedger
    evidence: Path
    index_digest: str
    new_incumbent: str | None


def close(folder: RoundFolder, *, report: Report, pool: DevicePool | None = None) -> CloseOutcome:
    """Close a round. Run again, it repeats no finished measurement and writes the same records.

    Args:
        folder: The round.
        report: Takes one line for each thing that happens.
        pool: Who measures; the local devices by default.

    Raises:
        Refused: ``serve-running``, ``close-running``, ``tickets-waiting``, or the plan was changed.
    """
    bench = open_bench(folder)
    if is_held(folder.serve_lock):
        raise refuse(
            "serve-running",
            f"serve still runs: {describe_holder(folder.serve_lock)}",
            place=str(folder.root),
            remedy="let it finish, or `roundkit drain` it",
        )
    with (
        hold_lock(folder.close_lock, code="close-running", what="close"),
        open_store(folder.database) as store,
    ):
        _refuse_waiting(bench, store)
        closer = Closer(
            _with_provision(bench, store, report),
            store,
            pool or LocalPool(bench.plan.device_sets, lease_root=default_lease_root()),
            report,
        )
        try:
            ledger = _decide(closer)
        finally:
            closer.pool.close()
        digest = export_evidence(bench, store, ledger)
        target = evidence_folder(bench.plan)
        report(f"evidence exported to {target}, index {digest}")
        head = advance_campaign(bench, store, ledger, digest)
        report(f"new incumbent {head}" if head else f"the incumbent stays {bench.plan.incumbent}")
        return CloseOutcome(ledger, target, digest, head)


def _with_provision(bench: Bench, store: RoundStore, report: Report) -> Bench:
    """Ask for what was provisioned only where something may still be built."""
    if store.steps.get("ledger") is not None or not store.tickets.count(state="measured"):
        return bench
    return provisioned(bench, store, report)


def _refuse_waiting(bench: Bench, store: RoundStore) -> None:
    if store.steps.names() or is_expired(bench.plan.deadline_utc, now_utc()):
        return
    waiting = [ticket.ticket for ticket in store.tickets.all() if ticket.state in {"queued", "measuring"}]
    waiting += [entry for _, entry in unseen_submissions(bench.folder, bench.plan, store)]
    if waiting:
        raise refuse(
            "tickets-waiting",
            f"{len(waiting)} submissions wait for a verdict: {', '.join(waiting[:5])}",
            place=str(bench.folder.root),
            remedy="run `roundkit serve ROUND_DIR --until-idle` first, or wait for the round's deadline",
        )


def _decide(closer: Closer) -> RoundLedger:
    """Select, order, compose and rerun; return the whole round as its ledger."""
    plan, store = closer.bench.plan, closer.store
    done = store.steps.get("ledger")
    if done is not None:
        return RoundLedger.from_bytes(done, place="ledger")
    tickets = store.tickets.all()
    selected = select_tickets(tickets, [lane.id for lane in plan.lanes])
    order = composition_order(selected)
    closer.report(
        f"composing {len(order)} of {len(plan.lanes)} lanes: {', '.join(t.lane for t in order) or 'none'}"
    )
    steps = compose(closer, order)
    reruns = rerun(closer, steps)
    ending = ending_of(reruns)
    accepted = ending.accepted
    head, _ = head_after(closer, ()) if accepted is None else (accepted, ())
    ledger = RoundLedger(
        format="roundkit-round-ledger/1",
        round_id=plan.round_id,
        round_digest=closer.bench.spec.round_digest,
        campaign_id=plan.campaign.campaign_id,
        incumbent=plan.incumbent,
        head=head.commit,
        head_tree=head.tree,
        advanced=accepted is not None,
        opened_utc=plan.frozen_utc,
        closed_utc=_closing_time(store),
        lanes=lane_records(plan, tickets, selected, steps, ending),
        tickets=tuple(tickets),
        rejected_submissions=tuple(store.tickets.rejected_submissions()),
        aa_checks=tuple(store.aa_checks.all()),
        order=tuple(ticket.lane for ticket in order),
        composition=steps,
        rerun=reruns,
        gain=accepted.verdict.gain if accepted else None,
        statement=STATEMENT,
    )
    with store.transaction():
        store.steps.put("ledger", ledger.to_bytes())
        store.events.add("closed", head=ledger.head, advanced=ledger.advanced)
    return ledger


def _closing_time(store: RoundStore) -> datetime:
    """Return the time of closing, fixed by whichever close came to it first."""
    done = store.steps.get("closing-time")
    if done is None:
        done = format_utc(now_utc()).encode()
        with store.transaction():
            store.steps.put("closing-time", done)
    return datetime.fromisoformat(done.decode())
