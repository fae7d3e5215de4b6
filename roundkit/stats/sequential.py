"""Early stopping: looks, error spending, boundaries, and the pure decision at each look."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np
import scipy

from roundkit.stats.estimate import Estimate, Order, Statistic, crossover_estimate
from roundkit.stats.rounding import Z_DIGITS
from roundkit.stats.tails import FloatArray, normal_sf
from roundkit.stats.verdict import MIN_PAIRS, TWO_SIGMA

Stop = Literal["gain", "loss", "futility", "last"]

BOUNDARY_DIGITS = 6
"""Decimals kept of a boundary: coarser than any error of the numerical integration."""

_NODES = 256
_LOWEST_SD = 9.0


@dataclass(frozen=True, slots=True)
class Spending:
    """One-sided error spent by the time a fraction ``t`` of the pairs is in: alpha · t^exponent.

    The power family of Kim and DeMets (1987).

    Attributes:
        alpha: Error spent in all; by default that of two sigma, 2.275 %.
        exponent: Power of the information fraction.
    """

    alpha: float = field(default_factory=lambda: normal_sf(TWO_SIGMA))
    exponent: float = 2.0

    def spent(self, fraction: float) -> float:
        """Return the error spent at an information fraction between 0 and 1."""
        return float(self.alpha * fraction**self.exponent)


@dataclass(frozen=True, slots=True)
class Futility:
    """Non-binding rule to give up: even an effect this optimistic would hardly cross the last boundary.

    Attributes:
        optimism: Standard errors by which the effect seen so far is raised.
        conditional_power: Probability of crossing the last boundary below which the experiment stops.
    """

    optimism: float = 1.5
    conditional_power: float = 0.05


@dataclass(frozen=True, slots=True)
class Schedule:
    """When an experiment is looked at, and what it must show there.

    Attributes:
        looks: Numbers of pairs, rising; the last one is the cap.
        boundaries: Evidence z that stops at each look, rounded to 6 decimals.
        futility: The rule to give up, or None to go on to the cap.
    """

    looks: tuple[int, ...]
    boundaries: tuple[float, ...]
    futility: Futility | None


@dataclass(frozen=True, slots=True)
class LookDecision:
    """What one look decided.

    Attributes:
        n: Pairs at this look.
        fraction: Information fraction, n over the cap.
        boundary: Evidence that stops here.
        statistic: Test behind ``z_eff``.
        z_eff: Evidence seen.
        conditional_power: Probability of still crossing the last boundary under the optimistic effect; None
            at the last look and without a futility rule.
        stop: Why the experiment ends here, or None when it goes on.
    """

    n: int
    fraction: float
    boundary: float
    statistic: Statistic | None
    z_eff: float
    conditional_power: float | None
    stop: Stop | None


def standard_looks(max_pairs: int) -> tuple[int, ...]:
    """Return the looks 6, 8, …, ``max_pairs``, each at the end of a quad.

    Raises:
        ValueError: ``max_pairs`` is odd or below 6.
    """
    if max_pairs < MIN_PAIRS or max_pairs % 2:
        raise ValueError(f"{max_pairs} pairs: the cap must be even and at least {MIN_PAIRS}")
    return tuple(range(MIN_PAIRS, max_pairs + 1, 2))


def schedule(
    looks: Sequence[int], spending: Spending | None = None, futility: Futility | None = None
) -> Schedule:
    """Build the schedule of an early-stopping experiment.

    Args:
        looks: Numbers of pairs, rising.
        spending: How the error is spent; by default two sigma, as the square of the fraction.
        futility: The rule to give up, or None for none.

    Raises:
        ValueError: The looks do not rise or start below one.
    """
    spent = spending or Spending()
    return Schedule(tuple(looks), boundaries(tuple(looks), spent), futility)


def stated_schedule(
    looks: Sequence[int],
    boundary: Sequence[float],
    *,
    futility_power: float | None,
    futility_optimism: float,
) -> Schedule:
    """Return a schedule whose boundaries are on record already.

    Args:
        looks: Numbers of pairs, rising.
        boundary: Evidence that stops at each look.
        futility_power: Probability below which it gives up, or None for no such rule.
        futility_optimism: Standard errors by which the effect seen is raised for that.
    """
    futility = None if futility_power is None else Futility(futility_optimism, futility_power)
    return Schedule(tuple(looks), tuple(boundary), futility)


@lru_cache(maxsize=256)
def boundaries(looks: tuple[int, ...], spending: Spending) -> tuple[float, ...]:
    """Return the upper z boundary of each look under one-sided error spending.

    The density of the score process that has not stopped is carried from look to look (Armitage, McPherson
    and Rowe, 1969) by Gauss-Legendre quadrature; futility is left out, so that it may be overruled.

    Args:
        looks: Numbers of pairs, rising; the last one is the cap.
        spending: How the one-sided error is spent.

    Returns:
        One z value a look, rounded to 6 decimals.

    Raises:
        ValueError: The looks do not rise or start below one.
    """
    if not looks or looks[0] < 1 or any(b <= a for a, b in pairwise(looks)):
        raise ValueError(f"looks {looks} must rise from at least one pair")
    abscissae, weights = np.polynomial.legendre.leggauss(_NODES)
    found: list[float] = []
    points, mass, before = np.zeros(1), np.ones(1), 0.0
    spent = 0.0
    for pairs in looks:
        fraction = pairs / looks[-1]
        step = math.sqrt(fraction - before)
        due = spending.spent(fraction) - spent
        edge = _edge(points, mass, step, due, math.sqrt(fraction))
        found.append(round(edge / math.sqrt(fraction), BOUNDARY_DIGITS))
        lowest = -_LOWEST_SD * math.sqrt(fraction)
        new_points = (edge + lowest) / 2 + (edge - lowest) / 2 * abscissae
        density = _transition(new_points, points, step) @ mass
        points, mass = new_points, density * weights * (edge - lowest) / 2
        spent, before = spent + due, fraction
    return tuple(found)


def _edge(points: FloatArray, mass: FloatArray, step: float, due: float, sd: float) -> float:
    """Return the score beyond which exactly ``due`` of the surviving paths lie after one more step."""

    def excess(edge: float) -> float:
        return float(scipy.special.ndtr((points - edge) / step) @ mass) - due

    return float(scipy.optimize.brentq(excess, -_LOWEST_SD * sd, _LOWEST_SD * sd, xtol=1e-13))


def _transition(to: FloatArray, start: FloatArray, step: float) -> FloatArray:
    distance = (to[:, None] - start[None, :]) / step
    return np.asarray(np.exp(-distance * distance / 2) / (step * math.sqrt(2 * math.pi)), dtype=np.float64)


def conditional_power(z_eff: float, fraction: float, last_boundary: float, optimism: float) -> float:
    """Return the probability of crossing the last boundary if the effect is ``optimism`` se larger.

    Φ[(z√t + (z + optimism)(1 - t)/√t - c)/√(1 - t)], the B-value form of Lan and Wittes (1988).

    Args:
        z_eff: Evidence seen at this look.
        fraction: Information fraction t, between 0 and 1, both excluded.
        last_boundary: Boundary c of the last look.
        optimism: Standard errors added to the effect seen.
    """
    root, left = math.sqrt(fraction), 1 - fraction
    expected = z_eff * root + (z_eff + optimism) * left / root
    return round(normal_sf((last_boundary - expected) / math.sqrt(left)), Z_DIGITS)


def decide_look(estimate: Estimate, plan: Schedule) -> LookDecision:
    """Decide whether an experiment stops at this look.

    Args:
        estimate: What the pairs so far say; their number must be a look of the plan.
        plan: The schedule.

    Returns:
        The look with its boundary, and why the experiment stops, if it does.

    Raises:
        ValueError: The number of pairs is no look of the plan, or one of the orders is missing.
    """
    if estimate.n not in plan.looks:
        raise ValueError(f"{estimate.n} pairs are no look of {plan.looks}")
    if estimate.z_eff is None:
        raise ValueError("one of the orders is missing; there is no evidence to look at")
    boundary = plan.boundaries[plan.looks.index(estimate.n)]
    fraction = estimate.n / plan.looks[-1]
    power = None
    if plan.futility is not None and estimate.n < plan.looks[-1]:
        power = conditional_power(estimate.z_eff, fraction, plan.boundaries[-1], plan.futility.optimism)
    return LookDecision(
        n=estimate.n,
        fraction=fraction,
        boundary=boundary,
        statistic=estimate.statistic,
        z_eff=estimate.z_eff,
        conditional_power=power,
        stop=_stop(estimate, plan, boundary, estimate.z_eff, power),
    )


def _stop(
    estimate: Estimate, plan: Schedule, boundary: float, z_eff: float, power: float | None
) -> Stop | None:
    if z_eff >= boundary:
        return "gain"
    if z_eff <= -boundary:
        return "loss"
    if power is not None and plan.futility is not None and power < plan.futility.conditional_power:
        return "futility"
    return "last" if estimate.n == plan.looks[-1] else None


def replay(
    differences: Sequence[float],
    order: Sequence[Order],
    plan: Schedule,
    *,
    statistic: Statistic | None = None,
    tau: float = 0.0,
) -> tuple[LookDecision, ...]:
    """Recompute every look of an experiment from its differences, up to the look that stops it.

    Args:
        differences: Log ratios of all pairs in the order in which they were run.
        order: Order of each pair.
        plan: The schedule.
        statistic: Fixed by the plan, or None for the statistic of each number of pairs.
        tau: Standard deviation between sessions, a log ratio, as known before the experiment.

    Returns:
        The looks that were reached; the last one has a ``stop`` unless the pairs ran out before.
    """
    taken: list[LookDecision] = []
    for pairs in plan.looks:
        if pairs > len(differences):
            break
        estimate = crossover_estimate(differences[:pairs], order[:pairs], statistic=statistic, tau=tau)
        taken.append(decide_look(estimate, plan))
        if taken[-1].stop is not None:
            break
    return tuple(taken)
