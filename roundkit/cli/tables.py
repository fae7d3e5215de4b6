"""Tables for the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
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
    table = Table(title=f"round {status.plan.round_id}", title_justify="left")
    for heading in ("lane", "ticket", "state", "verdict", "gain", "why"):
        table.add_column(heading, justify="right" if heading == "gain" else "left")
    for lane, state in tickets:
        why = state.detail or state.reason or ""
        cells = (lane, state.ticket, state.state, state.verdict or "", percent(state.gain), why)
        table.add_row(*(Text(visible(cell)) for cell in cells))
    out.print(table)
    if any(
        account.records or any(account.lane.budget.to_json_value().values()) for account in status.accounts
    ):
        out.print(_attempts_table(status.accounts))
        for account in status.accounts:
            if line := cost_line(account):
                out.print(Text(visible(f"{account.lane.id}: {line}")))
    passed, failed = status.aa_checks
    out.print(Text(f"serve: {status.serve or 'not running'}"))
    out.print(Text(f"queue: {'paused, ' + status.paused if status.paused else 'open'}"))
    if status.waiting is not None:
        out.print(Text(visible(f"measuring waits, and goes on by itself: {status.waiting}")))
    out.print(Text(f"A/A checks: {passed} passed, {failed} failed"))


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


def ledger_table(ledger: RoundLedger) -> None:
    """Print what a closed round decided, lane by lane."""
    table = Table(title=f"round {ledger.round_id}", title_justify="left")
    for heading in ("lane", "entry", "ticket", "ticket estimate", "outcome", "why"):
        table.add_column(heading, justify="right" if heading == "ticket estimate" else "left")
    for lane in ledger.lanes:
        shown = lane.selected or (lane.tickets[-1] if lane.tickets else "")
        cells = (lane.lane, lane.entry, shown, percent(lane.ticket_gain), lane.outcome, lane.sentence)
        table.add_row(*(Text(visible(cell)) for cell in cells))
    out = console()
    out.print(table)
    for lane in ledger.lanes:
        if lane.cost:
            out.print(Text(visible(f"{lane.lane}: {lane.cost}")))
    if ledger.advanced:
        out.print(Text(f"gain of the round (fresh rerun against the old incumbent): {percent(ledger.gain)}"))
    else:
        out.print(Text("the incumbent stays"))
    out.print(Text(ledger.statement))


def demo_table(rows: Sequence[DemoRow]) -> None:
    """Print each demo lane's verdict beside the expected one."""
    table = Table(title="the demo's lanes: what was expected, and what was found", title_justify="left")
    for heading in ("lane", "expected", "found", "ticket estimate", "95 % interval", "composition", ""):
        table.add_column(heading)
    for row in rows:
        interval = f"{percent(row.low)} to {percent(row.high)}" if row.low is not None else percent(None)
        found = " ".join(filter(None, [row.verdict, row.reason]))
        mark = "as expected" if row.as_expected else "NOT as expected" if row.required else "unusual"
        cells = (row.lane, row.expected, found, percent(row.gain), interval, row.composition, mark)
        table.add_row(*(Text(visible(cell)) for cell in cells))
    console().print(table)
