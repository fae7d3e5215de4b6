"""What an owner may ask of a round while it runs: pause, resume, drain, stop a lane; and how it stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from roundkit.core.clock import format_utc, now_utc
from roundkit.core.errors import refuse
from roundkit.models.lane import TicketStatus
from roundkit.models.round_plan import RoundPlan
from roundkit.rounds.closing import Closing, read_closing
from roundkit.rounds.layout import RoundFolder, read_plan
from roundkit.rounds.left_credentials import remove_left_credentials
from roundkit.rounds.locks import describe_holder, is_held
from roundkit.rounds.status_mirror import status_of
from roundkit.rounds.waiting_submissions import unseen_submissions
from roundkit.rules.attempts import LaneAccount, account
from roundkit.store import RoundStore, open_store, store_exists
from roundkit.store.events import INTERRUPTED


@dataclass(frozen=True)
class RoundStatus:
    """How a round stands.

    Attributes:
        plan: The frozen plan.
        serve: Who serves it, null when nobody does.
        paused: Why the queue is paused, null when it is not.
        waiting: What keeps serve from measuring until it ends by itself, null where nothing does.
        tickets: Every ticket with its lane, oldest first.
        aa_checks: How many A/A checks passed, and how many failed.
        closed: Whether ``close`` has decided.
        accounts: Every lane's attempts and budget.
        closing: How far close is.
        handed_over: How many submissions of each lane nobody has taken in yet; of an open round only.
        launched: Whether the lanes were made.
        measuring: Subjects of experiments that have begun and not ended; cut off where no process runs.
        said: Last line of what broke a ticket's measurement, by ticket: for the owner, and never for a lane.
    """

    plan: RoundPlan
    serve: str | None
    paused: str | None
    tickets: tuple[tuple[str, TicketStatus], ...]
    aa_checks: tuple[int, int]
    closed: bool
    accounts: tuple[LaneAccount, ...]
    waiting: str | None = None
    closing: Closing = field(default_factory=Closing)
    handed_over: Mapping[str, int] = field(default_factory=dict)
    said: Mapping[str, str] = field(default_factory=dict)
    launched: bool = True
    measuring: tuple[str, ...] = ()


def read_status(folder: RoundFolder) -> RoundStatus:
    """Read how a round stands, beside a running serve and without disturbing it.

    What a killed launch left of somebody's credentials goes with that.

    Raises:
        Refused: there is no frozen round, or its plan was changed.
    """
    plan = read_plan(folder)
    remove_left_credentials(folder)
    serve = describe_holder(folder.serve_lock) if is_served(folder) else None
    closer = describe_holder(folder.close_lock) if is_held(folder.close_lock) else None
    if not store_exists(folder.database):
        untouched, closing = tuple(account(lane, ()) for lane in plan.lanes), Closing(running=closer)
        return RoundStatus(
            plan, serve, None, (), (0, 0), closed=False, accounts=untouched, closing=closing,
            handed_over=_handed_over(folder, plan, None), launched=folder.launch_file.exists(),
        )  # fmt: skip
    with open_store(folder.database, read_only=True) as store:
        checks, attempts = store.aa_checks.all(), store.attempts.all()
        passed = sum(check.passed for check in checks)
        closing = read_closing(store, closer)
        return RoundStatus(
            plan=plan,
            serve=serve,
            paused=store.control.get("paused"),
            tickets=tuple((ticket.lane, status_of(ticket)) for ticket in store.tickets.all()),
            aa_checks=(passed, len(checks) - passed),
            closed=store.steps.get("ledger") is not None,
            accounts=tuple(account(lane, attempts) for lane in plan.lanes),
            waiting=store.control.get("waiting") if serve is not None else None,
            closing=closing,
            handed_over={} if closing.begun else _handed_over(folder, plan, store),
            said=dict(_last_words(store)),
            launched=folder.launch_file.exists(),
            measuring=_measuring(store),
        )


def _measuring(store: RoundStore) -> tuple[str, ...]:
    begun = store.experiments.unfinished()
    # Asked for only where it matters: there may be very many events.
    cut_off = {event.fields.get("experiment") for event in store.events.all(INTERRUPTED)} if begun else set()
    return tuple(subject for experiment, subject in begun if experiment not in cut_off)


def _handed_over(folder: RoundFolder, plan: RoundPlan, store: RoundStore | None) -> Mapping[str, int]:
    return Counter(lane for lane, _ in unseen_submissions(folder, plan, store))


def _last_words(store: RoundStore) -> Iterator[tuple[str, str]]:
    """Yield each ticket whose measurement broke, with the last line of how."""
    for ticket in store.tickets.all("measured"):
        verdict = ticket.verdict
        if verdict is None or not (verdict.verdict == "invalid" or verdict.reason.startswith("candidate-")):
            continue
        record = next(reversed(store.experiments.records(ticket.ticket)), None)
        if record is not None and record.outcome != "complete" and record.detail:
            yield ticket.ticket, record.detail.strip().rpartition("\n")[2]


def is_served(folder: RoundFolder) -> bool:
    """Say whether a serve runs for the round; close, which keeps serve out, does not count."""
    return is_held(folder.serve_lock) and not is_held(folder.close_lock)


def pause(folder: RoundFolder, reason: str) -> None:
    """Pause the queue: intake goes on, nothing new is measured."""
    with _open(folder) as store:
        pause_store(store, reason)


def pause_store(store: RoundStore, reason: str) -> None:
    """Pause the queue of an open store."""
    with store.transaction():
        mark_paused(store, reason)


def mark_paused(store: RoundStore, reason: str, *, experiment: str | None = None) -> None:
    """Pause the queue within a transaction. What paused it first stays the reason until it is resumed.

    A request to resume that is still open was about an earlier reason, and ends.

    Args:
        store: The round's.
        reason: In words.
        experiment: The one that showed it; None where somebody asked.
    """
    resuming = store.control.get("resume-needs-aa") is not None
    if store.control.get("paused") is None or resuming:
        store.control.put("paused", reason)
        store.control.clear("resume-needs-aa")
    shown_by = {} if experiment is None else {"experiment": experiment}
    store.events.add("paused", reason=reason, **shown_by)


def resume(folder: RoundFolder) -> None:
    """Let the queue go on, once one new A/A check has passed."""
    with _open(folder) as store, store.transaction():
        if store.control.get("paused") is None:
            raise refuse(
                "not-paused",
                "the queue is not paused",
                place=str(folder.root),
                remedy="there is nothing to resume: tickets are measured while a serve runs",
            )
        store.control.put("resume-needs-aa", format_utc(now_utc()))
        store.events.add("resume-requested")


def drain(folder: RoundFolder) -> None:
    """End a running serve after what is being measured now; the rest stays queued."""
    read_plan(folder)
    if not is_served(folder):
        raise refuse(
            "no-serve",
            "no serve runs for this round",
            place=str(folder.root),
            remedy="there is nothing to drain: what waits stays queued until a serve runs",
        )
    with _open(folder) as store, store.transaction():
        store.control.put("drain", "drained by the owner")
        store.events.add("drain-requested")


def stop_lane(folder: RoundFolder, lane: str) -> None:
    """End a lane's intake; its accepted tickets are still measured."""
    plan = read_plan(folder)
    if lane not in {known.id for known in plan.lanes}:
        names = ", ".join(known.id for known in plan.lanes)
        raise refuse("unknown-lane", f"the round has no lane {lane!r}", remedy=f"its lanes are: {names}")
    with _open(folder) as store, store.transaction():
        store.control.stop_lane(lane, "stopped by the owner")
        store.events.add("lane-stopped", lane=lane)


def _open(folder: RoundFolder) -> RoundStore:
    read_plan(folder)
    return open_store(folder.database)
