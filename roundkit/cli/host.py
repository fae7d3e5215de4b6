"""Commands about this machine: doctor, leases."""

from __future__ import annotations

import typer
from rich.table import Table
from rich.text import Text

from roundkit.cli.app import app
from roundkit.cli.tables import console
from roundkit.core.text import visible


@app.command(rich_help_panel="Host")
def doctor() -> None:
    """Show what this machine can hold candidates in, with the escape probe's result, and its instruments."""
    from roundkit.host.probes import PROBE_LIMITS, Layer, probe_confinement
    from roundkit.measure.instruments import instrument_states

    layers = probe_confinement()
    layers += [
        Layer(
            name=f"instrument: {state.name}",
            present=state.present,
            needed=False,
            detail=state.detail,
            remedy=state.remedy,
        )
        for state in instrument_states(PROBE_LIMITS)
    ]
    table = Table(title="what this machine offers", title_justify="left")
    for heading in ("layer", "state", "found", "remedy"):
        table.add_column(heading)
    for layer in layers:
        state = "present" if layer.present else "missing"
        table.add_row(
            *(
                Text(visible(cell))
                for cell in (layer.name, state, layer.detail, "" if layer.present else layer.remedy)
            )
        )
    console().print(table)
    if any(layer.needed and not layer.present for layer in layers):
        typer.echo("rounds cannot run here: a required layer is missing")
        raise typer.Exit(1)


@app.command(rich_help_panel="Host")
def leases() -> None:
    """Show who holds which device on this host."""
    from roundkit.host.lease import default_lease_root, holders

    held = holders(default_lease_root())
    table = Table(title="leases on this host", title_justify="left")
    for heading in ("device", "pid", "since", "round", "purpose"):
        table.add_column(heading)
    for holder in held:
        cells = (holder.device, holder.pid, holder.acquired_utc, holder.round_id, holder.purpose)
        table.add_row(*(Text("unknown" if cell is None else str(cell)) for cell in cells))
    console().print(table if held else Text("no device is leased"))
