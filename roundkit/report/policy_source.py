"""A policy pilot as its report takes it: records, rounds, audit, workload."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from roundkit.audit import AuditReport
from roundkit.audit.policy import audit_policy
from roundkit.audit.policy_material import PolicyMaterial, read_policy
from roundkit.models.policy_plan import ARMS, Arm, PolicyPlan
from roundkit.models.policy_run import PolicyDecision, PolicyRunRecord
from roundkit.report.pilot_folder import pilot_folder
from roundkit.rules.policy_cost import Workload, parallel_bound, serial_bound
from roundkit.rules.policy_run import RoundView
from roundkit.rules.policy_workload import measured_workload


@dataclass(frozen=True)
class PolicySource:
    """A pilot's folder, read, and audited.

    Attributes:
        material: Everything in it.
        audit: What recomputing it says.
    """

    material: PolicyMaterial
    audit: AuditReport

    @property
    def plan(self) -> PolicyPlan:
        """The frozen plan."""
        return self.material.plan

    @property
    def decision(self) -> PolicyDecision | None:
        """What was decided; None while runs are left."""
        return self.material.decision

    @property
    def records(self) -> tuple[PolicyRunRecord, ...]:
        """Every run's record, in the order in which they ran."""
        return self.material.records

    @cached_property
    def views(self) -> dict[str, tuple[RoundView, ...]]:
        """The rounds of each run, by the run's name."""
        return {run.slot.run_id: run.views() for run in self.material.runs}

    @cached_property
    def workload(self) -> Workload | None:
        """A, s, M and D as the rounds measured them, in seconds."""
        return measured_workload(self.plan, [view for views in self.views.values() for view in views])

    @property
    def serial_s(self) -> float | None:
        """N(A + sM) in seconds."""
        return serial_bound(self.workload) if self.workload else None

    @property
    def parallel_s(self) -> float | None:
        """max(A + sM, N·s·M / D) in seconds."""
        return parallel_bound(self.workload) if self.workload else None

    def of(self, arm: Arm) -> tuple[PolicyRunRecord, ...]:
        """Return an arm's runs by repetition."""
        own = [record for record in self.records if record.arm == arm]
        return tuple(sorted(own, key=lambda record: record.repetition))

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms that have a run."""
        return tuple(arm for arm in ARMS if self.of(arm))


def open_pilot(path: str | Path) -> PolicySource:
    """Open and audit a policy pilot by a path that is absolute, or relative to this folder or one above it.

    Raises:
        Refused: ``no-pilot``, or whatever is wrong with the folder.
    """
    found = pilot_folder(path, holds=("plan.json",))
    return PolicySource(read_policy(found), audit_policy(found))
