"""``roundkit pilot``: the two commands that only a pilot that compares policies has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundkit.cli.progress import shown_progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from roundkit.models.policy_simulation import PolicySimulation, SimulatedArm


def register(pilot: typer.Typer) -> None:
    """Add the commands that policy pilots alone have."""
    pilot.command()(simulate)
    pilot.command()(example)


def simulate(
    pilot_file: Annotated[Path, typer.Argument(metavar="PILOT_YAML", help="A pilot of kind policy.")],
    pilots: Annotated[
        int | None, typer.Option(min=1, help="How many pilots; what the file assumes unless given.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the figures as JSON, too.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON in place of the table.")] = False,
) -> None:
    """Simulate rounds of several lanes against one a round: power and cost, before anyone spends money.

    The clock is virtual; queue, order, selection and decision are the real ones. Nothing is started.

    Examples:
        roundkit pilot simulate pilot.yaml
        roundkit pilot simulate pilot.yaml --pilots 500 --out power.json
    """
    import json

    from roundkit.core.files import atomic_write
    from roundkit.core.outputs import check_outputs
    from roundkit.pilots.policy.simulate import simulate_files

    check_outputs({"--out": out})
    with shown_progress() as progress:
        done = simulate_files(pilot_file, pilots=pilots, progress=progress)
    if out is not None:
        atomic_write(out, done.to_bytes())
    if as_json:
        typer.echo(json.dumps(done.to_json_value(), indent=2))
    else:
        _show(done)


def example(
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder to make.")],
    python: Annotated[
        str, typer.Option(help="Interpreter of the program and of its scripted agents, absolute.")
    ] = "/usr/bin/python3",
    repetitions: Annotated[int | None, typer.Option(min=1, help="Runs of each arm.")] = None,
) -> None:
    """Write the example of a policy pilot: a small program with scripted agents, and the owner's files.

    Examples:
        roundkit pilot example ../try
        roundkit pilot simulate ../try/pilot.yaml
        roundkit pilot prepare ../try/pilot.yaml --out ../try/pilot
    """
    from roundkit.pilots.policy.example import write_example

    typer.echo(str(write_example(out.absolute(), python=python, repetitions=repetitions)))


def _show(done: PolicySimulation) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(title=f"{done.pilot_id}: {done.assumptions.pilots:,} simulated pilots, virtual clock")
    for name in ("of one run", *(arm.arm for arm in done.arms)):
        table.add_column(name)
    figures: tuple[tuple[str, Callable[[SimulatedArm], str]], ...] = (
        ("censored", lambda arm: f"{arm.censored:.1%}"),
        ("to the target, where reached (min)", lambda arm: _points(arm.target_minutes)),
        ("whole run (min)", lambda arm: _points(arm.minutes)),
        ("final gain (%)", lambda arm: _points(tuple(100 * gain for gain in arm.final_gain))),
        ("devices held, all sets (min)", lambda arm: _points(arm.device_minutes)),
        ("a ticket's wait for a device (min)", lambda arm: _points(arm.wait_minutes)),
        ("attempts of agents, mean", lambda arm: f"{arm.attempts:.1f}"),
        ("rounds, mean", lambda arm: f"{arm.rounds:.1f}"),
        ("experiments beside A/A, mean", lambda arm: f"{arm.experiments:.1f}"),
    )
    for name, shown in figures:
        table.add_row(name, *(shown(arm) for arm in done.arms))
    console.print(table)
    console.print("medians, with the 5 % and 95 % points")
    for row in done.decisions:
        console.print(f"{row.outcome}: {row.share:.1%} of pilots (± {1.96 * row.standard_error:.1%})")
    console.print(f"equal arms would be called faster in at most {done.equal_arms_faster:.1%}")
    ratio = "no finite one" if done.median_ratio is None else f"{done.median_ratio:.2f}"
    console.print(f"median ratio of times to the target, P to S: {ratio}")
    console.print(
        f"bounds without closes, for {done.lanes_per_round} lanes on {done.device_sets} device sets: "
        f"{done.serial_bound:.0f} min one after the other, {done.parallel_bound:.0f} min side by side"
    )
    console.print(
        f"a whole pilot: {done.pilot_minutes / 60:.1f} h, {done.pilot_device_minutes / 60:.1f} device-set "
        f"hours, {done.pilot_attempts:.0f} attempts of agents"
    )


def _points(values: tuple[float, ...] | None) -> str:
    if values is None:
        return "none"
    low, middle, high = values
    return f"{middle:.1f} ({low:.1f} to {high:.1f})"
