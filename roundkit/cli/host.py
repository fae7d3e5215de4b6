"""Commands about this machine: doctor, leases."""

from __future__ import annotations

from typing import Annotated

import typer

from roundkit.cli.app import app
from roundkit.cli.next_steps import after_doctor
from roundkit.cli.progress import shown_progress


@app.command(rich_help_panel="Host")
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Show what this machine can hold candidates in, what it can measure, and how to get what is missing.

    The boundary is built and attacked once for real. Nothing is installed or changed. What only some rounds
    need (several machines, agents, a compiler) and what makes times vary is shown as well, and keeps nothing
    from running.

    Examples:
        roundkit doctor
        # For a script
        roundkit doctor --json > doctor.json

    Exit codes:
        0: rounds can run here
        1: they cannot: something that every round needs is missing

    Variables:
        ROUNDKIT_BWRAP: Another bubblewrap than the one that comes with roundkit.
        TMPDIR: Where the copies that are measured lie.
    """
    import json

    from roundkit.cli.doctor_lines import show_diagnosis
    from roundkit.rounds.doctor import examine_machine

    with shown_progress(stderr=True) as progress:
        found = examine_machine(progress=progress)
    if as_json:
        typer.echo(json.dumps(found.to_json_value(), indent=2))
    else:
        show_diagnosis(found)
    if not found.ready:
        raise typer.Exit(1)
    if not as_json:
        after_doctor()


@app.command(rich_help_panel="Host")
def leases() -> None:
    """Show who holds which device on this host.

    Examples:
        roundkit leases

    Variables:
        ROUNDKIT_LEASE_ROOT: Folder of the leases.
    """
    from rich.table import Table
    from rich.text import Text

    from roundkit.cli.tables import console
    from roundkit.host.lease import default_lease_root, holders

    held = holders(default_lease_root())
    table = Table(title="leases on this host", title_justify="left")
    for heading in ("device", "pid", "since", "round", "purpose"):
        table.add_column(heading)
    for holder in held:
        cells = (holder.device, holder.pid, holder.acquired_utc, holder.round_id, holder.purpose)
        table.add_row(*(Text("unknown" if cell is None else str(cell)) for cell in cells))
    console().print(table if held else Text("no device is leased"))
