"""The parts of the control room, each a function from the room to a piece."""

from __future__ import annotations

from datetime import datetime
from typing import get_args

from roundkit.core.progress import duration
from roundkit.host.lease import LeaseHolder
from roundkit.models.lane import TicketState, TicketStatus
from roundkit.models.ledger import CompositionStep, RerunRecord
from roundkit.models.round_plan import FrozenLane
from roundkit.rounds.closing import Closing
from roundkit.rounds.control_room import Room, next_deadline
from roundkit.rules.attempts import LaneAccount
from roundkit.widgets import pieces
from roundkit.widgets.pieces import Content, Markup, Piece, Row

MOST_TICKETS = 200
_OPEN = ("measuring", "queued")


def headline(room: Room) -> Piece:
    """The round, and in one sentence what it does now."""
    plan = room.plan
    title = pieces.element("h2", f"Round {plan.round_id} of campaign {plan.campaign.campaign_id}")
    text = state_sentence(room)
    bad = room.status.paused is not None and not room.closing.begun
    said = pieces.sentence(text, "bad" if bad else "note")
    return Piece(pieces.joined([title, said.markup]), f"{plan.round_id}: {text}")


def state_sentence(room: Room) -> str:
    """Say what the round does now."""
    status, closing = room.status, room.closing
    if closing.advanced is not None:
        stays = "the incumbent stays" if not closing.advanced else f"new incumbent {closing.advanced[:10]}"
        return f"Closed: {stays}."
    if closing.running is not None:
        return f"Close runs ({closing.running}): {len(closing.steps)} composition steps are measured."
    if closing.begun:
        return "Close has begun and does not run: start it again, and it goes on where it was."
    if status.paused is not None:
        going = "; a resume waits for one passing A/A check" if room.resuming else ""
        nobody = "" if status.serve else ", and no serve runs"
        return f"The queue is paused: {status.paused}{going}{nobody}."
    if status.serve is None:
        waits = room.waiting()
        queue = _counted(waits, "ticket waits", "tickets wait") if waits else "no ticket waits"
        return f"No serve runs; {queue}."
    if room.draining:
        return f"Serve ({status.serve}) ends after what is being measured now."
    busy = f"measures {', '.join(room.measuring)}" if room.measuring else "waits for submissions"
    return f"Serve ({status.serve}) {busy}."


def clock(room: Room, now: datetime) -> Piece:
    """Deadlines and counts, which change by themselves."""
    states = [ticket.state for _, ticket in room.status.tickets]
    counts = ", ".join(f"{states.count(state)} {state}" for state in get_args(TicketState))
    coming = next_deadline(room.plan, now)
    passed, failed = room.status.aa_checks
    rows: list[tuple[str, Content]] = [
        ("time", pieces.moment(now)),
        ("round's deadline", _deadline(room.plan.deadline_utc, now)),
    ]
    if coming not in {None, room.plan.deadline_utc}:
        rows.append(("next deadline of a lane", _deadline(coming, now) if coming else ""))
    rows += [("tickets", counts), ("A/A checks", f"{passed} passed, {failed} failed")]
    return pieces.facts(rows)


def tickets(room: Room) -> Piece:
    """Every ticket with its state and verdict: first what waits, then the newest."""
    every = room.status.tickets
    waiting = [row for row in every if row[1].state in _OPEN]
    ended = [row for row in reversed(every) if row[1].state not in _OPEN]
    ordered = sorted(waiting, key=lambda row: _OPEN.index(row[1].state)) + ended
    left = len(ordered) - MOST_TICKETS
    rows = [_ticket_row(lane, ticket) for lane, ticket in ordered[:MOST_TICKETS]]
    headings = ("lane", "ticket", "state", "verdict", "#gain", "95 % interval", "~why")
    found = pieces.table("Tickets", headings, rows, empty="No lane has handed over anything yet.")
    if left <= 0:
        return found
    more = f"{left} older tickets are not shown; `roundkit status` lists all {len(every)}."
    return pieces.together(found, pieces.sentence(more))


def device_sets(room: Room) -> Piece:
    """Every device set, and who holds its devices."""
    rows: list[Row] = []
    for held in room.device_sets:
        devices = ", ".join(f"{held.device_set.platform}:{device}" for device in held.device_set.devices)
        if not held.holders:
            rows.append((held.device_set.id, devices, "nobody", None, None))
        rows += [(held.device_set.id, devices, *_holder(room, one)) for one in held.holders]
    headings = ("device set", "devices", "held by", "for", "since")
    return pieces.table("Device sets of the plan", headings, rows, empty="The plan names no device set.")


def lanes(room: Room, now: datetime) -> Piece:
    """Every lane: who fills it, until when, what it has used of its budget."""
    rows = [_lane_row(room, account, now) for account in room.status.accounts]
    headings = ("lane", "filled by", "state", "deadline", "#submitted", "#attempts", "charged of its budget")
    return pieces.table("Lanes and their budgets", headings, rows, empty="The plan has no lane.")


def checks(room: Room) -> Piece:
    """The A/A checks: the incumbent against itself."""
    rows: list[Row] = [
        (
            check.experiment,
            pieces.verdict("pass" if check.passed else "fail"),
            pieces.figure(check.z),
            pieces.figure(check.cusum),
            check.reason or "",
        )
        for check in reversed(room.checks)
    ]
    return pieces.table(
        "A/A checks, newest first",
        ("experiment", "verdict", "#z", "#drift", "~why"),
        rows,
        empty="No A/A check was made yet; the first comes before the first ticket.",
    )


def composition(closing: Closing) -> Piece:
    """Each composition step and rerun that is measured."""
    rows: list[Row] = [_step_row(step) for step in closing.steps]
    rows += [_rerun_row(rerun) for rerun in closing.reruns]
    headings = ("step", "lane", "verdict", "#gain", "95 % interval", "#interaction ratio", "kept", "~why")
    return pieces.table(
        "Composition, step by step", headings, rows, empty="No composition step is measured yet."
    )


def _ticket_row(lane: str, ticket: TicketStatus) -> Row:
    why = ticket.detail or ticket.reason or ""
    name = pieces.code(ticket.ticket)
    gain, ends = pieces.percent(ticket.gain), interval(ticket.low, ticket.high)
    return (lane, name, ticket.state, pieces.verdict(ticket.verdict), gain, ends, why)


def _lane_row(room: Room, account: LaneAccount, now: datetime) -> Row:
    lane = account.lane
    submitted = sum(owner == lane.id for owner, _ in room.status.tickets)
    return (
        lane.id,
        f"{lane.harness}{f' ({lane.model})' if lane.model else ''}" if lane.harness != "none" else "a person",
        _lane_state(room, lane, now),
        _deadline(lane.deadline_utc, now),
        f"{submitted} of {lane.submission_cap}",
        f"{len(account.records)} of {lane.attempts}",
        _charged(account),
    )


def _lane_state(room: Room, lane: FrozenLane, now: datetime) -> str:
    if room.closing.begun:
        return "closed"
    if lane.id in room.stopped_lanes:
        return "stopped"
    if now >= lane.deadline_utc:
        return "over"
    if lane.id in room.driven_lanes:
        return "driven now"
    return "open" if room.launched else "not launched"


def _charged(account: LaneAccount) -> Content:
    charged = account.charged.to_json_value()
    capped = [(name, cap) for name, cap in account.lane.budget.to_json_value().items() if cap is not None]
    if not capped:
        return "no cap"
    return Markup("<br>".join(_meter(name, charged[name], cap) for name, cap in capped))


def _meter(name: str, used: int | None, cap: int) -> Markup:
    words = pieces.element("span", f"{'unknown' if used is None else used} of {cap} {name}")
    if used is None:
        return words
    bar = pieces.element("meter", "", min="0", max=str(max(cap, 1)), value=str(used), aria_label=name)
    return pieces.joined([bar, words], " ")


def _holder(room: Room, holder: LeaseHolder) -> tuple[str, str | None, str | None]:
    owner = "this round" if holder.round_id == room.plan.round_id else holder.round_id or "another program"
    since = (
        None if holder.acquired_utc is None else pieces.moment(datetime.fromisoformat(holder.acquired_utc))
    )
    return f"{owner}, pid {holder.pid or 'unknown'}", holder.purpose, since


def _step_row(step: CompositionStep) -> Row:
    found, ratio = step.verdict, step.ratio
    return (
        f"{step.step}{' (its own ticket)' if step.reused else ''}",
        step.lane,
        pieces.verdict(found.verdict),
        pieces.percent(found.gain),
        interval(found.low, found.high),
        "1, by construction" if ratio.basis == "by-construction" else pieces.figure(ratio.value),
        "yes" if step.kept else "no",
        found.sentence,
    )


def _rerun_row(rerun: RerunRecord) -> Row:
    found = rerun.verdict
    kept = "yes" if found.verdict == "pass" else "no"
    span = interval(found.low, found.high)
    gain = pieces.percent(found.gain)
    together = ", ".join(rerun.lanes)
    return (rerun.kind, together, pieces.verdict(found.verdict), gain, span, None, kept, found.sentence)


def interval(low: float | None, high: float | None) -> Content:
    """Write an interval of fractions; one without ends stays missing."""
    if low is None or high is None:
        return None
    return pieces.together_on_a_line(f"{pieces.percent(low)} to {pieces.percent(high)}")


def _deadline(moment: datetime, now: datetime) -> Markup:
    left = (moment - now).total_seconds()
    parts = [f"{pieces.moment(moment)},", "passed" if left <= 0 else f"in {duration(left)}"]
    return pieces.joined(map(pieces.together_on_a_line, parts), " ")


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
