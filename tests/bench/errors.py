"""Error rates and power of the protocol, simulated: case M01 with a fixed seed, beside the bar to reach."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
from bench.result import Figure, Result

from roundkit.stats.estimate import Statistic
from roundkit.stats.simulate import Experiments, OrderRule, early_stopping, simulate
from roundkit.stats.worlds import NOISY_NEIGHBOUR, QUIET, SHARED_MACHINE, Effects

GAINS = (0.0, 0.01, 0.02, 0.05)
SESSIONS = (0.0025, 0.005, 0.01)
FALSE_PASS_PERCENT = 2.9
CARRY_PERCENT = 3.0
CARRY_OVERS = (0.005, 0.01, 0.02)
SECONDS = 20.0
SEED = 20_260_101
BAR = {
    (0.01, 10): ((1.8, 39, 85, 99), (7.1, 8.6, 7.7, 6.2)),
    (0.01, 20): ((2.4, 73, 99, 100), (10.7, 14.5, 10.1, 6.7)),
    (0.01, 40): ((2.2, 96, 100, 100), (18.3, 21.5, 12.5, 7.5)),
    (0.03, 10): ((1.7, 8, 20, 76), (7.1, 7.8, 8.4, 8.0)),
    (0.03, 20): ((2.5, 14, 41, 97), (10.8, 13.4, 15.0, 11.2)),
    (0.03, 40): ((2.4, 23, 73, 100), (18.3, 26.1, 26.7, 14.1)),
}
"""Passes in percent, and mean pairs, at each gain, of the design to reach: (sigma, most pairs)."""


@dataclass(frozen=True)
class Cell:
    """One design: passes in percent and mean pairs at each gain, without and with the order rule."""

    sigma: float
    cap: int
    passes: tuple[float, ...]
    pairs: tuple[float, ...]
    passes_ordered: tuple[float, ...]
    pairs_ordered: tuple[float, ...]
    pairs_error: tuple[float, ...]


def measure(tiny: bool) -> Iterator[Figure]:
    """Yield the highest false-pass rate, how far power and pairs are from the bar, and the time it takes."""
    count = 200 if tiny else 20_000
    cells = [_cell(sigma, cap, count) for sigma, cap in BAR]
    started_s = time.perf_counter()
    simulate(SHARED_MACHINE, 0.01, early_stopping(40), experiments=10_000 if not tiny else 100, seed=SEED)
    took_s = time.perf_counter() - started_s
    worlds = [
        100 * simulate(world, sigma, early_stopping(cap), experiments=count, seed=SEED).pass_rate
        for world in (QUIET, NOISY_NEIGHBOUR) for sigma, cap in BAR
    ]  # fmt: skip
    sessions = {
        sd: [
            100 * simulate(
                SHARED_MACHINE, sigma, early_stopping(cap), effects=Effects(session_sd=sd), experiments=count,
                seed=SEED,
            ).pass_rate
            for sigma, cap in BAR
        ]
        for sd in SESSIONS
    }  # fmt: skip
    alone = max(max(cell.passes[0], cell.passes_ordered[0]) for cell in cells)
    detail = {"cells": [asdict(cell) for cell in cells], "experiments": count, "seed": SEED}
    yield Figure(
        "false-pass", "highest A/A false-pass rate, six designs on a shared machine, simulated", alone, "%",
        FALSE_PASS_PERCENT, detail=detail,
    )  # fmt: skip
    yield Figure(
        "false-pass-worlds", "the same on a quiet machine and beside a noisy neighbour", max(worlds), "%",
        FALSE_PASS_PERCENT,
    )  # fmt: skip
    for sd, rates in sessions.items():
        yield Figure(
            f"false-pass-sessions-{sd:g}",
            f"the same, each copy of both sides adding {100 * sd:g} % of its own",
            max(rates), "%", FALSE_PASS_PERCENT,
        )  # fmt: skip
    yield from _carry_over(count)
    powers, pairs = list(_powers_reached(cells, count)), list(_pairs_kept(cells))
    yield Figure(
        "power", f"of {len(powers)} powers, those no worse than the bar's",
        float(sum(powers)), "", float(len(powers)), "higher",
    )  # fmt: skip
    yield Figure(
        "pairs", f"of {len(pairs)} mean numbers of pairs, those no worse",
        float(sum(pairs)), "", float(len(pairs)), "higher",
    )  # fmt: skip
    yield Figure("simulation", "10,000 simulated experiments of up to 40 pairs", took_s, "s", SECONDS)


def _carry_over(count: int) -> Iterator[Figure]:
    """Yield the false passes under an order effect, and under a carry-over with either statistic."""
    shifted = [
        _passes(sigma, cap, count, Effects(order_effect=0.01), None) for sigma, cap in BAR
    ]  # fmt: skip
    yield Figure(
        "order-effect", "false passes where whatever runs second is 1 % faster", max(shifted), "%",
        CARRY_PERCENT,
    )  # fmt: skip
    for carry in CARRY_OVERS:
        for statistic, name in ((None, "as by default"), ("each-order", "each order by itself")):
            rates = [_passes(sigma, cap, count, Effects(carry_over=carry), statistic) for sigma, cap in BAR]
            yield Figure(
                f"carry-over-{carry:g}-{statistic or 'default'}",
                f"false passes where a candidate slows the next baseline by {100 * carry:g} %, {name}",
                max(rates), "%", CARRY_PERCENT if statistic else None,
            )  # fmt: skip


def _passes(sigma: float, cap: int, count: int, effects: Effects, statistic: Statistic | None) -> float:
    rule: OrderRule = "ignore" if statistic else "repeat"
    protocol = early_stopping(cap, order_rule=rule, statistic=statistic)
    return (
        100
        * simulate(SHARED_MACHINE, sigma, protocol, effects=effects, experiments=count, seed=SEED).pass_rate
    )


def _cell(sigma: float, cap: int, count: int) -> Cell:
    def run(gain: float, rule: str) -> Experiments:
        protocol = early_stopping(cap, order_rule=rule)  # type: ignore[arg-type]
        effects = Effects(gain=gain)
        return simulate(SHARED_MACHINE, sigma, protocol, effects=effects, experiments=count, seed=SEED)

    alone, ordered = [run(gain, "ignore") for gain in GAINS], [run(gain, "repeat") for gain in GAINS]
    return Cell(
        sigma, cap,
        tuple(100 * one.pass_rate for one in alone), tuple(one.mean_pairs for one in alone),
        tuple(100 * one.pass_rate for one in ordered), tuple(one.mean_pairs for one in ordered),
        tuple(float(np.std(one.pairs_used)) / math.sqrt(count) for one in alone),
    )  # fmt: skip


def _powers_reached(cells: list[Cell], count: int) -> Iterator[bool]:
    """Yield whether each power is the bar's, known to a whole percent, within two standard errors."""
    for cell in cells:
        for found, wanted in zip(cell.passes[1:], BAR[cell.sigma, cell.cap][0][1:], strict=True):
            share = min(max(wanted, 1), 99) / 100
            yield found >= wanted - 0.5 - 200 * math.sqrt(2 * share * (1 - share) / count)


def _pairs_kept(cells: list[Cell]) -> Iterator[bool]:
    for cell in cells:
        for found, error, most in zip(
            cell.pairs, cell.pairs_error, BAR[cell.sigma, cell.cap][1], strict=True
        ):
            yield found <= most + 0.05 + 2 * math.sqrt(2) * error


def table(result: Result) -> str:
    """Return the table of error rates as Markdown."""
    figure = next(row for row in result.figures if row.name == "false-pass")
    lines = [
        "| σ, at most | passes | pairs | bar: passes | bar: pairs | order rule: passes | order rule: pairs |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in figure.detail["cells"]:
        bar = BAR[row["sigma"], row["cap"]]
        texts = [
            _dots(row["passes"]), _dots(row["pairs"]), _dots(bar[0]), _dots(bar[1]),
            _dots(row["passes_ordered"]), _dots(row["pairs_ordered"]),
        ]  # fmt: skip
        lines.append(f"| {100 * row['sigma']:g} %, {row['cap']} | {' | '.join(texts)} |")
    count, seed = figure.detail["experiments"], figure.detail["seed"]
    return "\n".join(
        [*lines, "", f"{count:,} experiments a figure, seed {seed}; `{result.command}`, {result.size}."]
    )


def _dots(values: object) -> str:
    shown = [f"{value:.1f}" if value < 10 or value % 1 else f"{value:.0f}" for value in values]  # type: ignore[attr-defined]
    return " · ".join(text.removesuffix(".0") for text in shown)
