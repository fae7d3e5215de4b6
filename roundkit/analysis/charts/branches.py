"""Chart of a round's branches: lanes fork from one incumbent, with every ticket and its verdict."""

from __future__ import annotations

import altair as alt
import polars as pl

from roundkit.analysis.charts.theme import (
    INK,
    MOST_MARKS,
    MUTED,
    STATES,
    finish,
    percent,
    round_name,
    rows_of,
    state_scales,
    tip,
)

_ROW_HEIGHT = 38
_LANE = ["campaign", "round", "lane"]
_FORK, _FIRST = 0.8, 1.6


def branch_layout(lanes: pl.LazyFrame, tickets: pl.LazyFrame) -> alt.LayerChart:
    """Every lane as a branch of its round's incumbent, with its tickets in order of intake.

    Args:
        lanes: The frame ``lanes``.
        tickets: The frame ``tickets``.
    """
    frame = _one_row_a_ticket(lanes, tickets)
    counted = frame["ticket"].drop_nulls().len()
    shown = "one mark a ticket, in order of intake; a ring: selected for the composition"
    if frame.height > MOST_MARKS:
        frame = _summed_up(frame)
        shown = f"{counted} tickets summed up: one mark for each lane and verdict, with how many there are"
    frame = _laid_out(frame)
    present = frame["verdict"].drop_nulls().unique().to_list()
    words = ", ".join(
        f"{frame.filter(pl.col('verdict') == state)['tickets'].sum()} {state}"
        for state in STATES
        if state in present
    )
    branches = frame["_y"].n_unique()
    return finish(
        _marks(frame, present),
        rows_of(frame),
        title="Branches",
        subtitle=shown,
        description=f"{branches} lanes from I0 with {counted} tickets: {words or 'none'}.",
        height=_ROW_HEIGHT * max(1, branches),
    )


def _one_row_a_ticket(lanes: pl.LazyFrame, tickets: pl.LazyFrame) -> pl.DataFrame:
    """Return one row a ticket, and one for each lane without any, in order of lanes and intake."""
    own = tickets.sort("sequence").select(
        "campaign",
        "round",
        "lane",
        "ticket",
        verdict=state_of(),
        gain_percent=percent(pl.col("gain")),
        selected=pl.when("selected").then(pl.lit("selected")),
        missing="missing",
        tickets=pl.lit(1, pl.Int64),
    )
    known = lanes.select(*_LANE, "outcome")
    # A ticket whose lane nobody described, as an importer may give it, still has a branch.
    strays = own.select(_LANE).unique(maintain_order=True).join(known, on=_LANE, how="anti")
    return (
        pl.concat([known, strays.with_columns(outcome=pl.lit(None, pl.String))])
        .with_row_index("_lane")
        .join(own, on=_LANE, how="left", maintain_order="left_right")
        .with_columns(
            tickets=pl.col("tickets").fill_null(0),
            missing=pl.when(pl.col("ticket").is_null())
            .then(pl.lit("nothing was submitted"))
            .otherwise("missing"),
        )
        .collect()
    )


def state_of() -> pl.Expr:
    """Return a ticket's verdict, else ``rejected``, else ``waiting``."""
    return (
        pl.when(pl.col("verdict").is_not_null())
        .then("verdict")
        .when(pl.col("state") == "rejected")
        .then(pl.lit("rejected"))
        .otherwise(pl.lit("waiting"))
    )


def _summed_up(frame: pl.DataFrame) -> pl.DataFrame:
    lane = ["_lane", "campaign", "round", "lane"]
    if frame["_lane"].n_unique() * len(STATES) > MOST_MARKS:
        frame = frame.with_columns(lane=pl.lit("all lanes"), outcome=None)
        frame = frame.with_columns(round=pl.lit("all rounds"), _lane=pl.col("campaign").rank("dense"))
    return (
        frame.group_by(*lane, "verdict", maintain_order=True)
        .agg(
            pl.col("outcome").first(),
            ticket=pl.format("{} tickets", pl.col("tickets").sum()),
            gain_percent=pl.col("gain_percent").max(),
            selected=pl.col("selected").max(),
            missing=pl.when(pl.col("gain_percent").max().is_null()).then(pl.lit("nothing measured")),
            tickets=pl.col("tickets").sum(),
        )
        .sort("_lane", maintain_order=True)
    )


def _laid_out(frame: pl.DataFrame) -> pl.DataFrame:
    """Add where each row is drawn; names that begin with an underscore stay out of the table."""
    several = frame.select("campaign", "round").n_unique() > 1
    label = pl.format("{} · {}", round_name(frame), "lane") if several else pl.col("lane")
    y = pl.col("_lane").rank("dense").cast(pl.Float64)
    place = pl.col("lane").cum_count().over("_lane") - 1
    return (
        frame.with_columns(_y=y, _x=_FIRST + place.cast(pl.Float64))
        .with_columns(
            _root=((pl.col("_y").min() + pl.col("_y").max()) / 2).over("campaign", "round"),
            _first=pl.col("_x") == _FIRST,
            _origin=(pl.col("_x") == _FIRST) & (pl.col("_y") == pl.col("_y").min().over("campaign", "round")),
            _end=pl.col("_x").max().over("_lane") + 0.25,
            _from=pl.lit(0.0),
            _fork=pl.lit(_FORK),
            _label=label,
        )
        .select(
            "round", "lane", "ticket", "verdict", "gain_percent", "selected", "outcome", "missing", "tickets",
            "_x", "_y", "_root", "_first", "_origin", "_end", "_from", "_fork", "_label",
        )
    )  # fmt: skip


def _marks(frame: pl.DataFrame, present: list[str]) -> list[alt.Chart]:
    most = float(frame["_end"].max() or 1.0)  # type: ignore[arg-type]
    across = alt.Scale(domain=[-0.2, most * 1.18 + 0.4], nice=False)
    down = alt.Scale(domain=[0.25, float(frame["_y"].max() or 1.0) + 0.45], reverse=True, nice=False)  # type: ignore[arg-type]

    def x(name: str) -> alt.X:
        return alt.X(f"{name}:Q", scale=across, axis=None)

    def y(name: str) -> alt.Y:
        return alt.Y(f"{name}:Q", scale=down, axis=None)

    once = alt.Chart().transform_filter("datum._first")
    trunk = once.mark_rule(color=MUTED).encode(x("_from"), y("_root"), x2="_fork:Q", y2="_y:Q")
    branch = once.mark_rule(color=MUTED).encode(x("_fork"), y("_y"), x2="_end:Q")
    origin = alt.Chart().transform_filter("datum._origin")
    root = origin.mark_point(filled=True, color=INK, shape="square", size=110, opacity=1).encode(
        x("_from"), y("_root")
    )
    root_name = origin.mark_text(dy=-17, align="left", dx=-6).encode(
        x("_from"), y("_root"), text=alt.datum("I0")
    )
    names = once.mark_text(align="left", dy=-11, color=INK).encode(x("_fork"), y("_y"), text="_label:N")
    outcomes = (
        once.transform_filter("datum.outcome !== null")
        .mark_text(align="left", dx=6)
        .encode(x("_end"), y("_y"), text="outcome:N")
    )
    nothing = (
        alt.Chart()
        .transform_filter("datum.ticket === null")
        .mark_text(align="left", fontStyle="italic", dy=11)
        .encode(x("_fork"), y("_y"), text="missing:N")
    )
    colour, shape = state_scales(present)
    tips = tip({
        "lane:N": "lane", "ticket:N": "ticket", "verdict:N": "verdict", "gain_percent:Q": "gain (%)",
        "selected:N": "composition", "missing:N": "no gain because",
    })  # fmt: skip
    real = alt.Chart().transform_filter("datum.ticket !== null")
    ring = (
        real.transform_filter("datum.selected !== null")
        .mark_point(filled=False, shape="circle", size=330, color=INK, opacity=1)
        .encode(x("_x"), y("_y"))
    )
    points = real.mark_point(filled=True, opacity=1, size=110).encode(
        x("_x"), y("_y"), color=colour, shape=shape, tooltip=tips
    )
    counts = (
        real.transform_filter("datum.tickets > 1")
        .mark_text(dy=14, color=INK)
        .encode(x("_x"), y("_y"), text="tickets:Q")
    )
    return [trunk, branch, root, root_name, names, outcomes, nothing, ring, points, counts]
