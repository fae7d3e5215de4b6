"""The processes of an experiment's trials: each within a boundary on record, and ended as its trial says."""

from __future__ import annotations

from collections.abc import Iterator

from roundkit.core.canonical import digest_json
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.readings import ended_well, trial_roles
from roundkit.models.run_spec import RunSpec
from roundkit.rules.disagreement import Disagreement

_OF_AN_END = ("overrun", "limit", "crashed", "benchmark-broke", "invalid")
"""Problems that a trial has because one of its processes did not end well."""


def confinement_problems(record: ExperimentRecord, spec: RunSpec) -> Iterator[Disagreement]:
    """Yield runs without a boundary on record, and boundaries that are not what their digest says."""
    for digest, boundary in record.boundaries.items():
        if digest_json(boundary.model_dump(mode="json")) != digest:
            yield Disagreement(record.experiment_id, f"the boundary {digest} is another one")
        if boundary.network != "none":
            yield Disagreement(record.experiment_id, f"a trial had the {boundary.network} network")
    for trial in record.trials:
        where = f"{record.experiment_id} trial {trial.planned.index}"
        for needed in trial_roles(spec) if trial.problem is None else ():
            if needed not in trial.executions:
                yield Disagreement(where, f"no run of its {needed} is on record")
        for role, run in trial.executions.items():
            if run.boundary not in record.boundaries:
                yield Disagreement(where, f"no boundary is on record for its {role}")


def end_problems(record: ExperimentRecord, spec: RunSpec) -> Iterator[Disagreement]:
    """Yield trials that do not go with how their processes ended: well, or so that the problem follows."""
    for trial in record.trials:
        where = f"{record.experiment_id} trial {trial.planned.index}"
        ended = {role: run for role, run in trial.executions.items() if not ended_well(run)}
        told = (trial.problem or "").removeprefix(f"{trial.planned.side}-")
        if told not in _OF_AN_END:
            for role, run in ended.items():
                how = f"exit code {run.exit_code}" if run.end_reason == "exited" else run.end_reason
                yield Disagreement(where, f"its {role} ended with {how}, which its problem does not tell")
        elif not ended:
            yield Disagreement(where, f"its problem is {trial.problem}, and each of its processes ended well")
