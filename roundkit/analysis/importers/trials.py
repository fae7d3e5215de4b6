"""Samples of pyperf and hyperfine as trials: one run of a benchmark a trial, beside those of rounds."""

from __future__ import annotations

import polars as pl

from roundkit.analysis.columns import schema_of
from roundkit.analysis.frame_checks import check_frame


def as_trials(samples: pl.DataFrame, *, campaign: str | None = None, name: str | None = None) -> pl.LazyFrame:
    """Return imported samples in the frame ``trials``.

    A run's values, warm-ups left out, are the raw repetitions, and their median the value. Nothing was
    paired, so ``pair``, ``side`` and ``order`` are null, and ``purpose`` is ``imported``. A run whose command
    ended with another exit code than 0 has that as its problem and no value.

    Args:
        samples: What :func:`read_pyperf` or :func:`read_hyperfine` gives.
        campaign: What to call the campaign; the tool's name when not given.
        name: What to call the round; the file's name when not given.
    """
    runs = (
        samples.lazy()
        .filter(~pl.col("warmup"))
        .group_by("tool", "source", "benchmark", "run", maintain_order=True)
        .agg(samples=pl.col("value"), median=pl.col("value").median(), exit_code=pl.col("exit_code").first())
        .with_columns(broke=pl.col("exit_code").fill_null(0) != 0)
        .select(
            campaign=pl.lit(campaign) if campaign else pl.col("tool"),
            round=pl.lit(name) if name else pl.col("source"),
            experiment="benchmark",
            purpose=pl.lit("imported"),
            subject="benchmark",
            position="run",
            value=pl.when(~pl.col("broke")).then("median"),
            samples="samples",
            problem=pl.when("broke").then(pl.format("exit code {}", "exit_code")),
        )
    )
    schema = schema_of("trials")
    there = runs.collect_schema().names()
    return check_frame(
        "trials",
        runs.with_columns(
            pl.lit(None, dtype).alias(column) for column, dtype in schema.items() if column not in there
        ),
    )
