"""``roundkit status``: the queue, every ticket, why the queue is paused, and how the round was closed."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated

import typer

from roundkit.cli import next_steps
from roundkit.cli.app import RoundDir, app
from roundkit.core.errors import refuse

if TYPE_CHECKING:
    from roundkit.rounds.control import RoundStatus


@app.command(rich_help_panel="Rounds")
def status(
    round_dir: RoundDir,
    ticket: Annotated[
        str | None,
        typer.Argument(metavar="[TICKET]", help="One ticket only; the round's id may be left out."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    watch: Annotated[
        bool, typer.Option(help="Print again at every change, until the round is closed.")
    ] = False,
) -> None:
    """Show the queue, every ticket, why the queue is paused, and what close came to; safe beside serve.

    Examples:
        roundkit status ../round-01
        roundkit status ../round-01 --watch
        # One ticket, for a script
        roundkit status ../round-01 r01-L1-5f0c2a9b --json

    Interrupted:
        the round goes on as it was
    """
    from roundkit.cli.tables import status_table
    from roundkit.rounds.control import read_status
    from roundkit.rounds.layout import round_folder
    from roundkit.rules.agent_cost import cost_line
    from roundkit.rules.identity import short_ticket

    def show(current: RoundStatus) -> None:
        round_id = current.plan.round_id
        tickets = [
            (lane, state)
            for lane, state in current.tickets
            if ticket in {None, state.ticket, short_ticket(state.ticket, round_id)}
        ]
        if ticket is not None and not tickets:
            raise refuse(
                "unknown-ticket", f"the round has no ticket {ticket!r}", remedy="`roundkit status` lists all"
            )
        if as_json:
            document = {
                "round": round_id,
                "digest": current.plan.digest(),
                "serve": current.serve,
                "paused": current.paused,
                "waiting": current.waiting,
                "measuring": list(current.measuring),
                "closed": current.closed,
                "closing": _closing(current),
                "handed_over": dict(current.handed_over),
                "aa_checks": {"passed": current.aa_checks[0], "failed": current.aa_checks[1]},
                "attempts": [account.to_json_value() for account in current.accounts],
                "costs": {account.lane.id: cost_line(account) for account in current.accounts},
                "tickets": [
                    {"lane": lane, **state.to_json_value(), "said": current.said.get(state.ticket)}
                    for lane, state in tickets
                ],
            }
            typer.echo(json.dumps(document, indent=2))
        else:
            status_table(current, tickets)

    folder = round_folder(round_dir)
    current = read_status(folder)
    show(current)
    while watch and not current.closing.finished:
        time.sleep(1.0)
        latest = read_status(folder)
        if latest != current:
            current = latest
            show(current)
    if not as_json:
        next_steps.after_look(round_dir, current)


def _closing(current: RoundStatus) -> dict[str, object]:
    from roundkit.rounds.layout import evidence_folder

    closing = current.closing
    return {
        "running": closing.running,
        "begun": closing.begun,
        "finished": closing.finished,
        "closed_utc": closing.closed_utc,
        "new_incumbent": closing.advanced or None,
        "evidence": str(evidence_folder(current.plan)) if closing.index_digest else None,
        "index": closing.index_digest,
    }
