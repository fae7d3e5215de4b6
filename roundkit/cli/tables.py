"""Tables for the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from roundkit.core.text import visible

if TYPE_CHECKING:
    # For annotations only: help and version must not wait for numpy and scipy.
    from roundkit.agents.contract import DryRun
    from roundkit.models.lane import TicketStatus
    from roundkit.models.ledger import RoundLedger
    from roundkit.rounds.control import RoundStatus
    from roundkit.rounds.demo import DemoRow
    from roundkit.rules.advice import Advice
    from roundkit.rules.attempts import LaneAccount

_WIDTH_WITHOUT_TERMINAL = 160
_PROSE = frozenset({"why", "what", "entry"})
_FIGURES = frozenset({"gain", "gain, 95 %", "estimate", "ticket estimate"})
_BESIDE_A_TICKET = 105
"""Columns of the terminal that a table needs beside its tickets' names; with fewer, names are shortened."""


def console() -> Console:
    """Return a console that stays readable when its output goes to a file."""
    plain = Console()
    return plain if plain.is_terminal else Console(width=_WIDTH_WITHOUT_TERMINAL)


def percent(fraction: float | None) -> str:
    """Write a fraction as a percentage; a missing one as a dash."""
    return "–" if fraction is None else f"{100 * fraction:+.1f} %"


def plain_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of text under headings."""
    table = Table()
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    console().print(table)


def status_table(status: RoundStatus, tickets: list[tuple[str, TicketStatus]]) -> None:
    """Print how a round stands."""
    from roundkit.rules.agent_cost import cost_line

    out = console()
    if tickets:
        narrow = _is_narrow(out, [state.ticket for _, state in tickets])
        out.print(_tickets_table(status, tickets, narrow=narrow))
    else:
        out.print(Text(f"round {status.plan.round_id}: no ticket{'' if status.closed else ' yet'}"))
    if status.handed_over:
        waiting = ", ".join(f"{lane} {count}" for lane, count in status.handed_over.items())
        out.print(Text(f"handed over, and not taken in yet: {waiting}"))
    if any(
        account.records or any(account.lane.budget.to_json_value().values()) for account in status.accounts
    ):
        out.print(_attempts_table(status.accounts))
        for account in status.accounts:
            if line := cost_line(account):
                out.print(Text(visible(f"{account.lane.id}: {line}")))
    passed, failed = status.aa_checks
    closing = status.closing
    out.print(Text(f"serve: {status.serve or 'not running'}"))
    if closing.begun:
        out.print(Text("queue: closed, nothing more is measured for tickets"))
    else:
        out.print(Text(f"queue: {'paused, ' + status.paused if status.paused else 'open'}"))
    if status.measuring and (status.serve is not None or closing.running is not None):
        out.print(Text(visible(f"measuring: {', '.join(status.measuring)}")))
    if status.waiting is not None:
        out.print(Text(visible(f"measuring waits, and goes on by itself: {status.waiting}")))
    out.print(Text(f"A/A checks: {passed} passed, {failed} failed"))
    if closing.running is not None:
        out.print(Text(f"close: runs, {closing.running}"))
    elif closing.begun and not closing.finished:
        out.print(Text("close: begun and not finished; run again, it goes on where it was"))
    elif closing.finished:
        out.print(Text(f"round {status.plan.round_id} {closing.sentence()}"))


def _tickets_table(status: RoundStatus, tickets: list[tuple[str, TicketStatus]], *, narrow: bool) -> Table:
    """Return a row a ticket; a narrow one has lane and ticket in one column, and state or verdict in one."""
    from roundkit.rules.identity import short_ticket

    round_id = status.plan.round_id
    table = Table(title=f"round {round_id}", title_justify="left")
    wide = ("lane", "ticket", "state", "verdict", "gain", "95 % interval", "why")
    _add_columns(table, ("ticket", "verdict", "gain, 95 %", "why") if narrow else wide)
    for lane, state in tickets:
        why = ": ".join(filter(None, [state.detail or state.reason, status.said.get(state.ticket)]))
        gain, ends = percent(state.gain), _interval(state.low, state.high)
        if narrow:
            name = short_ticket(state.ticket, round_id)
            _add_row(table, name, state.verdict or state.state, _stacked(gain, ends), why)
        else:
            _add_row(table, lane, state.ticket, state.state, state.verdict or "", gain, ends, why)
    return table


def _is_narrow(out: Console, tickets: Sequence[str]) -> bool:
    return out.width < _BESIDE_A_TICKET + max(map(len, tickets), default=0)


def _add_columns(table: Table, headings: Sequence[str]) -> None:
    """Add columns of which only those of prose are wrapped."""
    for heading in headings:
        justify: JustifyMethod = "right" if heading in _FIGURES else "left"
        table.add_column(heading, justify=justify, no_wrap=heading not in _PROSE, overflow="fold")


def _interval(low: float | None, high: float | None) -> str:
    return percent(None) if low is None or high is None else f"{percent(low)} to {percent(high)}"


def _stacked(gain: str, ends: str) -> Text:
    """Return an estimate above the ends of its interval, for a column of ten letters."""
    return Text(gain if ends == percent(None) else "\n".join([gain, ends.replace(" to ", " to\n")]))


def _add_row(table: Table, *cells: str | Text) -> None:
    table.add_row(*(cell if isinstance(cell, Text) else Text(visible(cell)) for cell in cells))


def _attempts_table(accounts: Sequence[LaneAccount]) -> Table:
    """Return each lane's attempts, and what they are charged of its budget."""
    table = Table(title="attempts", title_justify="left")
    for heading in ("lane", "made", "phases", "charged of the budget", "known to have cost"):
        table.add_column(heading)
    for account in accounts:
        budget = account.lane.budget.to_json_value()
        charged, spent = account.charged.to_json_value(), account.spent.to_json_value()
        capped = [f"{charged[name]} of {cap} {name}" for name, cap in budget.items() if cap is not None]
        cost = [f"{amount} {name}" for name, amount in spent.items() if amount is not None]
        cells = (
            account.lane.id,
            f"{len(account.records)} of {account.lane.attempts}",
            ", ".join(record.phase for record in account.records),
            ", ".join(capped) or "no cap",
            ", ".join(cost),
        )
        table.add_row(*(Text(visible(cell)) for cell in cells))
    return table


def dry_run_lines(shown: DryRun) -> Iterator[str]:
    """Yield what would be started in a lane: its command, the names of its variables, its boundary."""
    yield f"{shown.lane}: {shlex.join(shown.argv)}"
    yield f"{shown.lane}: variables {' '.join(shown.env_names)}"
    yield f"{shown.lane}: network {' '.join(shown.hosts) or 'none'}"
    for kind, places in (("writable", shown.writable), ("readable", shown.readable)):
        for place in places:
            yield f"{shown.lane}: {kind} {place}"


def advice_table(advice: Sequence[Advice]) -> None:
    """Print what to consider about a plan; nothing when there is nothing."""
    if not advice:
        return
    table = Table(title="advice, which refuses nothing", title_justify="left")
    for heading in ("lanes", "about", "what the campaign says", "consider"):
        table.add_column(heading)
    for row in advice:
        cells = (", ".join(row.lanes) or "all", row.topic, row.found, row.suggestion)
        table.add_row(*(Text(visible(cell)) for cell in cells))
    console().print(table)


def ledger_table(ledger: RoundLedger, what: Mapping[str, str] | None = None) -> None:
    """Print what a closed round decided, lane by lane.

    Args:
        ledger: The round's.
        what: What each lane tried, where no column of the ledger says so.
    """
    out = console()
    out.print(_lanes_table(ledger, what, narrow=_is_narrow(out, [one.ticket for one in ledger.tickets])))
    for lane in ledger.lanes:
        if lane.cost:
            out.print(Text(visible(f"{lane.lane}: {lane.cost}")))
    if ledger.advanced:
        rerun = next(record.verdict for record in ledger.rerun if record.verdict.verdict == "pass")
        gain = f"{percent(ledger.gain)} (95 %: {_interval(rerun.low, rerun.high)})"
        out.print(Text(f"gain of the round (fresh rerun against the old incumbent): {gain}"))
    else:
        out.print(Text("the incumbent stays"))
    out.print(Text(ledger.statement))


def _lanes_table(ledger: RoundLedger, what: Mapping[str, str] | None, *, narrow: bool) -> Table:
    """Return a row a lane; a narrow one names lane and ticket in one column."""
    from roundkit.rules.identity import short_ticket

    table = Table(title=f"round {ledger.round_id}", title_justify="left")
    tried = "entry" if what is None else "what"
    wide = ("lane", tried, "ticket", "ticket estimate", "95 % interval", "outcome", "why")
    _add_columns(table, ("lane", tried, "estimate", "outcome", "why") if narrow else wide)
    verdicts = {ticket.ticket: ticket.verdict for ticket in ledger.tickets}
    for lane in ledger.lanes:
        shown = lane.selected or (lane.tickets[-1] if lane.tickets else "")
        verdict = verdicts.get(shown) if lane.ticket_gain is not None else None
        gain = percent(lane.ticket_gain)
        ends = _interval(verdict.low, verdict.high) if verdict else percent(None)
        entry = lane.entry if what is None else what[lane.lane]
        if narrow:
            name = short_ticket(shown, ledger.round_id) or lane.lane
            _add_row(table, name, entry, _stacked(gain, ends), lane.outcome, lane.sentence)
        else:
            _add_row(table, lane.lane, entry, shown, gain, ends, lane.outcome, lane.sentence)
    return table


def demo_table(rows: Sequence[DemoRow]) -> None:
    """Print each demo lane's verdict beside the expected one."""
    table = Table(title="the demo's lanes: what was expected, and what was found", title_justify="left")
    for heading in ("lane", "expected", "found", "ticket estimate", "95 % interval", "composition", ""):
        table.add_column(heading, overflow="fold")
    for row in rows:
        interval = _interval(row.low, row.high)
        found = " ".join(filter(None, [row.verdict, row.reason]))
        mark = "as expected" if row.as_expected else "NOT as expected" if row.required else "unusual"
        cells = (row.lane, row.expected, found, percent(row.gain), interval, row.composition, mark)
        table.add_row(*(Text(visible(cell)) for cell in cells))
    console().print(table)
