"""A comparison as one small offline page: verdict, interval, chart of pairs, trials, machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roundkit.core.text import counted
from roundkit.models.comparison import Comparison
from roundkit.report.facts import facts_list, pair_cells
from roundkit.report.html import chart_parts, render_html
from roundkit.report.markup import escape, interval, moment, number, percent
from roundkit.report.round_words import FORGEABLE, warnings
from roundkit.report.views import Figure, Heading, Html, Missing, Table, figure
from roundkit.rules.comparison import early_note, verdict_sentence

if TYPE_CHECKING:
    import altair as alt

_WIDTH = 880


def comparison_page(comparison: Comparison, pairs: alt.LayerChart, *, recompute: str | None = None) -> str:
    """Return the page, whole: no script of a chart library, nothing from a network.

    Args:
        comparison: What was measured.
        pairs: The chart of its pairs.
        recompute: The command that takes the verdict again.
    """
    import nbformat.v4 as v4

    def shown(*parts: str) -> Any:
        outputs = [v4.new_output("display_data", {"text/html": part}) for part in parts]  # type: ignore[no-untyped-call]
        return v4.new_code_cell(outputs=outputs)  # type: ignore[no-untyped-call]

    def heading(text: str) -> Any:
        return v4.new_markdown_cell(f"## {text}")  # type: ignore[no-untyped-call]

    cells = [
        shown(_headline(comparison).markup),
        shown(still_figure(figure(pairs))),
        heading("Trials"),
        shown(_trials(comparison).to_html()),
        heading("How it was measured"),
        shown(facts_list(_protocol(comparison, recompute)).markup),
        heading("The machine"),
        shown(facts_list(_machine(comparison)).markup, _tuning(comparison).to_html()),
    ]
    notebook = v4.new_notebook(cells=cells)  # type: ignore[no-untyped-call]
    return render_html(notebook, title=verdict_sentence(comparison))


def still_figure(drawn: Figure) -> str:
    """Return a chart as inline SVG with its title, its description and the table of its rows.

    Colours are those of the theme, which the page's style turns for a dark screen.
    """
    import vl_convert

    parts = chart_parts(drawn.spec)
    plain = {key: value for key, value in drawn.spec.items() if key != "title"}
    svg = vl_convert.vegalite_to_svg({**plain, "width": _WIDTH}) if drawn.table.rows else ""
    table = drawn.table.to_html()
    chart = (
        f'<div class="rk-chart rk-still" role="img" aria-label="{escape(parts.description)}">{svg}</div>'
        f'<details class="rk-data"><summary>Table of these values</summary>{table}</details>'
    )
    return (
        f'<figure class="rk-figure"><figcaption><strong>{escape(parts.title)}</strong>'
        f"<span>{escape(parts.subtitle)}</span></figcaption>{chart if svg else table}</figure>"
    )


def _headline(comparison: Comparison) -> Html:
    verdict, metric, plan = comparison.verdict, comparison.run_spec.metric, comparison.plan
    instrument = comparison.run_spec.benchmark.instrument
    sentence = verdict_sentence(comparison)
    figures = (
        ("gain", _or_none(verdict.gain, percent)),
        ("95 % interval", interval(verdict.low, verdict.high) or "none"),
        ("pairs", str(verdict.pairs)),
        (f"A, median {metric.unit}", _or_none(verdict.baseline_median, number)),
        (f"B, median {metric.unit}", _or_none(verdict.candidate_median, number)),
    )
    # A clock of the coordinator's own is not the candidate's to forge, in whichever process it runs.
    known = [note for note in warnings(comparison.run_spec) if note != FORGEABLE or instrument == "reported"]
    notes = [early_note(comparison), *known]
    warned = "".join(f'<p class="rk-provenance">{escape(note)}</p>' for note in notes if note)
    sides = f"A: {_named(plan.baseline.given)}; B: {_named(plan.candidate.given)}"
    return Html(
        f'<header class="rk-head"><p class="rk-eyebrow">Comparison of two checkouts, '
        f"{moment(plan.planned_utc)}</p><h1>{escape(_short(comparison))}</h1>{warned}"
        f'<p class="rk-lead"><span class="rk-verdict" data-verdict="{verdict.verdict}">'
        f"{verdict.verdict}</span> "
        f"{escape(sentence.removeprefix(f'{verdict.verdict}: '))}</p>"
        f'<p class="rk-statement">{escape(sides)}</p>'
        f'<dl class="rk-figures">{pair_cells(figures)}</dl></header>',
        sentence,
    )


def _short(comparison: Comparison) -> str:
    verdict, name = comparison.verdict, comparison.run_spec.metric.name
    match verdict.verdict:
        case "pass" if verdict.gain is not None:
            return f"B is better than A: a gain of {percent(verdict.gain)} in {name}"
        case "fail" if verdict.gain is not None and verdict.gain < 0:
            return f"B is worse than A: a loss of {percent(-verdict.gain)} in {name}"
        case "fail":
            return "B does not pass"
        case "invalid":
            return "The measurement broke"
    return "No difference was shown"


def _or_none(value: float | None, shown: Any) -> str:
    return "none" if value is None else str(shown(value))


def _trials(comparison: Comparison) -> Table:
    record, unit = comparison.experiment, comparison.run_spec.metric.unit
    rows = []
    for trial in () if record is None else record.trials:
        pair = "warm-up" if trial.planned.pair is None else str(trial.planned.pair + 1)
        value = Missing(f"{trial.problem}: {trial.detail}") if trial.value is None else trial.value
        read = trial.resources
        rows.append(
            (trial.planned.index + 1, pair, trial.planned.order, trial.planned.side, value,
             read.wall_s, read.cpu_s, read.load_1min)
        )  # fmt: skip
    return Table(
        "Trials, in order of time",
        (
            Heading("trial", "number"), Heading("pair"), Heading("order"), Heading("side"),
            Heading(unit, "number"), Heading("wall (s)", "number"), Heading("CPU (s)", "number"),
            Heading("load", "number"),
        ),
        tuple(rows),
        empty="No trial was run.",
    )  # fmt: skip


def _protocol(comparison: Comparison, recompute: str | None) -> list[tuple[str, str]]:
    spec, plan, verdict = comparison.run_spec, comparison.plan, comparison.verdict
    record = comparison.experiment
    rows = [
        ("A", f"{_named(plan.baseline.given)}, {plan.baseline.kind} {plan.baseline.commit}"),
        ("B", f"{_named(plan.candidate.given)}, {plan.candidate.kind} {plan.candidate.commit}"),
        ("benchmark", " ".join(map(_named, spec.benchmark.argv or ()))),
        ("instrument", spec.benchmark.instrument),
        ("metric", f"{spec.metric.name} in {spec.metric.unit}, {spec.metric.direction} is better"),
        ("files from A on both sides", ", ".join(spec.protected_paths)),
        ("evidence", f"z = {number(verdict.z)}" if verdict.z is not None else "none"),
        ("evidence needed", number(verdict.z_required) if verdict.z_required is not None else "none"),
        ("smallest gain that passes", percent(spec.gates.min_gain)),
        ("could have shown", _or_none(verdict.smallest_detectable_gain, percent)),
        ("experiments before it that decided nothing", counted(len(comparison.earlier), "experiment")),
    ]
    if record is not None and record.lease is not None:
        rows.append(("measured on", f"cores {', '.join(record.lease.devices)}"))
    return rows if recompute is None else [*rows, ("recompute with", recompute)]


def _machine(comparison: Comparison) -> list[tuple[str, str]]:
    where = comparison.environment
    return [
        ("machine", where.machine),
        ("system", where.system),
        ("roundkit", f"{where.roundkit} on Python {where.python}"),
        ("interpreter of the benchmark", _named(comparison.run_spec.runtime.python)),
    ]


def _named(word: str) -> str:
    """Return a word of a command line; of an absolute path its last part, since a page is for others."""
    return f"…/{word.rstrip('/').rpartition('/')[2]}" if word.startswith("/") else word


def _tuning(comparison: Comparison) -> Table:
    words = {True: "tuned", False: "untuned", None: "not told by this host"}
    return Table(
        "What times depend on",
        (Heading("what"), Heading("found"), Heading("state"), Heading("advice", "prose")),
        tuple(
            (fact.name, fact.found, words[fact.tuned], fact.advice or None)
            for fact in comparison.environment.tuning
        ),
    )
