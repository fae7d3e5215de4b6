"""``measure`` and ``noise``: is B faster than A, and how much of a difference could this machine show?"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundkit.cli.app import app
from roundkit.cli.compare_options import (
    BENCHMARK,
    COMMANDS,
    HOW,
    OUTPUTS,
    Shared,
    check_pyperf,
    compare_options,
    given,
    only_with_from,
    pairs_option,
    with_shared_options,
)
from roundkit.cli.progress import shown_progress

if TYPE_CHECKING:
    from roundkit.models.comparison import Comparison

_PANEL = "Start here"


@app.command(rich_help_panel=_PANEL)
@with_shared_options
def measure(
    context: typer.Context,
    a: Annotated[
        str | None,
        typer.Argument(metavar="A", help="The baseline: a folder, or REPO@REV.", show_default=False),
    ] = None,
    b: Annotated[
        str | None, typer.Argument(metavar="B", help="The candidate, likewise.", show_default=False)
    ] = None,
    benchmark: Annotated[str | None, BENCHMARK] = None,
    *,
    shared: Shared,
    protect: Annotated[
        list[str] | None,
        typer.Option(
            help="Glob of files taken from A on both sides; may be repeated.", rich_help_panel=COMMANDS
        ),
    ] = None,
    pairs: Annotated[int | None, pairs_option("Most pairs")] = None,
    min_gain: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, help="Smallest gain that passes, a fraction.", rich_help_panel=HOW),
    ] = None,
    all_pairs: Annotated[
        bool,
        typer.Option("--all-pairs", help="Measure every pair, never end early.", rich_help_panel=HOW),
    ] = False,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", help="Write everything that recomputing it takes.", rich_help_panel=OUTPUTS),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write one offline HTML page.", rich_help_panel=OUTPUTS)
    ] = None,
    pyperf: Annotated[
        Path | None,
        typer.Option(
            help="Write pyperf JSON, both sides in one file; with {side} in the name, in two files.",
            rich_help_panel=OUTPUTS,
        ),
    ] = None,
    saved: Annotated[
        Path | None, typer.Option("--from", help="Measure nothing: take the verdict in a --json file again.")
    ] = None,
) -> None:
    """Is B faster than A? Both are built and measured confined, in randomised pairs, outside any round.

    A side is a folder or a revision, REPO@REV. Files that a command names come from A on both sides.

    Examples:
        # Did the last commit, or what is not committed yet, make it faster?
        roundkit measure .@HEAD~1 . --benchmark "python3 bench.py"
        roundkit measure old new --build "make -s" --benchmark "./bench"
        # Keep everything, and take the verdict again elsewhere
        roundkit measure .@v1 .@v2 --benchmark "./bench" --json saved.json
        roundkit measure --from saved.json --html page.html

    Exit codes:
        0: B is faster by at least the line, and its outputs are right
        1: it is not, or the measurement cannot tell, or it was interrupted

    Variables:
        TMPDIR: Where the copies of both sides lie.
        ROUNDKIT_LEASE_ROOT: Folder of the leases on this machine's cores.
    """
    from roundkit.cli.compare_tables import show_comparison
    from roundkit.core.outputs import check_outputs

    check_outputs({"--from": saved, "--json": json_file, "--html": html, "--pyperf": pyperf})
    if saved is not None:
        only_with_from(context)
        comparison = _again(saved)
    else:
        options = compare_options(
            benchmark, shared, protect=protect, pairs=pairs, min_gain=min_gain, all_pairs=all_pairs
        )
        if a is None or b is None:
            raise typer.BadParameter("name two checkouts, or a file with --from", param_hint="A B")
        if pyperf is not None:
            check_pyperf(options)
        from roundkit.rounds.compare.measure import compare

        with shown_progress(stderr=True) as progress:
            comparison = compare(a, b, options, progress=progress)
    _write(comparison, json_file, html, pyperf, saved)
    show_comparison(comparison)
    if comparison.verdict.verdict != "pass":
        raise typer.Exit(1)


@app.command(rich_help_panel=_PANEL)
@with_shared_options
def noise(
    context: typer.Context,
    path: Annotated[str, typer.Argument(metavar="PATH", help="The checkout: a folder, or REPO@REV.")],
    benchmark: Annotated[str, BENCHMARK],
    *,
    shared: Shared,
    pairs: Annotated[
        int, pairs_option("Pairs to run, and where given, to plan with, else the template's")
    ] = 20,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Leave out instruments that need trials of their own.", rich_help_panel=HOW
        ),
    ] = False,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", help="Write the figures and the raw trials.", rich_help_panel=OUTPUTS),
    ] = None,
) -> None:
    """How small a gain can this benchmark show on this machine? The checkout is measured against itself.

    Says what about the machine is untuned and changes nothing. Ends with a `noise:` block for campaign.yaml.

    Examples:
        roundkit noise . --benchmark "python3 bench.py"
        # The last commit alone, and only what its trials show anyhow
        roundkit noise .@HEAD --benchmark "python3 bench.py" --pairs 12 --quick

    Variables:
        TMPDIR: Where the copies of the checkout lie.
        ROUNDKIT_LEASE_ROOT: Folder of the leases on this machine's cores.
    """
    from roundkit.cli.compare_tables import show_noise
    from roundkit.core.files import write_json
    from roundkit.core.outputs import check_outputs

    check_outputs({"--json": json_file})
    planned = pairs if given(context, "pairs") else None
    options = compare_options(
        benchmark, shared, pairs=pairs, planned_pairs=planned, all_pairs=True, shared_only=quick
    )
    from roundkit.rounds.compare.noise import measure_noise, noise_words

    with shown_progress(stderr=True) as progress:
        report = measure_noise(path, options, progress=progress)
    if json_file is not None:
        write_json(json_file, report.to_json_value())
    show_noise(report, noise_words(report))


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
