"""The chart of a comparison: what each of its pairs says, beside the estimate and its interval."""

from __future__ import annotations

import altair as alt
import polars as pl

from roundkit.analysis.charts.theme import BLUE, ORANGE, finish, horizontal, percent, rows_of, tip
from roundkit.models.comparison import Comparison
from roundkit.rules.verdict import Samples, collect_samples
from roundkit.stats.differences import gain_fraction, paired_differences

_HEIGHT = 240
_ORDERS = ("AB", "BA")


def pair_gains(comparison: Comparison) -> alt.LayerChart:
    """Every pair's gain in order of time, with the estimate, its 95 % interval and the line to reach."""
    verdict, spec = comparison.verdict, comparison.run_spec
    record = comparison.experiment
    samples = Samples((), (), (), ()) if record is None else collect_samples(record)
    differences = (
        paired_differences(samples.baseline, samples.candidate, spec.metric.direction)
        if samples.baseline
        else ()
    )
    frame = pl.DataFrame(
        {
            "pair": list(range(1, len(differences) + 1)),
            "order": list(samples.order),
            "baseline": list(samples.baseline),
            "candidate": list(samples.candidate),
            "gain": [gain_fraction(difference) for difference in differences],
        },
        schema={
            "pair": pl.Int64(), "order": pl.String(), "baseline": pl.Float64(), "candidate": pl.Float64(),
            "gain": pl.Float64(),
        },
    )  # fmt: skip
    frame = frame.with_columns(gain_percent=percent(pl.col("gain"))).drop("gain")
    x = alt.X("pair:O", title="pair, in order of time", axis=alt.Axis(labelAngle=0))
    y = alt.Y("gain_percent:Q", title="gain (%), up is better")
    points = alt.Chart().mark_point(filled=True, opacity=1).encode(
        x=x, y=y,
        color=alt.Color("order:N", scale=alt.Scale(domain=_ORDERS, range=(ORANGE, BLUE))),
        shape=alt.Shape("order:N", scale=alt.Scale(domain=_ORDERS, range=("square", "circle"))),
        tooltip=tip({"pair:O": "pair", "order:N": "order", "gain_percent:Q": "gain (%)"}),
    )  # fmt: skip
    lines = [horizontal(0.0, dash=False), horizontal(round(100 * spec.gates.min_gain, 3))]
    if verdict.low is not None and verdict.high is not None and verdict.gain is not None:
        # Once, not once a pair: what is see-through would add up.
        once = alt.Chart().transform_filter("datum.pair === 1")
        band = once.mark_rect(color=BLUE, opacity=0.15).encode(
            y=alt.datum(round(100 * verdict.low, 3)), y2=alt.datum(round(100 * verdict.high, 3))
        )  # fmt: skip
        middle = alt.Chart().mark_rule(color=BLUE, strokeWidth=2).encode(
            y=alt.datum(round(100 * verdict.gain, 3))
        )  # fmt: skip
        lines += [band, middle]
    return finish(
        [*lines, points],
        rows_of(frame),
        title="Pairs",
        subtitle="one mark a pair; blue: the estimate with its 95 % interval; dashed: the gain that passes",
        description=f"Gain of B over A in each of {frame.height} pairs, in order of time.",
        height=_HEIGHT,
    )
