"""Crossover estimate of paired AB/BA trials: gain, order effect and the evidence z_eff."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from roundkit.stats.differences import gain_fraction
from roundkit.stats.rounding import UNITS_PER_LOG, Z_CAP, round_significant, round_z, to_units
from roundkit.stats.signed_rank import hodges_lehmann, signed_rank
from roundkit.stats.tails import normal_isf, normal_sf, t_isf, t_sf

Order = Literal["AB", "BA"]
Statistic = Literal["t", "signed-rank", "each-order"]

SIGNED_RANK_FROM_PAIRS = 12
"""From this many pairs on the signed rank replaces t, where the plan's ``statistic`` fixes neither.

Its smallest one-sided level is 2⁻ⁿ (Wilcoxon, 1945): with 6 pairs hardly beyond two sigma, with 12 beyond
3.4. It costs at most 14 % of t's efficiency (Hodges and Lehmann, 1956), and a spike moves it far less.
"""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What n pairs say. Positive is a gain; log units unless said otherwise; None where n does not allow it.

    Attributes:
        n: Pairs.
        n_ab: Pairs in the order baseline, candidate.
        n_ba: Pairs in the order candidate, baseline.
        statistic: Test behind ``z_eff``.
        delta: The estimate shown: crossover mean under t, Hodges-Lehmann under the signed rank.
        delta_mean: Crossover mean, (mean over AB + mean over BA) / 2.
        hodges_lehmann: Hodges-Lehmann estimate of the order-corrected differences.
        gain: ``1 - exp(-delta)``, a fraction.
        s: Standard deviation of one difference within its order, n-2 degrees of freedom.
        se: Standard error of ``delta_mean``.
        df: Degrees of freedom, n-2 (0 at least).
        order_effect: (mean over AB - mean over BA) / 2; positive when whatever runs second is faster.
        order_se: Standard error of ``order_effect``; equal to ``se`` in this design.
        order_z: ``order_effect / order_se``, capped and rounded.
        z_eff: Evidence for a gain as a standard normal deviate, capped and rounded.
        p_gain: One-sided probability of this much or more towards a gain when there is no difference; without
            the between-session part.
        p_loss: The same towards a loss.
    """

    n: int
    n_ab: int
    n_ba: int
    statistic: Statistic | None
    delta: float
    delta_mean: float
    hodges_lehmann: float
    gain: float
    s: float | None
    se: float | None
    df: int
    order_effect: float | None
    order_se: float | None
    order_z: float | None
    z_eff: float | None
    p_gain: float | None
    p_loss: float | None


def crossover_estimate(
    differences: Sequence[float],
    order: Sequence[Order],
    *,
    statistic: Statistic | None = None,
    tau: float = 0.0,
) -> Estimate:
    """Estimate gain, order effect and evidence of an AB/BA crossover (Hills and Armitage, 1979).

    The differences are taken as whole multiples of 1e-12, everything up to the test statistic is exact,
    and z_eff is rounded to 9 decimals: the same samples give the same verdict on every platform.

    Args:
        differences: n log ratios from :func:`paired_differences`.
        order: n orders, ``AB`` (baseline first) or ``BA``.
        statistic: Fixed by the plan, or None: t below 12 pairs, the signed rank from 12 on. ``each-order``
            asks either order by itself and counts the one that shows less.
        tau: Between-session standard deviation left over at this number of pairs, a log ratio, from the A/A
            history; it weakens ``z_eff`` as it widens the standard error (:func:`weakened_z`).

    Returns:
        The estimate; what n or a missing order does not allow is None.

    Raises:
        ValueError: No pairs, lengths differ, an unknown order, a difference that is not finite, or a tau that
            is negative or not finite.
    """
    _check_differences(differences, order)
    if not (math.isfinite(tau) and tau >= 0):
        raise ValueError(f"tau is {tau!r}; it must be finite and not negative")
    ab = [to_units(d) for d, o in zip(differences, order, strict=True) if o == "AB"]
    ba = [to_units(d) for d, o in zip(differences, order, strict=True) if o == "BA"]
    if not ab or not ba:
        return _one_order_estimate(ab, ba)
    n = len(ab) + len(ba)
    chosen: Statistic = statistic or ("signed-rank" if n >= SIGNED_RANK_FROM_PAIRS else "t")
    mean_ab, mean_ba = Fraction(sum(ab), len(ab)), Fraction(sum(ba), len(ba))
    delta, order_effect = (mean_ab + mean_ba) / 2, (mean_ab - mean_ba) / 2
    corrected, scale = _order_corrected(ab, ba)
    middle = hodges_lehmann(corrected) / scale
    shown = middle if chosen == "signed-rank" else delta
    s2, se2 = _variances(ab, ba)
    z_eff: float | None
    p_gain: float | None
    p_loss: float | None
    if chosen == "signed-rank":
        z_eff, p_gain, p_loss = _signed_rank_z(corrected)
    elif chosen == "each-order":
        z_eff, p_gain, p_loss = _each_order_z((mean_ab, len(ab)), (mean_ba, len(ba)), s2)
    else:
        z_eff, p_gain, p_loss = _t_z(delta, se2, n - 2)
    se = None if se2 is None else _root(se2)
    return Estimate(
        n=n,
        n_ab=len(ab),
        n_ba=len(ba),
        statistic=chosen,
        delta=_log_units(shown),
        delta_mean=_log_units(delta),
        hodges_lehmann=_log_units(middle),
        gain=gain_fraction(_log_units(shown)),
        s=None if s2 is None else _root(s2),
        se=se,
        df=max(0, n - 2),
        order_effect=_log_units(order_effect),
        order_se=se,
        order_z=None if se2 is None else round_z(_t_value(order_effect, se2)),
        z_eff=None if z_eff is None else weakened_z(z_eff, _log_units(shown), tau),
        p_gain=p_gain,
        p_loss=p_loss,
    )


def weakened_z(z_eff: float, delta: float, tau: float) -> float:
    """Return evidence weakened by between-session noise: z / √(1 + (z·tau/delta)²).

    The standard error that the evidence implies, delta/z, grows to √((delta/z)² + tau²).

    Args:
        z_eff: Evidence of the pairs alone.
        delta: The estimate that it belongs to, a log ratio.
        tau: Between-session standard deviation left over, a log ratio.

    Returns:
        The evidence, capped and rounded.
    """
    if not tau or not z_eff:
        return round_z(z_eff)
    return round_z(math.copysign(abs(delta) / math.hypot(delta / z_eff, tau), z_eff)) if delta else 0.0


def delta_interval(
    estimate: Estimate, *, level: float = 0.95, tau: float = 0.0
) -> tuple[float, float] | None:
    """Return the two-sided interval of ``estimate.delta``: delta ± t(n-2) · √(se² + tau²), in log units.

    Args:
        estimate: Any estimate.
        level: Confidence, between 0 and 1.
        tau: Between-session standard deviation left over, in log units, from the A/A history.

    Returns:
        Lower and upper end, or None where the estimate has no standard error.
    """
    if estimate.se is None:
        return None
    half = t_isf((1 - level) / 2, estimate.df) * math.hypot(estimate.se, tau)
    return estimate.delta - half, estimate.delta + half


def _check_differences(differences: Sequence[float], order: Sequence[str]) -> None:
    if len(differences) == 0:
        raise ValueError("no pair given")
    if len(differences) != len(order):
        raise ValueError(f"{len(differences)} differences but {len(order)} orders")
    for index, (difference, label) in enumerate(zip(differences, order, strict=True)):
        if not math.isfinite(difference):
            raise ValueError(f"difference of pair {index} is {difference!r}")
        if label not in ("AB", "BA"):
            raise ValueError(f"order of pair {index} is {label!r}, neither 'AB' nor 'BA'")


def _one_order_estimate(ab: list[int], ba: list[int]) -> Estimate:
    """Show the mean when one order is missing: order and gain cannot be told apart, so nothing is tested."""
    values = ab + ba
    mean = _log_units(Fraction(sum(values), len(values)))
    return Estimate(
        n=len(values),
        n_ab=len(ab),
        n_ba=len(ba),
        statistic=None,
        delta=mean,
        delta_mean=mean,
        hodges_lehmann=_log_units(hodges_lehmann(values)),
        gain=gain_fraction(mean),
        s=None,
        se=None,
        df=max(0, len(values) - 2),
        order_effect=None,
        order_se=None,
        order_z=None,
        z_eff=None,
        p_gain=None,
        p_loss=None,
    )


def _order_corrected(ab: list[int], ba: list[int]) -> tuple[list[int], int]:
    """Return differences without the order effect as whole numbers, and the scale that makes them whole."""
    scale = 2 * len(ab) * len(ba)
    shift = sum(ab) * len(ba) - sum(ba) * len(ab)
    return [scale * u - shift for u in ab] + [scale * u + shift for u in ba], scale


def _variances(ab: list[int], ba: list[int]) -> tuple[Fraction | None, Fraction | None]:
    """Return s² of one difference within its order and se² of the crossover mean, in squared quanta."""
    df = len(ab) + len(ba) - 2
    if df < 1:
        return None, None
    s2 = (_residual_squares(ab) + _residual_squares(ba)) / df
    return s2, s2 * (Fraction(1, len(ab)) + Fraction(1, len(ba))) / 4


def _residual_squares(side: list[int]) -> Fraction:
    return sum(u * u for u in side) - Fraction(sum(side) ** 2, len(side))


def _t_value(effect: Fraction, se2: Fraction) -> float:
    if not effect:
        return 0.0
    if not se2:
        return math.copysign(math.inf, effect)
    return math.copysign(math.sqrt(effect * effect / se2), effect)


def _t_z(effect: Fraction, se2: Fraction | None, df: int) -> tuple[float | None, float | None, float | None]:
    if se2 is None:
        return None, None, None
    value = _t_value(effect, se2)
    tail = max(t_sf(abs(value), df), _smallest_p())
    z = math.copysign(normal_isf(tail), value) if value else 0.0
    near, far = round_significant(tail), round_significant(1 - tail)
    return (round_z(z), near, far) if value >= 0 else (round_z(z), far, near)


def _each_order_z(
    ab: tuple[Fraction, int], ba: tuple[Fraction, int], s2: Fraction | None
) -> tuple[float | None, float | None, float | None]:
    """Return the evidence of the order that shows less, each with its mean and number of pairs.

    An intersection-union test (Berger, 1982): a gain only where both orders show one, each at the whole
    level. A carry-over slows one side in one order alone, and so cannot pass; the price is that each order
    has half of the pairs.
    """
    if s2 is None:
        return None, None, None
    degrees = ab[1] + ba[1] - 2
    tests = [_t_z(mean, s2 / count, degrees) for mean, count in (ab, ba)]
    p_gain = max(gain for _, gain, _ in tests if gain is not None)
    p_loss = max(loss for _, _, loss in tests if loss is not None)
    zs = [z for z, _, _ in tests if z is not None]
    z = min(zs) if min(zs) > 0 else max(zs) if max(zs) < 0 else 0.0
    return z, p_gain, p_loss


def _signed_rank_z(corrected: list[int]) -> tuple[float, float, float]:
    test = signed_rank(corrected)
    p_gain, p_loss = max(test.p_gain, _smallest_p()), max(test.p_loss, _smallest_p())
    # Discrete: both tails can exceed one half, which is no evidence either way.
    tail = min(p_gain, p_loss, 0.5)
    z = normal_isf(tail)
    return round_z(z if p_gain < p_loss else -z), round_significant(p_gain), round_significant(p_loss)


def _smallest_p() -> float:
    return normal_sf(Z_CAP)


def _log_units(value: Fraction) -> float:
    return float(value / UNITS_PER_LOG) + 0.0


def _root(variance: Fraction) -> float:
    return math.sqrt(variance) / UNITS_PER_LOG
