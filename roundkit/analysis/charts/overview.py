"""Charts over many rounds: verdicts by round, how gains are spread, and the chain of incumbents over time."""

from __future__ import annotations

from collections import Counter

import altair as alt
import polars as pl

from roundkit.analysis.charts.branches import state_of
from roundkit.analysis.charts.theme import (
    BLUE,
    GREY,
    INK,
    MOST_MARKS,
    MUTED,
    STATES,
    finish,
    horizontal,
    percent,
    rows_of,
    state_scales,
    tip,
    vertical,
    whole_numbers,
)

MOST_GROUPS = 40
"""Rounds, or campaigns, that get a row of their own; beyond it they are summed up, and the chart says so."""

_BINS = 60
_HEIGHT = 240
_ROW_HEIGHT = 30


def verdict_counts(tickets: pl.LazyFrame) -> alt.LayerChart:
    """How many tickets had which verdict: a row a round, or a campaign where rounds are many."""
    counts = (
        tickets.group_by("campaign", "round", verdict=state_of())
        .agg(tickets=pl.len().cast(pl.Int64))
        .sort("campaign", "round", "verdict")
        .collect(engine="streaming")
    )
    frame, shown = _grouped(counts)
    total, groups = int(counts["tickets"].sum()), frame["group"].n_unique()
    present = [state for state in STATES if state in frame["verdict"].to_list()]
    x = alt.X("verdict:N", sort=present, title=None, axis=alt.Axis(labelAngle=0, orient="top", domain=False))
    y = alt.Y("group:N", sort=frame["group"].unique(maintain_order=True).to_list(), title=None)
    colour, shape = state_scales(present)
    points = alt.Chart().mark_point(filled=True, opacity=1).encode(
        x=x, y=y, color=colour.legend(None), shape=shape.legend(None),
        size=alt.Size("tickets:Q", scale=alt.Scale(type="sqrt", range=[12, 260]), legend=None),
        tooltip=tip({"group:N": "group", "verdict:N": "verdict", "tickets:Q": "tickets"}),
    )  # fmt: skip
    words = alt.Chart().mark_text(dx=16, align="left", color=INK).encode(x=x, y=y, text="tickets:Q")
    return finish(
        [points, words],
        rows_of(frame),
        title="Verdicts",
        subtitle=f"{total:,} tickets, counted by {shown}",
        description=f"{total} tickets by {shown} and verdict, in rows by group: {groups}.",
        height=_ROW_HEIGHT * max(1, groups),
    )


def _grouped(counts: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """Return counts by round, else by campaign, else all together, and what that is in words."""
    several = counts["campaign"].n_unique() > 1
    by_round = pl.format("{} · {}", "campaign", "round") if several else pl.col("round")
    ways = (("round", by_round), ("campaign", pl.col("campaign")), ("verdict alone", pl.lit("all tickets")))
    for shown, group in ways:  # noqa: B007 - the last one stands
        frame = counts.group_by(group=group, verdict="verdict", maintain_order=True).agg(
            pl.col("tickets").sum()
        )
        if frame["group"].n_unique() <= MOST_GROUPS:
            break
    return frame, shown


def gain_distribution(tickets: pl.LazyFrame) -> alt.LayerChart:
    """How the estimated gains of all tickets are spread, and how many of them passed."""
    gain = pl.col("gain") * 100
    known = tickets.filter(pl.col("gain").is_not_null())
    low, high, counted, unknown = (
        tickets.select(
            low=gain.quantile(0.005), high=gain.quantile(0.995), counted=pl.col("gain").count(),
            unknown=pl.col("gain").is_null().sum(),
        )
        .collect()
        .row(0)
    )  # fmt: skip
    low, high = (low or 0.0, high or 0.0)
    width = max((high - low) / _BINS, 1e-3)
    number = ((gain - low) / width).floor().clip(-1, _BINS)
    frame = (
        known.group_by(bin=number.cast(pl.Int64))
        .agg(tickets=pl.len().cast(pl.Int64), passed=(pl.col("verdict") == "pass").sum().cast(pl.Int64))
        .sort("bin")
        .select(
            gains=pl.when(pl.col("bin") < 0)
            .then(pl.lit("below"))
            .when(pl.col("bin") >= _BINS)
            .then(pl.lit("above"))
            .otherwise(pl.lit("between")),
            from_percent=(low + pl.col("bin") * width).round(3),
            to_percent=(low + (pl.col("bin") + 1) * width).round(3),
            _middle=(low + (pl.col("bin") + 0.5) * width).round(3),
            tickets="tickets",
            passed="passed",
        )
        .collect()
    )
    title = "estimated gain (%), right is better"
    tips = tip({
        "from_percent:Q": "from (%)", "to_percent:Q": "to (%)", "tickets:Q": "tickets",
        "passed:Q": "of them passed", "gains:N": "ends",
    })  # fmt: skip
    x = alt.X("_middle:Q", title=title, scale=alt.Scale(zero=False))
    whole = whole_numbers(_largest(frame["tickets"]))
    everything = (
        alt.Chart()
        .mark_bar(size=9, color=GREY)
        .encode(x=x, y=alt.Y("tickets:Q", title="tickets", axis=whole), tooltip=tips)
    )
    passed = (
        alt.Chart()
        .mark_bar(size=4, color=BLUE)
        .encode(x=x, y=alt.Y("passed:Q", title="tickets", axis=whole), tooltip=tips)
    )
    return finish(
        [everything, passed, vertical(0.0, dash=False)],
        rows_of(frame),
        title="Gains",
        subtitle=f"{counted:,} estimates (wide bars: all, narrow ones: passed; the last bar at either end "
        f"holds what lies beyond); {unknown:,} tickets have no estimate",
        description=f"Distribution of {counted} estimated gains; {unknown} tickets without one.",
        height=_HEIGHT,
    )


def rounds_over_time(rounds: pl.LazyFrame) -> alt.LayerChart:
    """The chains of incumbents: what each closed round's rerun gained, and what the gains make together.

    A chain is what rounds name each other as previous; a campaign may have several, from one first incumbent.
    """
    frame = _chain(rounds)
    counted, shown = frame.height, "one mark a round, one line a chain"
    starts = frame.group_by("chain", maintain_order=True).first()
    if counted > MOST_MARKS:
        day = pl.col("closed_utc").dt.truncate("1d").alias("_day")
        frame = frame.group_by("chain", day, maintain_order=True).last().select(frame.columns)
        shown = f"{counted} rounds, each chain's last of a day"
    frame = pl.concat([_before(starts).select(frame.columns), frame]).sort("chain", "number")
    frame = frame.with_columns(
        closed_utc=pl.col("closed_utc").dt.strftime("%Y-%m-%d %H:%M UTC"),
        _early=2 * pl.col("number") < pl.col("number").max(),
    )
    names = ("new incumbent", "the incumbent stays", "the first incumbent")
    shapes = ("circle", "diamond", "square")
    legend = alt.Legend(columns=2)  # three of these names are wider than a phone
    x = alt.X(
        "number:Q",
        title="closed rounds of a chain, in order",
        axis=whole_numbers(_largest(frame["number"])),
    )
    y = alt.Y("factor:Q", title="better than the first incumbent (×)", scale=alt.Scale(zero=False))
    tips = tip({
        "chain:N": "chain", "round:N": "round", "closed_utc:N": "closed", "result:N": "result",
        "gain_percent:Q": "gain (%)", "factor:Q": "together (×)", "missing:N": "no gain because",
    })  # fmt: skip
    line = alt.Chart().mark_line(interpolate="step-after", color=MUTED, strokeWidth=1.5).encode(
        x=x, y=y, detail="chain:N"
    )  # fmt: skip
    points = alt.Chart().mark_point(filled=True, opacity=1).encode(
        x=x, y=y, tooltip=tips,
        color=alt.Color(
            "result:N", scale=alt.Scale(domain=names, range=(BLUE, GREY, INK)), title=None, legend=legend
        ),
        shape=alt.Shape(
            "result:N", scale=alt.Scale(domain=names, range=shapes), title=None, legend=legend
        ),
    )  # fmt: skip
    side = alt.ExprRef("datum._early ? 'left' : 'right'")  # of the mark, where there is room for a name
    words = (
        alt.Chart()
        .transform_filter("datum._named")
        .mark_text(align=side, dx=alt.ExprRef("datum._early ? 4 : 0"), dy=-14, color=INK)
        .encode(x=x, y=y, text="_label:N")
    )
    return finish(
        [horizontal(1.0), line, points, words],
        rows_of(frame),
        title="Rounds over time",
        subtitle=f"{shown}; gains of fresh reruns multiplied, which nobody measured as a whole",
        description=f"{counted} closed rounds in {starts.height} chains, in order.",
        height=_HEIGHT,
    )


def _chain(rounds: pl.LazyFrame) -> pl.DataFrame:
    gain = pl.col("gain").fill_null(0.0)
    closed = rounds.filter(pl.col("closed_utc").is_not_null()).sort("campaign", "closed_utc").collect()
    return (
        closed.lazy()
        .with_columns(chain=_chains(closed))
        .sort("chain", "closed_utc", maintain_order=True)
        .select(
            "chain",
            "round",
            "closed_utc",
            number=pl.col("round").cum_count().over("chain").cast(pl.Int64),
            result=pl.when(pl.col("gain").is_not_null())
            .then(pl.lit("new incumbent"))
            .otherwise(pl.lit("the incumbent stays")),
            gain_percent=percent(pl.col("gain")),
            factor=(1.0 / (1.0 - gain)).cum_prod().over("chain").round(4),
            missing="missing",
            # Of a campaign's chains, the one that came farthest has its name in the chart.
            _named=pl.col("round").cum_count(reverse=True).over("chain") == 1,
            _campaign="campaign",
        )
        .with_columns(
            _named=pl.col("_named")
            & (pl.col("factor") == pl.col("factor").filter("_named").max().over("_campaign"))
        )
        .with_columns(_label=pl.format("{}: {}×", "chain", pl.col("factor").round(2)))
        .collect()
    )


def _chains(closed: pl.DataFrame) -> pl.Series:
    """Return each round's chain: its campaign, with the first round where the campaign has several.

    Rounds of one campaign that do not follow each other, as those of a pilot's campaigns, gained what they
    gained side by side: nothing may be multiplied across them.
    """
    firsts: dict[str, str] = {}
    starts: list[tuple[str, str]] = []
    rows = closed.select("campaign", "round", "previous", "evidence_digest").iter_rows()
    for campaign, name, previous, digest in rows:
        first = firsts.get(previous, name)
        starts.append((campaign, first))
        if digest is not None:
            firsts[digest] = first
    several = Counter(campaign for campaign, _ in set(starts))
    names = [f"{campaign} {first}" if several[campaign] > 1 else campaign for campaign, first in starts]
    return pl.Series("chain", names, dtype=pl.String)


def _before(starts: pl.DataFrame) -> pl.DataFrame:
    """Return where each chain begins: its first incumbent, better than itself by nothing."""
    return starts.with_columns(
        round=pl.lit("I0"),
        closed_utc=pl.lit(None, starts.schema["closed_utc"]),
        number=pl.lit(0, pl.Int64),
        result=pl.lit("the first incumbent"),
        gain_percent=pl.lit(None, pl.Float64),
        factor=pl.lit(1.0),
        missing=pl.lit("where the chain begins"),
        _named=pl.lit(False),
    )


def _largest(counts: pl.Series) -> int:
    return int(counts.max() or 1)  # type: ignore[arg-type]
