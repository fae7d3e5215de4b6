"""Charts of a wave campaign: what was banked, what workers bought, 429s by source, rejects."""

from __future__ import annotations

import altair as alt
import polars as pl

from roundkit.analysis.charts.theme import (
    BLUE,
    GREEN,
    GREY,
    INK,
    MUTED,
    ORANGE,
    SKY,
    YELLOW,
    finish,
    rows_of,
    scale_of,
    tip,
    where_known,
    whole_numbers,
)

_STAGES = ("banked", "gated, not banked", "drafted, not gated", "not drafted")
_STAGE_COLOURS = (BLUE, SKY, GREY, "#d9dee3")
_UNDECIDED = "not decided"
_DECISIONS = ("clean", "burst", "held", "stall", "sustained-429", "platform-429", _UNDECIDED)
_DECISION_COLOURS = (BLUE, SKY, GREY, YELLOW, ORANGE, INK, MUTED)
_DECISION_SHAPES = ("circle", "triangle-up", "square", "diamond", "cross", "triangle-down", "stroke")
_SOURCES = ("platform", "provider")
_SOURCE_COLOURS = (INK, ORANGE)
_ROW_HEIGHT = 30
_HEIGHT = 220
_TEXT_ROWS = 12
_LONG_LABEL = 200
_ROOM_FOR_NUMBERS = 1.25
MOST_REASONS = 12
"""Reasons that have a row of their own; the others of a stage share one."""


def banked_by_wave(waves: pl.LazyFrame) -> alt.LayerChart:
    """How far the targets of each wave came: not drafted, drafted, gated, banked."""
    left = {
        "banked": pl.col("banked"),
        "gated, not banked": pl.col("gated") - pl.col("banked"),
        "drafted, not gated": pl.col("drafts") - pl.col("gated"),
        "not drafted": (pl.col("targets") - pl.col("drafts")).clip(0),
    }
    ranked = pl.concat(
        [
            waves.select(
                wave=_label(), came=pl.lit(came), targets=count, banked="banked",
                gate_s=pl.col("gate_s").round(1), _order=pl.lit(number),
                _number=pl.col("gated_utc").rank("ordinal"),
            )
            for number, (came, count) in enumerate(left.items())
        ]
    )  # fmt: skip
    frame = ranked.sort("_number", "_order").collect()
    order = frame["wave"].unique(maintain_order=True).to_list()
    colour = alt.Color(
        "came:N",
        scale=alt.Scale(domain=_STAGES, range=_STAGE_COLOURS),
        title=None,
        legend=alt.Legend(columns=2),  # more of these names are wider than a phone
    )
    x = alt.X("targets:Q", title="targets, and drafts beyond one of each", axis=alt.Axis(format="d"))
    y = alt.Y("wave:N", sort=order, title=None)
    tips = tip({"wave:N": "wave", "came:N": "came to be", "targets:Q": "targets", "gate_s:Q": "gate (s)"})
    bars = alt.Chart().mark_bar(height=16).encode(
        x=x, y=y, color=colour, order=alt.Order("_order:Q"), tooltip=tips
    )  # fmt: skip
    words = (
        alt.Chart()
        .transform_filter("datum._order === 0")
        .mark_text(align="left", dx=4, color="#ffffff", fontWeight="bold")
        .encode(x=alt.datum(0), y=y, text="banked:Q")
    )
    banked = int(waves.select(pl.col("banked").sum()).collect().item() or 0)
    return finish(
        [bars, words],
        rows_of(frame),
        title="What each wave banked",
        subtitle=f"{banked} targets in all; a row a gate, the number of banked ones in its bar",
        description=f"{banked} banked targets over {len(order)} gates of waves.",
        height=_ROW_HEIGHT * max(2, len(order)),
    )


def throughput_by_workers(waves: pl.LazyFrame) -> alt.LayerChart:
    """What workers bought in requests a minute, and what the policy made of it, wave after wave."""
    frame = (
        waves.filter(pl.col("mode") == "wave")
        .sort("tag")
        .select(
            wave="tag",
            workers="workers",
            per_minute=pl.col("per_minute").round(1),
            decision=pl.col("decision").fill_null(_UNDECIDED),
            next_workers="next_workers",
            missing="missing",
        )
        .collect()
    )
    known = frame["per_minute"].drop_nulls().len()
    x = alt.X("workers:Q", title="workers", axis=alt.Axis(format="d", tickMinStep=1), scale=_loose())
    y = alt.Y("per_minute:Q", title="requests a minute", scale=alt.Scale(zero=True))
    colours = scale_of(_DECISIONS, _DECISION_COLOURS, frame["decision"].to_list())
    shapes = scale_of(_DECISIONS, _DECISION_SHAPES, frame["decision"].to_list())
    tips = tip({
        "wave:N": "wave", "workers:Q": "workers", "per_minute:Q": "requests a minute",
        "decision:N": "decision", "next_workers:Q": "workers of the next wave",
    })  # fmt: skip
    measured = alt.Chart().transform_filter("datum.per_minute !== null")
    line = measured.mark_line(color="#8a949e", strokeWidth=1.5).encode(
        x=x, y=y, order=alt.Order("wave:O")
    )  # fmt: skip
    points = measured.mark_point(filled=True, opacity=1, size=110).encode(
        x=x, y=y, tooltip=tips,
        color=alt.Color("decision:N", scale=colours, title="decision"),
        shape=alt.Shape("decision:N", scale=shapes, title="decision"),
    )  # fmt: skip
    words = measured.mark_text(dy=-14, color=INK).encode(x=x, y=y, text="wave:N")
    unknown = (
        alt.Chart()
        .transform_filter("datum.per_minute === null")
        .transform_calculate(_why="datum.wave + ': ' + datum.missing")
        .transform_window(_row="row_number()", groupby=["workers"])
        .mark_text(fontStyle="italic", color=MUTED)
        .encode(x=x, y=alt.Y("_row:Q", axis=None, scale=alt.Scale(domain=[0, _TEXT_ROWS])), text="_why:N")
    )
    return finish(
        [
            *where_known(frame, "per_minute", line, points, words),
            *([unknown] if known < frame.height else []),
        ],
        rows_of(frame),
        title="Throughput against workers",
        subtitle=f"{known} of {frame.height} waves were long enough for a rate; a line joins them in order",
        description=f"Requests a minute against workers for {known} of {frame.height} waves.",
        height=_HEIGHT,
    )


def refusals_by_source(minutes: pl.LazyFrame) -> alt.LayerChart:
    """Which 429s came when: of our own account, or of the pool behind it."""
    totals = (
        minutes.group_by("minute_utc")
        .agg(
            waves=pl.col("tag").unique().sort().str.join(", "),
            posts=pl.col("posts").sum(),
            platform=pl.col("platform_429").sum(),
            provider=pl.col("provider_429").sum(),
        )
        .sort("minute_utc")
        .with_columns(minute=(pl.col("minute_utc") - pl.col("minute_utc").min()).dt.total_minutes())
        .collect()
    )
    frame = totals.unpivot(
        _SOURCES, index=["minute", "waves", "posts"], variable_name="source", value_name="refused"
    ).sort("minute", "source")
    sums = {source: int(totals[source].sum()) for source in _SOURCES}
    most = int(totals.select(pl.max_horizontal("platform", "provider").max()).item() or 1)
    whole = whole_numbers(most)
    x = alt.X("minute:O", title="minute of the campaign", axis=alt.Axis(labelAngle=0))
    colour = alt.Color("source:N", scale=alt.Scale(domain=_SOURCES, range=_SOURCE_COLOURS), title="429 of")
    tips = tip({
        "minute:O": "minute", "waves:N": "waves", "source:N": "429 of", "refused:Q": "429s",
        "posts:Q": "requests",
    })  # fmt: skip
    bars = alt.Chart().mark_bar().encode(
        x=x, y=alt.Y("refused:Q", title="429s a minute", axis=whole), color=colour, tooltip=tips
    )  # fmt: skip
    words = alt.Chart().transform_filter("datum.refused > 0").mark_text(dy=-6, color=INK).encode(
        x=x, y=alt.Y("refused:Q", stack="zero", axis=whole), text=alt.Text("source:N"), detail="source:N"
    )  # fmt: skip
    return finish(
        [bars, words],
        rows_of(frame),
        title="429s by source",
        subtitle=f"{sums['platform']} of our own account (platform), {sums['provider']} of pools (provider)",
        description=f"429s by minute: {sums['platform']} of the platform, {sums['provider']} of providers.",
        height=_HEIGHT,
    )


def reject_reasons(rejects: pl.LazyFrame) -> alt.LayerChart:
    """Why drafts did not bank, by the stage that said so."""
    frame = (
        rejects.group_by("stage", "kind")
        .agg(drafts=pl.len().cast(pl.Int64))
        .sort("drafts", "stage", "kind", descending=[True, False, False])
        .select(reason=pl.format("{}: {}", "stage", "kind"), stage="stage", drafts="drafts")
        .collect()
    )
    total = int(frame["drafts"].sum())
    if frame.height > MOST_REASONS:
        rest = frame.slice(MOST_REASONS).group_by("stage").agg(pl.col("drafts").sum()).sort("stage")
        others = rest.select(reason=pl.format("{}: other reasons", "stage"), stage="stage", drafts="drafts")
        frame = pl.concat([frame.head(MOST_REASONS), others])
    stages = ("owner", "prefilter", "score", "gate", "parked")
    colour = alt.Color(
        "stage:N", scale=alt.Scale(domain=stages, range=(GREY, SKY, GREEN, BLUE, YELLOW)), legend=None
    )
    labels = alt.Axis(
        labelExpr="split(replace(datum.label, ': ', '\\n'), '\\n')",
        labelLimit=_LONG_LABEL,
        labelOverlap=False,
    )
    # A number stands to the right of its bar, where nothing else makes room for it.
    room = alt.Scale(domainMin=0, domainMax=_ROOM_FOR_NUMBERS * int(frame["drafts"].max() or 1))  # type: ignore[arg-type]
    y = alt.Y("reason:N", sort=frame["reason"].to_list(), title=None, axis=labels)
    bars = alt.Chart().mark_bar(height=16).encode(
        x=alt.X("drafts:Q", title="drafts", axis=alt.Axis(format="d", tickMinStep=1), scale=room),
        y=y, color=colour,
        tooltip=tip({"reason:N": "reason", "drafts:Q": "drafts"}),
    )  # fmt: skip
    words = alt.Chart().mark_text(align="left", dx=4, color=INK).encode(
        x="drafts:Q", y=y, text="drafts:Q"
    )  # fmt: skip
    return finish(
        [bars, words],
        rows_of(frame),
        title="Why drafts did not bank",
        subtitle=f"{total} drafts; each is indexed with its reason and stays on the disk",
        description=f"{total} drafts that did not bank, by stage and reason.",
        height=_ROW_HEIGHT * max(2, frame.height),
    )


def _label() -> pl.Expr:
    return (
        pl.when(pl.col("mode") == "wave").then(pl.col("tag")).otherwise(pl.format("{} ({})", "tag", "mode"))
    )


def _loose() -> alt.Scale:
    return alt.Scale(zero=False, padding=20)
