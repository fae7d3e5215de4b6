"""Close: select, compose, rerun, export, advance. Killed anywhere, it goes on where it was."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from roundkit.core.clock import format_utc, is_expired, now_utc
from roundkit.core.errors import refuse
from roundkit.core.progress import SILENT, Progress
from roundkit.measure.pool import DevicePool
from roundkit.models.ledger import RoundLedger
from roundkit.rounds.advance import advance_campaign, check_campaign_file
from roundkit.rounds.closing import read_closing
from roundkit.rounds.compose import compose, head_after, rerun
from roundkit.rounds.disk_space import explain_full_disk
from roundkit.rounds.export import export_evidence
from roundkit.rounds.layout import RoundFolder, evidence_folder
from roundkit.rounds.locks import hold_lock
from roundkit.rounds.measuring import Closer
from roundkit.rounds.pools import local_pool
from roundkit.rounds.provisioning import provisioned
from roundkit.rounds.recovery import expire_queue, recover
from roundkit.rounds.requests import Bench
from roundkit.rounds.serve import Report, open_bench
from roundkit.rounds.stopping import stop_on_signal
from roundkit.rounds.waiting_submissions import unseen_submissions
from roundkit.rounds.watched_pool import WatchedPool
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


def close(
    folder: RoundFolder,
    *,
    report: Report,
    pool: AbstractContextManager[DevicePool] | None = None,
    progress: Progress = SILENT,
) -> CloseOutcome:
    """Close a round. Run again, it repeats no finished measurement and writes the same records.

    Args:
        folder: The round.
        report: Takes one line for each thing that happens.
        pool: Who measures, made once the round may be closed and has to be decided; the local devices by
            default.
        progress: Shows steps, and the trials of the one that is being measured.

    Raises:
        Refused: ``serve-running``, ``close-running``, ``tickets-waiting``, the plan was changed, or
            the owner's campaign file cannot take the results.
        CloseStopped: it was asked to end, or the host has to be mended first; run it again.
        DiskFull: there is no space left; run it again once there is.
    """
    bench = open_bench(folder)
    with (
        explain_full_disk(folder.root, "close"),
        stop_on_signal() as stop,
        hold_lock(folder.close_lock, code="close-running", what="close"),
        # Held to the end: nothing may be measured any more while the round is decided.
        hold_lock(folder.serve_lock, code="serve-running", what="serve"),
        open_store(folder.database) as store,
    ):
        _tell_earlier(bench, store, report)
        _refuse_waiting(bench, store)
        check_campaign_file(bench.plan)
        ledger = _decided(store)
        if ledger is None:
            with pool or local_pool(bench.plan) as device_pool:
                _begin(bench, store, report)
                ready = _with_provision(bench, store, report)
                watched = WatchedPool(device_pool, progress)
                ledger = _decide(Closer(ready, store, watched, report, stop, progress))
        digest = export_evidence(bench, store, ledger)
        target = evidence_folder(bench.plan)
        report(f"evidence exported to {target}, index {digest}")
        head = advance_campaign(bench, store, ledger, digest, report)
        report(f"new incumbent {head}" if head else f"the incumbent stays {bench.plan.incumbent}")
        return CloseOutcome(ledger, target, digest, head)


def _tell_earlier(bench: Bench, store: RoundStore, report: Report) -> None:
    """Say first what an earlier close came to, so that nobody takes its results for new ones."""
    closing = read_closing(store)
    if closing.finished:
        report(
            f"round {bench.plan.round_id} is closed already, and nothing is measured: {closing.sentence()}"
        )
    elif closing.begun:
        report(f"close of round {bench.plan.round_id} has begun before; it goes on where it was")


def _begin(bench: Bench, store: RoundStore, report: Report) -> None:
    """Put right what a killed process left, and make sure that every accepted ticket has its end."""
    recover(bench, store)
    if not store.steps.names():
        for line in expire_queue(bench, store):
            report(line)
        with store.transaction():
            store.steps.put("begun", b"")  # from here on, serve measures nothing more


def _with_provision(bench: Bench, store: RoundStore, report: Report) -> Bench:
    """Ask for what was provisioned only where something may still be built."""
    if not store.tickets.count(state="measured"):
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


def _decided(store: RoundStore) -> RoundLedger | None:
    """Return the ledger that an earlier close came to, None where there is none yet."""
    done = store.steps.get("ledger")
    return None if done is None else RoundLedger.from_bytes(done, place="ledger")


def _decide(closer: Closer) -> RoundLedger:
    """Select, order, compose and rerun; return the whole round as its ledger."""
    plan, store = closer.bench.plan, closer.store
    tickets = store.tickets.all()
    selected = select_tickets(tickets, [lane.id for lane in plan.lanes])
    order = composition_order(selected)
    closer.report(
        f"composing {len(order)} of {len(plan.lanes)} lanes: {', '.join(t.lane for t in order) or 'none'}"
    )
    # The last step is the rerun of what the others made; the first is measured already and foretells none.
    with closer.progress.task(f"close {plan.round_id}", len(order) + 1, "steps", foresight="none") as whole:
        steps = compose(closer, order, whole)
        reruns = rerun(closer, steps)
        whole.advance()
    ending = ending_of(reruns)
    attempts = store.attempts.all()
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
        lanes=lane_records(plan, tickets, selected, steps, ending, attempts),
        attempts=tuple(attempts),
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
