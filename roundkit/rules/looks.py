"""Which experiments may end early, at which looks, and what the A/A checks say of noise between sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roundkit.models.ledger import AaCheck
from roundkit.models.measurement import LookPlan, PlaceNoise, Purpose, SessionNoise
from roundkit.models.round_plan import Gates
from roundkit.models.verdict import LookRecord
from roundkit.rules.drift import Place
from roundkit.stats.estimate import Order
from roundkit.stats.noise import between_session_variance
from roundkit.stats.sequential import Spending, boundaries, replay, stated_schedule
from roundkit.stats.tails import normal_sf

_MAY_END_EARLY: frozenset[Purpose] = frozenset({"ticket", "compare"})


def plan_looks(gates: Gates, purpose: Purpose) -> LookPlan | None:
    """Return the looks of an experiment; None for one that has every pair.

    Of a round's experiments only a ticket's may end early: it selects, and every figure that is called a
    gain is measured again with all pairs. A comparison outside a round may, where its reader agrees.

    Args:
        gates: The round's gates.
        purpose: What the experiment is for.
    """
    early = gates.early_stopping
    if early is None or purpose not in _MAY_END_EARLY:
        return None
    cap = gates.ab_ba_pairs
    looks = (*range(early.first_look, cap, early.every), cap)
    spending = Spending(alpha=normal_sf(gates.sigma_min), exponent=early.spending_exponent)
    return LookPlan(
        looks=looks,
        boundaries=boundaries(looks, spending),
        statistic=gates.statistic,
        futility_power=early.futility_power,
        futility_optimism=early.futility_optimism,
    )


def take_looks(
    differences: Sequence[float], orders: Sequence[Order], plan: LookPlan, tau: float
) -> tuple[LookRecord, ...]:
    """Recompute every look of an experiment, up to the one that ends it.

    Args:
        differences: Log ratios of all pairs, in the order in which they ran.
        orders: Order of each pair.
        plan: The looks.
        tau: Standard deviation between sessions, a log ratio.
    """
    schedule = stated_schedule(
        plan.looks,
        plan.boundaries,
        futility_power=plan.futility_power,
        futility_optimism=plan.futility_optimism,
    )
    return tuple(
        LookRecord(
            pairs=look.n,
            boundary=look.boundary,
            statistic=look.statistic,
            z=look.z_eff,
            conditional_power=look.conditional_power,
            stop=look.stop,
        )
        for look in replay(differences, orders, schedule, statistic=plan.statistic, tau=tau)
    )


def session_noise(checks: Sequence[AaCheck], gates: Gates) -> SessionNoise | None:
    """Return the noise between sessions that A/A checks show; None before the plan's number of them.

    Args:
        checks: The round's A/A checks so far, oldest first. Those before the last pause that was ended do not
            count: the machine was another one.
        gates: The round's gates.
    """
    return _noise(_since_resumed(checks), gates, len(checks))


def place_noise(
    checks: Sequence[AaCheck], places: Mapping[str, Place], gates: Gates
) -> tuple[PlaceNoise, ...]:
    """Return the noise between sessions of every device set whose own checks are as many as the plan asks.

    Sets differ: a busy one's noise, spread over quiet ones, would be understated where it counts.

    Args:
        checks: As of :func:`session_noise`.
        places: Where each check's experiment ran, by its id.
        gates: The round's gates.
    """
    seen: dict[tuple[str | None, str], list[AaCheck]] = {}
    for check in _since_resumed(checks):
        machine, device_set = places.get(check.experiment, (None, None))
        if device_set is not None:
            seen.setdefault((machine, device_set), []).append(check)
    found = []
    for (machine, device_set), own in sorted(seen.items(), key=lambda item: (item[0][0] or "", item[0][1])):
        noise = _noise(own, gates, len(checks))
        if noise is not None:
            found.append(PlaceNoise(machine_sha256=machine, device_set=device_set, noise=noise))
    return tuple(found)


def noise_where(
    place: Place, checks: Sequence[AaCheck], places: Mapping[str, Place], gates: Gates
) -> SessionNoise | None:
    """Return what an experiment at a place is weakened by: that place's own noise, else the round's."""
    for one in place_noise(checks, places, gates):
        if (one.machine_sha256, one.device_set) == place:
            return one.noise
    return session_noise(checks, gates)


def _since_resumed(checks: Sequence[AaCheck]) -> Sequence[AaCheck]:
    resumed = [number for number, check in enumerate(checks) if check.resumes]
    return checks[max(resumed, default=0) :]


def _noise(counted: Sequence[AaCheck], gates: Gates, made: int) -> SessionNoise | None:
    seen = [
        (check.delta, check.standard_error)
        for check in counted
        if check.delta is not None and check.standard_error is not None
    ]
    if gates.session_checks is None or len(seen) < gates.session_checks:
        return None
    variance = between_session_variance([delta for delta, _ in seen], [error for _, error in seen])
    return None if variance is None else SessionNoise(checks=made, variance=variance)
