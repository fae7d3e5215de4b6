"""Charts of a paired pilot: what came of every tuple, and the calls of variants side by side."""

from __future__ import annotations

import altair as alt
import polars as pl

from roundkit.analysis.charts.theme import BLUE, GREY, INK, MUTED, ORANGE, finish, rows_of, scale_of, tip

_OUTCOMES = ("passed", "failed", "unavailable", "nothing to check")
_COLOURS = (BLUE, ORANGE, GREY, INK)
_PROCESSES = ("completed", "timeout", "error", "aborted", "none")
_SHAPES = ("circle", "triangle-right", "cross", "square", "stroke")
_NARROW = alt.Legend(columns=1)
_PLAIN = alt.Legend(columns=1, symbolFillColor=MUTED, symbolStrokeColor=MUTED)
_ROW_HEIGHT = 36
_BAR = 9


def pilot_outcomes(tuples: pl.LazyFrame) -> alt.LayerChart:
    """What came of every tuple: colour says what the checks decided, shape how the agent ended."""
    frame = (
        tuples.sort("task", "variant", "repetition")
        .select(
            row=pl.format("{} · {}", "task", "variant"),
            repetition="repetition",
            acceptance=pl.col("acceptance").fill_null("nothing to check"),
            process=pl.col("process").fill_null("none"),
            checks=pl.format("{}/{}", "checks_passed", _all_checks()),
            eligible=pl.when(pl.col("eligible")).then(pl.lit("yes")).otherwise(pl.lit("no")),
            order="order",
        )
        .collect()
    )
    counts = frame.group_by("process", maintain_order=True).len().sort("process")
    ended = ", ".join(f"{count} {name}" for name, count in counts.iter_rows()) or "none ended"
    accepted = int((frame["acceptance"] == "passed").sum())
    y = alt.Y("row:N", sort=frame["row"].unique(maintain_order=True).to_list(), title=None, axis=_two_lines())
    x = alt.X("repetition:O", title="repetition", axis=alt.Axis(labelAngle=0, orient="top", domain=False))
    colour = scale_of(_OUTCOMES, _COLOURS, frame["acceptance"].to_list())
    shape = scale_of(_PROCESSES, _SHAPES, frame["process"].to_list())
    tips = tip({
        "row:N": "task and variant", "repetition:O": "repetition", "process:N": "process",
        "acceptance:N": "acceptance", "checks:N": "checks passed", "eligible:N": "eligible",
        "order:O": "place in the order",
    })  # fmt: skip
    points = alt.Chart().mark_point(filled=True, opacity=1, size=160).encode(
        x=x, y=y, tooltip=tips,
        color=alt.Color("acceptance:N", scale=colour, title="acceptance", legend=_NARROW),
        shape=alt.Shape("process:N", scale=shape, title="process", legend=_PLAIN),
    )  # fmt: skip
    words = alt.Chart().mark_text(dx=11, align="left", color=INK).encode(x=x, y=y, text="checks:N")
    return finish(
        [points, words],
        rows_of(frame),
        title="Tuples by task and variant",
        subtitle=f"{accepted} of {frame.height} accepted; {ended}; beside each mark, checks that passed",
        description=f"{frame.height} tuples by task, variant and repetition: {accepted} accepted, {ended}.",
        height=_ROW_HEIGHT * max(1, frame["row"].n_unique()),
    )


def pilot_calls(tuples: pl.LazyFrame) -> alt.LayerChart:
    """Tool calls of every pair, variants next to each other, with those that failed inside."""
    frame = (
        tuples.sort("task", "repetition", "variant")
        .select(
            pair=pl.format("{} · {}", "task", "repetition"),
            variant="variant",
            calls="calls",
            failed_calls="failed_calls",
            missing=pl.when(pl.col("calls").is_null()).then(pl.lit("no record")),
        )
        .collect()
    )
    variants = frame["variant"].unique(maintain_order=True).sort().to_list()
    calls, failed = int(frame["calls"].sum()), int(frame["failed_calls"].sum())
    pairs = frame["pair"].unique(maintain_order=True).to_list()
    y = alt.Y("pair:N", sort=pairs, title=None, axis=_two_lines())
    offset = alt.YOffset("variant:N", scale=alt.Scale(domain=variants))
    tips = tip({
        "pair:N": "task and repetition", "variant:N": "variant", "calls:Q": "calls",
        "failed_calls:Q": "of them failed",
    })  # fmt: skip
    x = alt.X(
        "calls:Q",
        title="calls",
        axis=alt.Axis(format=",d", tickMinStep=1),
    )
    everything = alt.Chart().mark_bar(size=_BAR).encode(
        x=x, y=y, yOffset=offset, tooltip=tips,
        color=alt.Color(
            "variant:N",
            scale=alt.Scale(domain=variants, range=_shades(variants)),
            title=None,
            legend=_NARROW,
        ),
    )  # fmt: skip
    broken = (
        alt.Chart()
        .mark_bar(size=3, color=ORANGE)
        .encode(x=alt.X("failed_calls:Q"), y=y, yOffset=offset, tooltip=tips)
    )
    return finish(
        [everything, broken],
        rows_of(frame),
        title="Tool calls",
        subtitle=f"{calls:,} calls, of which {failed:,} failed; the narrow bars are those that failed",
        description=f"Calls of {frame.height} tuples, pairs side by side: {calls} calls, {failed} failed.",
        height=(10 + (_BAR + 3) * max(1, len(variants))) * max(1, frame["pair"].n_unique()),
    )


def _two_lines() -> alt.Axis:
    return alt.Axis(labelExpr="split(datum.label, ' · ')", labelOverlap=False, labelLimit=240)


def _all_checks() -> pl.Expr:
    return pl.col("checks_passed") + pl.col("checks_failed") + pl.col("checks_unavailable")


def _shades(variants: list[str]) -> list[str]:
    shades = (BLUE, GREY, INK)
    return [shades[number % len(shades)] for number in range(len(variants))]
