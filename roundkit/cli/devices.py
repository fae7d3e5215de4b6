"""``roundkit devices``: what this machine could measure on, and what would keep each of them from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundkit.cli.app import app
from roundkit.core.text import rounded, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roundkit.host.devices import DeviceState


@app.command(rich_help_panel="Host")
def devices(
    device_sets: Annotated[
        Path | None, typer.Option(help="File of a worker's device sets: only those, under their limits.")
    ] = None,
) -> None:
    """List this machine's devices with what would fail qualification.

    Examples:
        roundkit devices
        # Under the limits that a worker's file sets
        roundkit devices --device-sets sets.yaml

    Exit codes:
        0: every device would qualify, or there is none
        1: one would not
    """
    from rich.table import Table
    from rich.text import Text

    from roundkit.cli.tables import console

    rows = list(_of_sets(device_sets) if device_sets is not None else _of_machine())
    table = Table(title="devices of this machine", title_justify="left")
    for heading in ("platform", "device", "what it is", "readings", "would fail by"):
        table.add_column(heading, overflow="fold")
    for platform, state in rows:
        readings = ", ".join(
            f"{name} {'unknown' if value is None else _shown(value)}"
            for name, value in state.readings.items()
        )
        cells = (platform, state.device, state.identity, readings, state.problem or "nothing")
        table.add_row(*(Text(visible(cell)) for cell in cells))
    console().print(table if rows else Text("no device was found"))
    if any(state.problem is not None for _, state in rows):
        raise typer.Exit(1)


def _of_machine() -> Iterator[tuple[str, DeviceState]]:
    from roundkit.host.devices import platforms

    for platform in platforms():
        for device in platform.list():
            yield platform.name, platform.qualify(device)


def _of_sets(path: Path) -> Iterator[tuple[str, DeviceState]]:
    from roundkit.measure.cluster.sets import read_sets
    from roundkit.measure.experiment import qualify_devices

    for device_set in read_sets(path):
        for state in qualify_devices(device_set, ()):
            yield device_set.platform, state


def _shown(value: float | str) -> str:
    return value if isinstance(value, str) else rounded(value, 6)
