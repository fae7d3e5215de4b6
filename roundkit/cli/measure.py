"""``measure`` and ``noise``: is B faster than A, and how much of a difference could this machine show?"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundkit.cli.app import app
from roundkit.cli.compare_options import Better, check_pyperf, compare_options, only_with_from
from roundkit.cli.options import even_pairs

if TYPE_CHECKING:
    from roundkit.models.comparison import Comparison
    from roundkit.rounds.compare.options import CompareOptions

_PANEL = "Start here"
_NOISE_PAIRS = 20


Benchmark = Annotated[
    str | None,
    typer.Option(help="Benchmark command, one program and its words; for more, sh -c '…'."),
]
Metric = Annotated[
    str | None, typer.Option(help="Metric that the benchmark writes to ROUNDKIT_RESULT_PATH; else wall time.")
]
Unit = Annotated[str | None, typer.Option(help="Its unit; ms by default.")]
Direction = Annotated[Better | None, typer.Option(help="Which way of it is better; lower by default.")]
Validator = Annotated[str | None, typer.Option(help="Command that exits 0 when the outputs are right.")]
Build = Annotated[str | None, typer.Option(help="Build command, run once a checkout.")]
Package = Annotated[
    str | None, typer.Option(help="Package that must be imported from the checkout, not from elsewhere.")
]
InstrumentName = Annotated[
    str | None, typer.Option(help="What decides: reported (with --metric), wall, cpu or another one.")
]
Timeout = Annotated[float | None, typer.Option(min=0.001, help="Seconds that one command may take.")]
Python = Annotated[str | None, typer.Option(help="Interpreter that {python} stands for.")]
Read = Annotated[list[Path] | None, typer.Option(help="Folder that commands may read; may be repeated.")]
Protect = Annotated[
    list[str] | None, typer.Option(help="Glob of files taken from A on both sides; may be repeated.")
]
Cpus = Annotated[
    str | None, typer.Option(help="Cores to measure on, such as 3 or 2,3; by default one that is free.")
]


@app.command(rich_help_panel=_PANEL)
def measure(
    context: typer.Context,
    a: Annotated[
        str | None,
        typer.Argument(metavar="A", help="The baseline: a folder, or REPO@REV.", show_default=False),
    ] = None,
    b: Annotated[
        str | None, typer.Argument(metavar="B", help="The candidate, likewise.", show_default=False)
    ] = None,
    benchmark: Benchmark = None,
    metric: Metric = None,
    unit: Unit = None,
    direction: Direction = None,
    instrument: InstrumentName = None,
    validator: Validator = None,
    build: Build = None,
    package: Package = None,
    protect: Protect = None,
    pairs: Annotated[
        int | None, typer.Option(min=6, callback=even_pairs, help="Most pairs; even, at least 6.")
    ] = None,
    min_gain: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="Smallest gain that passes, a fraction.")
    ] = None,
    all_pairs: Annotated[
        bool, typer.Option("--all-pairs", help="Measure every pair, never end early.")
    ] = False,
    cpus: Cpus = None,
    python: Python = None,
    read: Read = None,
    timeout: Timeout = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write everything that recomputing it takes.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write one offline HTML page.")] = None,
    pyperf: Annotated[
        Path | None,
        typer.Option(
            help="Write pyperf JSON, both sides in one file; with {side} in the name, in two files."
        ),
    ] = None,
    saved: Annotated[
        Path | None, typer.Option("--from", help="Measure nothing: take the verdict in a --json file again.")
    ] = None,
) -> None:
    """Is B faster than A? Both are built and measured confined, in randomised pairs, outside any round.

    A side is a folder or a revision, REPO@REV. Files that a command names come from A on both sides. Exit 0
    when B passes, 1 otherwise.

    Example: roundkit measure .@HEAD~1 . --benchmark "python3 bench.py"
    """
    from roundkit.rounds.compare.saved import check_outputs

    check_outputs({"--from": saved, "--json": json_file, "--html": html, "--pyperf": pyperf})
    if saved is not None:
        only_with_from(context)
        comparison = _again(saved)
    else:
        options = compare_options(
            benchmark, metric, unit, direction, instrument,
            validator=validator, build=build, package=package, protect=protect, pairs=pairs,
            min_gain=min_gain, all_pairs=all_pairs, cpus=cpus, python=python, read=read, timeout=timeout,
        )  # fmt: skip
        if a is None or b is None:
            raise typer.BadParameter("name two checkouts, or a file with --from", param_hint="A B")
        if pyperf is not None:
            check_pyperf(options)
        comparison = _measured(a, b, options)
    _write(comparison, json_file, html, pyperf, saved)
    _show(comparison)
    if comparison.verdict.verdict != "pass":
        raise typer.Exit(1)


@app.command(rich_help_panel=_PANEL)
def noise(
    path: Annotated[str, typer.Argument(metavar="PATH", help="The checkout: a folder, or REPO@REV.")],
    benchmark: Annotated[
        str,
        typer.Option(help="Benchmark command, one program and its words; for more, sh -c '…'."),
    ],
    metric: Metric = None,
    unit: Unit = None,
    direction: Direction = None,
    instrument: InstrumentName = None,
    validator: Validator = None,
    build: Build = None,
    package: Package = None,
    pairs: Annotated[
        int | None,
        typer.Option(
            min=6,
            callback=even_pairs,
            help=f"Pairs to run and to plan with; even, at least 6. By default {_NOISE_PAIRS} are run.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out instruments that need trials of their own.")
    ] = False,
    cpus: Cpus = None,
    python: Python = None,
    read: Read = None,
    timeout: Timeout = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the figures and the raw trials.")
    ] = None,
) -> None:
    """How small a gain can this benchmark show on this machine? The checkout is measured against itself.

    Says what about the machine is untuned and changes nothing. Ends with a `noise:` block for campaign.yaml.

    Example: roundkit noise . --benchmark "python3 bench.py" --pairs 20
    """
    from roundkit.cli.compare_tables import show_noise
    from roundkit.cli.trial_progress import TrialProgress
    from roundkit.core.files import write_json
    from roundkit.rounds.compare.saved import check_outputs

    check_outputs({"--json": json_file})
    options = compare_options(
        benchmark, metric, unit, direction, instrument,
        validator=validator, build=build, package=package, protect=None,
        pairs=pairs or _NOISE_PAIRS, planned_pairs=pairs, min_gain=None, all_pairs=True, shared_only=quick,
        cpus=cpus, python=python, read=read, timeout=timeout,
    )  # fmt: skip
    from roundkit.rounds.compare.noise import measure_noise, noise_words

    with TrialProgress("trials") as shown:
        report = measure_noise(path, options, report=shown.say, progress=shown.advance)
    if json_file is not None:
        write_json(json_file, report.to_json_value())
    show_noise(report, noise_words(report))


def _show(comparison: Comparison) -> None:
    from roundkit.cli.compare_tables import show_comparison

    show_comparison(comparison)


def _measured(a: str, b: str, options: CompareOptions) -> Comparison:
    from roundkit.cli.trial_progress import TrialProgress
    from roundkit.rounds.compare.measure import compare

    with TrialProgress("trials") as shown:
        return compare(a, b, options, report=shown.say, progress=shown.advance)


def _again(saved: Path) -> Comparison:
    """Read a comparison, and take its verdict again from the raw samples."""
    from roundkit.core.errors import RoundkitError
    from roundkit.rounds.compare.saved import read_comparison
    from roundkit.rules.comparison import disagreements

    comparison = read_comparison(saved)
    found = disagreements(comparison)
    if found:
        raise RoundkitError(f"{saved} does not agree with itself: {'; '.join(found)}")
    return comparison


def _write(
    comparison: Comparison, json_file: Path | None, html: Path | None, pyperf: Path | None, saved: Path | None
) -> None:
    """Write whatever was asked for."""
    from roundkit.core.files import atomic_write, write_json

    if json_file is not None:
        write_json(json_file, comparison.to_json_value())
    if pyperf is not None:
        from roundkit.analysis.exporters.pyperf import write_pyperf

        write_pyperf(comparison, pyperf)
    if html is not None:
        from roundkit.analysis.charts import pair_gains
        from roundkit.report import comparison_page

        again = json_file or saved
        command = None if again is None else f"roundkit measure --from {shlex.quote(again.name)}"
        atomic_write(html, comparison_page(comparison, pair_gains(comparison), recompute=command).encode())
