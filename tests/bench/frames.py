"""Ledgers in bulk: finding evidence folders, and the explorer's overview of many tickets, with its memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
from bench.result import Figure
from support.sample_evidence import export_sample, sample_round

from roundkit.analysis import add_parts, find_places, load, write_frames

FOUND_TARGET_S = 5.0
DRAWN_TARGET_S = 3.0
MEMORY_TARGET_GB = 1.0
PARTED_TARGET_S = 30.0
PARTED_MEMORY_TARGET_GB = 3.0
_CAMPAIGN, _CAMPAIGNS = "campaign", 10

# In a process of its own, since memory is counted from a process's start. Imports are not timed.
_OVERVIEW = """
import json, sys, time
from roundkit.analysis import charts, load

started_s = time.perf_counter()
ledgers = load(sys.argv[1])
drawn = [
    charts.verdict_counts(ledgers.tickets),
    charts.gain_distribution(ledgers.tickets),
    charts.rounds_over_time(ledgers.rounds),
    charts.ticket_against_rerun(ledgers.rounds),
]
specs = [chart.to_json() for chart in drawn]
took_s = time.perf_counter() - started_s
# Not ru_maxrss, which a process inherits from the one that started it.
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
peak = int(status["VmHWM"].split()[0]) * 1024
print(json.dumps({"took_s": took_s, "peak_bytes": peak, "spec_bytes": sum(map(len, specs))}))
"""


def measure(tiny: bool) -> Iterator[Figure]:
    """Yield the time of finding folders, and time and memory of an overview."""
    folders, tickets = (20, 2_000) if tiny else (10_000, 1_000_000)
    parted = 20_000 if tiny else 10_000_000
    with tempfile.TemporaryDirectory(prefix="roundkit-bench-") as scratch:
        yield _finding(Path(scratch) / "found", folders)
        yield from _overview(Path(scratch) / "many", tickets)
        yield from _parted(Path(scratch) / "parted", parted, tiny=tiny)


def _finding(root: Path, count: int) -> Figure:
    one = export_sample(root / "campaign-0" / "rounds" / "r0", sample_round(), root.parent / "blobs")
    for number in range(1, count):
        copy = root / f"campaign-{number % 50}" / "rounds" / f"r{number}"
        (copy / "experiments").mkdir(parents=True)
        for file in one.iterdir():
            if file.is_file():
                os.link(file, copy / file.name)
    started_s = time.perf_counter()
    found = find_places([root])
    took_s = time.perf_counter() - started_s
    assert len(found) == count
    return Figure(
        "found", f"finding {count:,} evidence folders", took_s, "s", FOUND_TARGET_S,
        detail={"folders": count},
    )  # fmt: skip


def _parted(root: Path, count: int, *, tiny: bool) -> Iterator[Figure]:
    """Write tickets in parts, one in memory at a time, and draw the explorer's charts of them."""
    sample = load(export_sample(root / "sample" / "r01", sample_round(), root / "blobs"))
    tickets, rounds = sample.tickets.collect(), sample.rounds.collect()
    many, at_once = root / "many", 5_000 if tiny else 500_000
    started_s = time.perf_counter()
    add_parts(
        "tickets", (_copies(tickets, first, at_once) for first in range(0, count, at_once)), many,
        rows_a_part=2 * at_once,
    )  # fmt: skip
    add_parts("rounds", [_copied_rounds(rounds, count)], many)
    wrote_s = time.perf_counter() - started_s
    size_gb = sum(path.stat().st_size for path in many.rglob("*.parquet")) / 1e9
    seen = _seen(many)
    one_s = _one_campaign_s(many)
    detail = {"tickets": count, "gb_on_disk": size_gb, "spec_bytes": seen["spec_bytes"], "written_s": wrote_s}
    yield Figure(
        "parted", f"loading {count:,} tickets in parts and drawing the charts", seen["took_s"], "s",
        PARTED_TARGET_S, detail=detail,
    )  # fmt: skip
    yield Figure(
        "parted-memory", "peak memory of that process, imports included", seen["peak_bytes"] / 1e9, "GB",
        PARTED_MEMORY_TARGET_GB, detail=detail,
    )  # fmt: skip
    yield Figure("parted-one", "counting the verdicts of one campaign among them", one_s, "s", detail=detail)


def _one_campaign_s(many: Path) -> float:
    started_s = time.perf_counter()
    ledgers = load(many).only(f"{_CAMPAIGN}-1")
    counted = ledgers.tickets.group_by("verdict").len().collect(engine="streaming")
    assert counted["len"].sum() > 0
    return time.perf_counter() - started_s


def _copies(tickets: pl.DataFrame, first: int, count: int) -> pl.DataFrame:
    """Return so many tickets in rounds of a thousand, the first with this number, in ten campaigns."""
    number = pl.int_range(first, first + count, dtype=pl.Int64)
    name = pl.format("r{}", number // 1000)
    copied = pl.concat([tickets] * -(-count // tickets.height)).head(count)
    # Figures, times and commits of their own, since repeated ones would compress to nothing.
    own = number.hash(seed=1).cast(pl.Float64) / 2**64
    figures = [pl.col(name) * (0.9 + own / 5) for name, kind in tickets.schema.items() if kind == pl.Float64]
    commit = pl.format("{}{}", number.hash(seed=2), number.hash(seed=3)).str.slice(0, 40)
    later = [pl.col(name) + pl.duration(seconds=number) for name in ("intake_utc", "measured_utc")]
    return copied.with_columns(*figures, *later, candidate_commit=commit).with_columns(
        campaign=pl.format("{}-{}", pl.lit(_CAMPAIGN), number // 1000 % _CAMPAIGNS), round=name,
        sequence=number % 1000, ticket=pl.format("{}-{}", name, number),
        gain=pl.col("gain") + (number * 2_654_435_761 % 2**32) / 2**32 / 50,
    )  # fmt: skip


def _copied_rounds(rounds: pl.DataFrame, tickets: int) -> pl.DataFrame:
    number = pl.int_range(pl.len(), dtype=pl.Int64)
    return pl.concat([rounds] * max(1, -(-tickets // 1000))).with_columns(
        campaign=pl.format("{}-{}", pl.lit(_CAMPAIGN), number % _CAMPAIGNS), round=pl.format("r{}", number),
        closed_utc=pl.col("closed_utc") + pl.duration(minutes=number),
    )  # fmt: skip


def _seen(root: Path) -> dict[str, float]:
    """Draw the explorer's charts in a process of its own, and return time and memory of it."""
    done = subprocess.run(
        [sys.executable, "-c", _OVERVIEW, str(root)], capture_output=True, text=True, check=True
    )
    seen: dict[str, float] = json.loads(done.stdout)
    return seen


def _overview(root: Path, count: int) -> Iterator[Figure]:
    write_many(root, count)
    seen = _seen(root)
    yield Figure(
        "overview", f"loading {count:,} tickets and drawing the explorer's charts", seen["took_s"], "s",
        DRAWN_TARGET_S, detail={"tickets": count, "spec_bytes": seen["spec_bytes"]},
    )  # fmt: skip
    yield Figure(
        "overview-memory", "peak memory of that process, imports included", seen["peak_bytes"] / 1e9, "GB",
        MEMORY_TARGET_GB, detail={"tickets": count},
    )  # fmt: skip


def write_many(root: Path, count: int) -> None:
    """Export a Parquet folder with so many tickets in rounds of a thousand, made of one sample round's."""
    scratch = root.with_name(f"{root.name}-sample")
    sample = load(export_sample(scratch / "r01", sample_round(), scratch / "blobs"))
    tickets, rounds = sample.tickets.collect(), sample.rounds.collect()
    number = pl.int_range(pl.len())
    copies = -(-count // tickets.height)
    many = pl.concat([tickets] * copies).head(count)
    name = pl.format("r{}", number // 1000)
    many = many.with_columns(
        round=name, sequence=number % 1000, ticket=pl.format("{}-{}", name, number),
        gain=pl.col("gain") + (number * 2_654_435_761 % 2**32) / 2**32 / 50,
    )  # fmt: skip
    whole = pl.concat([rounds] * max(1, -(-count // 1000))).with_columns(
        round=pl.format("r{}", number), closed_utc=pl.col("closed_utc") + pl.duration(hours=number)
    )
    write_frames({"rounds": whole.lazy(), "tickets": many.lazy()}, root)
