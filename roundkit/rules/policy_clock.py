"""Whether a run's times can be told: the clock that they are by went on, and nobody set it. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import datetime

from roundkit.models.experiment import ExperimentRecord
from roundkit.models.ledger import RoundLedger
from roundkit.models.policy_run import PolicyEnd, PolicyLaunch
from roundkit.models.round_plan import RoundPlan
from roundkit.rules.clock_pairs import no_durations

_BACKWARDS = "the host's clock went back during it"


def no_times(
    rounds: Sequence[tuple[RoundPlan, RoundLedger]],
    launch: PolicyLaunch | None,
    experiments: Sequence[ExperimentRecord],
    end: PolicyEnd,
    *,
    older: bool,
) -> str | None:
    """Say why no difference of a run's times is a duration; None where they are.

    Args:
        rounds: Its rounds, in order.
        launch: Its first launch.
        experiments: Of all its rounds.
        end: How it ended.
        older: Whether its record is of a format that knows one clock alone.
    """
    if _goes_back(launch.launched_utc if launch is not None else None, rounds):
        return _BACKWARDS
    if older or launch is None:
        return None
    pairs = [launch.clock, *(record.ended_clock for record in experiments)]
    # The end of a run that broke may have been noted by a later process, after a restart of the host.
    return no_durations([*pairs, end.clock] if end.process == "completed" else pairs)


def _goes_back(launched_utc: datetime | None, rounds: Sequence[tuple[RoundPlan, RoundLedger]]) -> bool:
    moments = [moment for plan, ledger in rounds for moment in (plan.frozen_utc, ledger.closed_utc)]
    if launched_utc is not None and moments:
        moments.insert(1, launched_utc)
    return any(later < earlier for earlier, later in itertools.pairwise(moments))
