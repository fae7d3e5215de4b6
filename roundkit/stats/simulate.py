"""Simulated experiments under the protocol: false passes, power and pairs used, for tables and tests."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from roundkit.stats.estimate import SIGNED_RANK_FROM_PAIRS, Statistic
from roundkit.stats.sequential import Futility, Schedule, schedule, standard_looks
from roundkit.stats.signed_rank import null_distribution
from roundkit.stats.tails import FloatArray, t_to_z
from roundkit.stats.verdict import ORDER_SIGMA
from roundkit.stats.worlds import BoolArray, Effects, SimulatedPairs, World, simulate_pairs

OrderRule = Literal["ignore", "block", "repeat"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How simulated experiments are run and decided.

    Attributes:
        plan: Looks and boundaries; one look with boundary 2 is the fixed design.
        order_rule: What an order effect beyond two standard errors does: nothing, no pass, or one repetition.
        statistic: Fixed statistic, or None for t below 12 pairs and the signed rank from 12 on.
    """

    plan: Schedule
    order_rule: OrderRule = "repeat"
    statistic: Statistic | None = None


@dataclass(frozen=True, slots=True)
class Experiments:
    """Outcome of each simulated experiment; every array has one value an experiment.

    Attributes:
        outcome: 1 where the evidence is a gain, -1 a loss, 0 otherwise or where the order effect withheld it.
        z_eff: Evidence at the last look.
        delta: Crossover mean at the last look, a log ratio.
        se: Its standard error.
        pairs_used: Pairs run in all, repetition included.
        order_flagged: Whether the (first) experiment had an order effect beyond two standard errors.
    """

    outcome: NDArray[np.int8]
    z_eff: FloatArray
    delta: FloatArray
    se: FloatArray
    pairs_used: NDArray[np.int64]
    order_flagged: BoolArray

    @property
    def pass_rate(self) -> float:
        """Share of the experiments whose evidence is a gain."""
        return float(np.mean(self.outcome > 0))

    @property
    def loss_rate(self) -> float:
        """Share of the experiments whose evidence is a loss."""
        return float(np.mean(self.outcome < 0))

    @property
    def mean_pairs(self) -> float:
        """Mean number of pairs an experiment used."""
        return float(np.mean(self.pairs_used))

    @property
    def order_rate(self) -> float:
        """Share of the experiments with an order effect beyond two standard errors."""
        return float(np.mean(self.order_flagged))


def early_stopping(
    max_pairs: int, *, order_rule: OrderRule = "repeat", statistic: Statistic | None = None
) -> Protocol:
    """Return the early-stopping protocol: looks at 6, 8, …, ``max_pairs``, with the futility rule."""
    plan = schedule(standard_looks(max_pairs), futility=Futility())
    return Protocol(plan=plan, order_rule=order_rule, statistic=statistic)


def fixed_pairs(
    pairs: int, *, order_rule: OrderRule = "repeat", statistic: Statistic | None = None
) -> Protocol:
    """Return the protocol with one look, after ``pairs`` pairs, at two sigma."""
    return Protocol(plan=schedule((pairs,)), order_rule=order_rule, statistic=statistic)


def simulate(
    world: World,
    sigma: float,
    protocol: Protocol,
    *,
    effects: Effects | None = None,
    experiments: int = 10_000,
    seed: int = 0,
) -> Experiments:
    """Simulate experiments and decide each by the protocol.

    Args:
        world: The machine's unrest.
        sigma: Its scale, as a fraction of the run time.
        protocol: Looks, boundaries and the order rule.
        effects: What is true of the two sides; nothing by default, an A/A experiment.
        experiments: How many.
        seed: Seed of the chance.

    Returns:
        One outcome an experiment. No gain is demanded: only the evidence decides.
    """
    rng = np.random.default_rng(seed)
    true = effects or Effects()
    first = _decide(_draw(rng, world, sigma, experiments, protocol, true), protocol)
    if protocol.order_rule == "ignore" or not first.order_flagged.any():
        return first
    if protocol.order_rule == "block":
        return _withheld(first)
    again = int(first.order_flagged.sum())
    return _replaced(first, _withheld(_decide(_draw(rng, world, sigma, again, protocol, true), protocol)))


def _draw(
    rng: np.random.Generator, world: World, sigma: float, experiments: int, protocol: Protocol, true: Effects
) -> SimulatedPairs:
    return simulate_pairs(rng, world, sigma, experiments, protocol.plan.looks[-1], true)


def _withheld(done: Experiments) -> Experiments:
    outcome = np.where(done.order_flagged, 0, done.outcome).astype(np.int8)
    return Experiments(outcome, done.z_eff, done.delta, done.se, done.pairs_used, done.order_flagged)


def _replaced(first: Experiments, second: Experiments) -> Experiments:
    """Put repeated experiments in the place of those with an order effect, adding up the pairs used."""
    flagged = first.order_flagged
    outcome, z_eff, delta, se, pairs = (
        first.outcome.copy(),
        first.z_eff.copy(),
        first.delta.copy(),
        first.se.copy(),
        first.pairs_used.copy(),
    )
    outcome[flagged], z_eff[flagged] = second.outcome, second.z_eff
    delta[flagged], se[flagged] = second.delta, second.se
    pairs[flagged] += second.pairs_used
    return Experiments(outcome, z_eff, delta, se, pairs, flagged)


def _decide(simulated: SimulatedPairs, protocol: Protocol) -> Experiments:
    count = len(simulated.differences)
    outcome = np.zeros(count, dtype=np.int8)
    z_eff, delta, se = np.zeros(count), np.zeros(count), np.zeros(count)
    used, flagged = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
    live = np.arange(count)
    for pairs, boundary in zip(protocol.plan.looks, protocol.plan.boundaries, strict=True):
        look = _look(simulated.differences[live, :pairs], simulated.baseline_first[live, :pairs], protocol)
        stops = np.abs(look.z_eff) >= boundary
        stops |= _futile(look.z_eff, pairs, protocol.plan)
        ended = live[stops]
        outcome[ended] = (np.sign(look.z_eff) * (np.abs(look.z_eff) >= boundary))[stops]
        z_eff[ended], delta[ended], se[ended] = look.z_eff[stops], look.delta[stops], look.se[stops]
        used[ended] = pairs
        flagged[ended] = (np.abs(look.order_effect) > ORDER_SIGMA * look.se)[stops]
        live = live[~stops]
        if not len(live):
            break
    return Experiments(outcome, z_eff, delta, se, used, flagged)


@dataclass(frozen=True, slots=True)
class _Look:
    z_eff: FloatArray
    delta: FloatArray
    se: FloatArray
    order_effect: FloatArray


def _look(differences: FloatArray, baseline_first: BoolArray, protocol: Protocol) -> _Look:
    """Estimate all experiments at once; whole quads, so that both orders have the same number of pairs."""
    pairs = differences.shape[1]
    sign = np.where(baseline_first, 1.0, -1.0)
    delta = differences.mean(axis=1)
    order_effect = (sign * differences).mean(axis=1)
    residual = differences - delta[:, None] - sign * order_effect[:, None]
    se = np.sqrt((residual**2).sum(axis=1) / (pairs - 2) / pairs)
    default: Statistic = "signed-rank" if pairs >= SIGNED_RANK_FROM_PAIRS else "t"
    chosen = protocol.statistic or default
    if chosen == "t":
        z_eff = t_to_z(delta / se, pairs - 2)
    elif chosen == "each-order":
        less = np.maximum(np.abs(delta) - np.abs(order_effect), 0.0)
        z_eff = np.sign(delta) * t_to_z(less / (se * math.sqrt(2)), pairs - 2)
    else:
        z_eff = signed_rank_z(residual + delta[:, None])
    return _Look(z_eff, delta, se, order_effect)


def _futile(z_eff: FloatArray, pairs: int, plan: Schedule) -> BoolArray:
    """Tell which experiments give up here; at the last look all end."""
    if pairs == plan.looks[-1]:
        return np.ones(len(z_eff), dtype=np.bool_)
    if plan.futility is None:
        return np.zeros(len(z_eff), dtype=np.bool_)
    fraction = pairs / plan.looks[-1]
    root = math.sqrt(fraction)
    expected = z_eff * root + (z_eff + plan.futility.optimism) * (1 - fraction) / root
    power = scipy.special.ndtr((expected - plan.boundaries[-1]) / math.sqrt(1 - fraction))
    return np.asarray(power < plan.futility.conditional_power, dtype=np.bool_)


def signed_rank_z(differences: FloatArray) -> FloatArray:
    """Return the exact signed-rank evidence of many experiments without ties or zeros.

    Args:
        differences: Continuous order-corrected differences, experiments x pairs.

    Returns:
        One z value an experiment.
    """
    count, pairs = differences.shape
    ranks = np.empty(differences.shape, dtype=np.int64)
    by_size = np.argsort(np.abs(differences), axis=1)
    np.put_along_axis(ranks, by_size, np.broadcast_to(np.arange(1, pairs + 1), (count, pairs)), axis=1)
    table = _signed_rank_table(pairs)
    return np.asarray(table[(ranks * (differences > 0)).sum(axis=1)], dtype=np.float64)


@lru_cache(maxsize=256)
def _signed_rank_table(pairs: int) -> FloatArray:
    mass = null_distribution(range(1, pairs + 1))
    at_most = np.minimum(np.cumsum(mass), 1.0)
    at_least = at_most[::-1]
    tail = np.minimum(np.minimum(at_most, at_least), 0.5)
    z = -scipy.special.ndtri(tail)
    return np.asarray(np.where(at_least < at_most, z, -z), dtype=np.float64)
