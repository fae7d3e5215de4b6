"""Chart of budgets: how much of each lane's caps its attempts are charged."""

from __future__ import annotations

import altair as alt
import polars as pl

from roundkit.analysis.charts.theme import BLUE, GREY, ORANGE, SKY, finish, rows_of, tip, vertical

_ROW_HEIGHT = 26
_DIMENSIONS = {"turns": "turns", "tokens": "tokens", "micro_usd": "money", "wall_s": "wall time"}
_PHASES = ("settled", "claimed", "reserved", "cancelled")
_PHASE_COLOURS = (BLUE, ORANGE, SKY, GREY)


def budget_burn(attempts: pl.LazyFrame) -> alt.LayerChart:
    """What the attempts of each lane are charged, as a share of each cap that the lane has."""
    frame = pl.concat([_dimension(attempts, name, called) for name, called in _DIMENSIONS.items()]).collect()
    y = alt.Y("budget:N", sort=frame["budget"].unique(maintain_order=True).to_list(), title=None)
    bars = alt.Chart().mark_bar(height=14, stroke="#ffffff", strokeWidth=1).encode(
        x=alt.X("from_percent:Q", title="charged (% of the cap)", scale=alt.Scale(domain=(0, 100))),
        x2="to_percent:Q", y=y,
        color=alt.Color("phase:N", scale=alt.Scale(domain=_PHASES, range=_PHASE_COLOURS), title="attempt"),
        tooltip=tip({
            "budget:N": "budget", "attempt:O": "attempt", "phase:N": "phase", "charged:Q": "charged",
            "actual:Q": "used", "cap:Q": "cap",
        }),
    )  # fmt: skip
    made = attempts.select("round", "lane", "ordinal").collect().height
    return finish(
        [vertical(100.0), bars],
        rows_of(frame),
        title="Budgets",
        subtitle="every attempt at its worst case, whatever it cost; lanes and dimensions without a cap are "
        "left out",
        description=f"{made} attempts against the caps of their lanes; {frame['budget'].n_unique()} caps.",
        height=_ROW_HEIGHT * max(1, frame["budget"].n_unique()),
    )


def _dimension(attempts: pl.LazyFrame, name: str, called: str) -> pl.LazyFrame:
    charged, cap = pl.col(f"charged_{name}"), pl.col(f"cap_{name}")
    after = charged.cum_sum().over("round", "lane")
    return (
        attempts.filter(cap > 0)
        .sort("round", "lane", "ordinal")
        .select(
            budget=pl.format("{} · {} · {}", "round", "lane", pl.lit(called)),
            attempt="ordinal",
            phase="phase",
            from_percent=((after - charged) * 100 / cap).round(3),
            to_percent=(after * 100 / cap).round(3),
            charged=charged,
            actual=pl.col(f"actual_{name}"),
            cap=cap,
        )
    )
