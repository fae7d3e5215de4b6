"""Verdict arithmetic: from an estimate, the plan's gates and what broke, to one verdict with its reason."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from roundkit.stats.differences import gain_fraction
from roundkit.stats.estimate import Estimate
from roundkit.stats.guards import GuardResult
from roundkit.stats.rounding import round_gain, round_z
from roundkit.stats.tails import normal_isf

Verdict = Literal["pass", "fail", "not-measured", "invalid"]

TWO_SIGMA = 2.0
"""Evidence that a verdict needs: one-sided 2.275 %, whatever the number of pairs."""

ORDER_SIGMA = 2.0
"""Standard errors beyond which an order effect may hide a carry-over.

A constant of the protocol, since its error rates are simulated with it: a preliminary test as in
Grizzle (1965), at 4.55 % two-sided. Freeman (1989) shows that no verdict may follow such a test from the same
data, so that here it withholds one. The plan's ``order_margin`` says which order effects are too small to
matter, and its ``statistic: each-order`` does without the test.
"""

MIN_PAIRS = 6
"""Fewest pairs that carry a verdict."""

MDE_POWER = 0.80
"""Power at which the smallest detectable gain is stated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """The plan's gates. The plan states both margins; the rest has the protocol's constants.

    Attributes:
        min_gain: Smallest gain worth keeping (the rollback line), a fraction.
        loss_margin: Changes no larger than this, a fraction, are no change in either direction.
        z_min: Evidence needed, as a standard normal deviate.
        min_pairs: Fewest pairs that carry a verdict.
        order_margin: An order effect no larger than this, a log ratio, cannot hide a carry-over that matters;
            0 takes every order effect beyond two of its standard errors seriously.
    """

    min_gain: float
    loss_margin: float
    z_min: float = TWO_SIGMA
    min_pairs: int = MIN_PAIRS
    order_margin: float = 0.0

    def __post_init__(self) -> None:
        for name in ("min_gain", "loss_margin", "z_min", "order_margin"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"gate {name} is {value!r}; it must be finite and not negative")
        if self.min_pairs < MIN_PAIRS:
            raise ValueError(
                f"gate min_pairs is {self.min_pairs}; at least {MIN_PAIRS} pairs carry a verdict"
            )


@dataclass(frozen=True, slots=True)
class VerdictDecision:
    """One verdict and the numbers behind it.

    Attributes:
        verdict: ``pass``, ``fail``, ``not-measured`` or ``invalid``.
        reason: Stable code of the one rule that decided.
        n: Pairs behind it; 0 when nothing was estimated.
        z_eff: Evidence for a gain; None when it could not be computed.
        z_required: Evidence that was required (``z_min``, or the boundary of the look).
        gain: Estimated gain, a fraction.
        mde: Smallest gain that this many pairs show with 80 % power, a fraction.
        order_beyond: Whether the order effect is beyond two of its standard errors; None when unknown.
        otherwise: The verdict that the order effect withheld, when ``reason`` is ``order``.
    """

    verdict: Verdict
    reason: str
    n: int
    z_eff: float | None
    z_required: float
    gain: float | None
    mde: float | None
    order_beyond: bool | None
    otherwise: Verdict | None = None


def verdict(
    estimate: Estimate | None,
    gates: Gates,
    *,
    guards: Sequence[GuardResult] = (),
    candidate_cause: str | None = None,
    validator_ok: bool = True,
    invalid_cause: str | None = None,
    z_boundary: float | None = None,
    futile: bool = False,
    tau: float = 0.0,
) -> VerdictDecision:
    """Decide one ticket, rerun, composition step or A/A check.

    Reasons, in the order in which they decide: ``candidate-…`` and ``validator`` (fail), the invalid cause
    (invalid), ``no-samples``, ``too-few-pairs`` and ``one-order`` (not-measured), ``guard:<name>`` (fail),
    ``order`` (not-measured), ``gain`` (pass), ``below-line`` and ``regression`` (fail), ``within-margin``,
    ``futility`` and ``within-noise`` (not-measured). What a candidate caused comes first, so that breaking
    the host as well buys no second try.

    Args:
        estimate: What the pairs say; None when there is none.
        gates: The plan's gates.
        guards: Guard metrics held against their limits.
        candidate_cause: How the candidate broke, a code ``candidate-…``.
        validator_ok: Whether the validator accepted the outputs.
        invalid_cause: What the coordinator saw break that no candidate can cause, e.g. ``stopped-by-hand``.
        z_boundary: Boundary of the look at which an early-stopping experiment ended; replaces ``z_min``.
        futile: Whether it ended for futility.
        tau: Between-session standard deviation that ``estimate`` was weakened by, a log ratio.

    Returns:
        The decision.

    Raises:
        ValueError: ``candidate_cause`` does not start with ``candidate-``, or ``invalid_cause`` does.
    """
    _check_causes(candidate_cause, invalid_cause)
    z_required = round_z(gates.z_min if z_boundary is None else z_boundary)
    outcome = _broken(candidate_cause, validator_ok, invalid_cause)
    otherwise: Verdict | None = None
    beyond = None if estimate is None else order_beyond(estimate, gates.order_margin)
    if outcome is None:
        outcome = _countable(estimate, gates) or _first_guard(guards)
    if outcome is None and estimate is not None:
        outcome = _numbers(estimate, gates, z_required, futile)
        if beyond and estimate.statistic != "each-order":
            otherwise = outcome[0]
            outcome = ("not-measured", "order")
    word, reason = outcome if outcome is not None else ("not-measured", "no-samples")
    return VerdictDecision(
        verdict=word,
        reason=reason,
        n=estimate.n if estimate else 0,
        z_eff=estimate.z_eff if estimate else None,
        z_required=z_required,
        gain=estimate.gain if estimate else None,
        mde=smallest_detectable_gain(estimate.s, estimate.n, z_required, tau=tau) if estimate else None,
        order_beyond=beyond,
        otherwise=otherwise,
    )


def order_beyond(estimate: Estimate, order_margin: float = 0.0) -> bool | None:
    """Tell whether the order effect is beyond two of its standard errors; None when it has no standard error.

    Args:
        estimate: Any estimate.
        order_margin: Order effects up to this log ratio do not count.
    """
    if estimate.order_z is None or estimate.order_effect is None:
        return None
    return abs(estimate.order_z) > ORDER_SIGMA and round_gain(abs(estimate.order_effect)) > order_margin


def smallest_detectable_gain(
    s: float | None, n: int, z_required: float = TWO_SIGMA, *, tau: float = 0.0
) -> float | None:
    """Return the gain, a fraction, that n pairs show with 80 % power: (z + 0.84) · √(s²/n + tau²).

    Args:
        s: Standard deviation of one pair's difference, in log units; None when unknown.
        n: Pairs.
        z_required: Evidence that a pass needs.
        tau: Between-session standard deviation, in log units, which no number of pairs makes smaller.
    """
    if s is None:
        return None
    return gain_fraction((z_required + normal_isf(1 - MDE_POWER)) * math.hypot(s / math.sqrt(n), tau))


def _check_causes(candidate_cause: str | None, invalid_cause: str | None) -> None:
    if candidate_cause is not None and not candidate_cause.startswith("candidate-"):
        raise ValueError(f"candidate cause {candidate_cause!r} does not start with 'candidate-'")
    if invalid_cause is not None and invalid_cause.startswith("candidate-"):
        raise ValueError(
            f"invalid cause {invalid_cause!r} names the candidate; what it causes is never invalid"
        )


def _broken(
    candidate_cause: str | None, validator_ok: bool, invalid_cause: str | None
) -> tuple[Verdict, str] | None:
    if candidate_cause is not None:
        return "fail", candidate_cause
    if not validator_ok:
        return "fail", "validator"
    if invalid_cause is not None:
        return "invalid", invalid_cause
    return None


def _countable(estimate: Estimate | None, gates: Gates) -> tuple[Verdict, str] | None:
    if estimate is None:
        return "not-measured", "no-samples"
    if estimate.n < gates.min_pairs:
        return "not-measured", "too-few-pairs"
    if estimate.z_eff is None:
        return "not-measured", "one-order"
    return None


def _first_guard(guards: Sequence[GuardResult]) -> tuple[Verdict, str] | None:
    return next((("fail", f"guard:{guard.name}") for guard in guards if not guard.ok), None)


def _numbers(estimate: Estimate, gates: Gates, z_required: float, futile: bool) -> tuple[Verdict, str]:
    z_eff = estimate.z_eff if estimate.z_eff is not None else 0.0
    if z_eff >= z_required and estimate.gain >= gates.min_gain:
        return "pass", "gain"
    if abs(z_eff) >= z_required:
        # The margin decides both ways: a deterministic instrument makes the smallest change significant.
        if abs(estimate.gain) <= gates.loss_margin:
            return "not-measured", "within-margin"
        return ("fail", "below-line") if z_eff > 0 else ("fail", "regression")
    return "not-measured", "futility" if futile else "within-noise"
