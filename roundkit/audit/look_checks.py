"""Early stopping: the looks that the plan gives, and an end exactly where they say."""

from __future__ import annotations

from collections.abc import Iterator

from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.material import Material
from roundkit.models.experiment import ExperimentRecord
from roundkit.rules.drift import measured_on
from roundkit.rules.looks import noise_where
from roundkit.rules.record_checks import look_problems


def check_looks(material: Material) -> list[Check]:
    """Check every experiment's looks, where it ended, and the noise between sessions that it knew."""
    early = sum(record.look_plan is not None for record in material.experiments.values())
    return conclude("looks", _problems(material), f"{early} experiments ended where their looks say")


def _problems(material: Material) -> Iterator[Disagreement]:
    for record in material.experiments.values():
        yield from look_problems(record, material.spec)
        yield from _noise_problems(material, record)


def _noise_problems(material: Material, record: ExperimentRecord) -> Iterator[Disagreement]:
    noise, checks, gates = record.session_noise, material.ledger.aa_checks, material.plan.gates
    if record.purpose == "aa":
        if noise is not None:
            yield Disagreement(record.experiment_id, "an A/A check whose evidence was weakened")
        return
    done = sum(
        material.experiments[check.experiment].ended_utc <= record.started_utc
        for check in checks
        if check.experiment in material.experiments
    )
    # Of checks that had ended, the last may not have been on record yet: one runs at a time. Nothing starts
    # before the first.
    least = max(done - 1, min(done, 1))
    places = {
        one.experiment: measured_on(material.experiments[one.experiment])
        for one in checks
        if one.experiment in material.experiments
    }
    here = measured_on(record)
    possible = [noise_where(here, checks[:known], places, gates) for known in range(least, done + 1)]
    if noise not in possible:
        yield differs(record.experiment_id, "noise between sessions", noise, possible[-1])
