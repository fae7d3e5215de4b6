"""What ``measure`` and ``noise`` print."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer
from rich.table import Table
from rich.text import Text

from roundkit.cli.tables import console, percent
from roundkit.core.text import rounded, visible
from roundkit.models.instruments import INSTRUCTIONS_SAY_NOTHING

if TYPE_CHECKING:
    from roundkit.host.tuning import TuningFact
    from roundkit.models.comparison import Comparison, InstrumentNoise, NoiseReport
    from roundkit.models.run_spec import RunSpec
    from roundkit.models.verdict import VerdictRecord

_UNKNOWN = "–"
_LABEL = len("autocorrelation")
_ROOM_FOR_NOISE = 130
"""Columns that a row of an instrument's figures takes."""
_NO_METRIC = (
    'A benchmark writes {"metrics": {"NAME": 1.23}} to the file named in ROUNDKIT_RESULT_PATH; without'
    " --metric its wall time counts."
)

_SAME_FILES = (
    "A and B have the same files: there is nothing between them to measure, and what differs is the machine's"
    " noise."
)


def show_comparison(comparison: Comparison) -> None:
    """Print the figures behind a verdict, then the verdict as the last line."""
    from roundkit.rules.comparison import early_note, limit_hint, same_files, verdict_sentence

    verdict, metric = comparison.verdict, comparison.run_spec.metric
    plan = comparison.plan
    for letter, side, median in (
        ("A", plan.baseline, verdict.baseline_median),
        ("B", plan.candidate, verdict.candidate_median),
    ):
        figure = "" if median is None else f", median {rounded(median, 6)} {metric.unit}"
        typer.echo(visible(f"{letter}: {side.given} ({side.kind} {side.commit[:10]}){figure}"))
    if verdict.gain is not None:
        typer.echo(_gain_line(verdict, metric.name))
    notes = [early_note(comparison), _SAME_FILES if same_files(plan) else None]
    notes += [_forgeable(comparison.run_spec), limit_hint(comparison.run_spec, verdict.reason)]
    if verdict.reason.endswith("-result"):
        notes.append(_NO_METRIC)
    untuned = [fact.name for fact in comparison.environment.tuning if fact.tuned is False]
    if untuned and verdict.verdict == "not-measured":
        notes.append(f"Untuned on this machine: {', '.join(untuned)}; `roundkit noise` says more.")
    notes += _quieter(comparison)
    for note in filter(None, notes):
        typer.echo(note)
    typer.echo(visible(verdict_sentence(comparison)))


def _quieter(comparison: Comparison) -> tuple[str, ...]:
    """Return what CPU time would show, where wall-clock time could not tell; empty where that is no help."""
    from roundkit.rules.comparison import same_files
    from roundkit.rules.quieter import quieter_than_wall

    verdict, spec, record = comparison.verdict, comparison.run_spec, comparison.experiment
    if verdict.verdict != "not-measured" or record is None or same_files(comparison.plan):
        return ()
    quieter = quieter_than_wall(record, spec)
    if quieter is None:
        return ()
    return (*quieter.words(), "To let it decide, measure anew with --instrument cpu.")


def _forgeable(spec: RunSpec) -> str | None:
    """Return who could forge the figures; None where nobody could."""
    if spec.counting_tool == "valgrind":
        return (
            "Forgeable: valgrind counts in the memory of the process that runs the program, which could"
            " change its count, or have code run uncounted."
        )
    if spec.benchmark.instrument == "reported" and spec.forgeable:
        return "Forgeable: the figures are reported by the process that runs B, so B could forge them."
    return None


def _gain_line(verdict: VerdictRecord, metric: str) -> str:
    ends = ""
    if verdict.low is not None and verdict.high is not None:
        ends = f" (95 %: {percent(verdict.low)} to {percent(verdict.high)})"
    return visible(f"gain in {metric}: {percent(verdict.gain)}{ends}, {verdict.pairs} pairs")


def show_noise(report: NoiseReport, words: Sequence[str]) -> None:
    """Print a benchmark's noise, the machine's state, and the block for a campaign."""
    out = console()
    out.print(_noise_table(report.instruments, narrow=out.width < _ROOM_FOR_NOISE))
    if any(row.instrument == "instructions" and row.pairs for row in report.instruments):
        out.print(Text(INSTRUCTIONS_SAY_NOTHING))
    for spec in report.run_specs:
        if spec.counting_tool == "valgrind":
            out.print(Text(_forgeable(spec) or ""))
    out.print(_tuning_table(report.environment.tuning))
    for line in words:
        typer.echo(visible(line))
    if report.noise is None:
        typer.echo("no block for campaign.yaml: the chosen instrument has no figures")
        return
    typer.echo("\nfor campaign.yaml, under test_plan:")
    typer.echo(visible(noise_yaml(report)))


def noise_yaml(report: NoiseReport) -> str:
    """Return the ``noise:`` block of a campaign's test plan, indented as it stands there."""
    from roundkit.core.yamlfile import dump_yaml

    assert report.noise is not None
    block = dump_yaml({"noise": report.noise.to_json_value()}).decode().rstrip("\n")
    return textwrap.indent(block, "  ")


def _noise_table(rows: Sequence[InstrumentNoise], *, narrow: bool) -> Table:
    """Return a row an instrument; on a narrow terminal a column an instrument, so that no figure is cut."""
    table = Table(title="the same against itself, by instrument", title_justify="left")
    gains = [need.gain for need in next((row.needed for row in rows if row.needed), ())]
    headings = [
        "instrument", "pairs", "median", "sigma", "autocorrelation", "order effect (95 %)",
        *(f"pairs for {100 * gain:.0f} %" for gain in gains), "these pairs show",
    ]  # fmt: skip
    lines = [_noise_cells(row) for row in rows]
    lines = [headings, *([*cells, *[""] * (len(headings) - len(cells))] for cells in lines)]
    first, *others = [cells[0] for cells in lines] if narrow else headings
    table.add_column(first, width=_LABEL if narrow else None)
    for heading in others:
        table.add_column(heading, justify="right", overflow="fold")
    for cells in list(zip(*lines, strict=True))[1:] if narrow else lines[1:]:
        table.add_row(*(Text(visible(cell or _UNKNOWN)) for cell in cells))
    return table


def _noise_cells(row: InstrumentNoise) -> list[str]:
    if row.missing:
        return [row.instrument, "none"]
    order = _UNKNOWN
    if row.order_effect is not None and row.order_low is not None and row.order_high is not None:
        order = f"{percent(row.order_effect)} ({percent(row.order_low)} to {percent(row.order_high)})"
    return [
        row.instrument,
        str(row.pairs),
        _UNKNOWN if row.median is None else f"{rounded(row.median, 6)} {row.unit}",
        _UNKNOWN if row.sigma is None else f"{100 * row.sigma:.3g} %",
        _UNKNOWN if row.autocorrelation is None else f"{row.autocorrelation:+.2f}",
        order,
        *(str(need.pairs) for need in row.needed),
        _UNKNOWN if row.detectable is None else f"{100 * row.detectable:.2g} %",
    ]


def _tuning_table(facts: Sequence[TuningFact]) -> Table:
    table = Table(title="the machine, as it was found", title_justify="left")
    for heading in ("what", "found", "state", "advice"):
        table.add_column(heading)
    words = {True: "tuned", False: "UNTUNED", None: "not told by this host"}
    for fact in facts:
        cells = (fact.name, fact.found or _UNKNOWN, words[fact.tuned], fact.advice)
        table.add_row(*(Text(visible(cell)) for cell in cells))
    return table
