"""What every family of checks works on: the evidence of one round, read and verified once."""

from __future__ import annotations

from dataclasses import dataclass

from roundkit.evidence import RoundEvidence
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.ledger import RoundLedger, TicketRecord
from roundkit.models.round_plan import RoundPlan
from roundkit.models.run_spec import RunSpec


@dataclass(frozen=True)
class Material:
    """One round's evidence in memory.

    Attributes:
        evidence: The verified folder.
        plan: The frozen plan.
        ledger: What the round recorded.
        spec: The run specification.
        secret: The coordinator's secret.
        experiments: Every experiment by id.
    """

    evidence: RoundEvidence
    plan: RoundPlan
    ledger: RoundLedger
    spec: RunSpec
    secret: bytes
    experiments: dict[str, ExperimentRecord]

    def ticket(self, name: str) -> TicketRecord | None:
        """Return the ticket of that name, or None."""
        return next((ticket for ticket in self.ledger.tickets if ticket.ticket == name), None)

    def of_subject(self, subject: str) -> list[ExperimentRecord]:
        """Return a subject's experiments in the order in which they were made."""
        found = [record for record in self.experiments.values() if record.subject == subject]
        return sorted(found, key=lambda record: record.attempt)


def read_material(evidence: RoundEvidence) -> Material:
    """Read everything that the checks need.

    Raises:
        EvidenceProblem: a file does not have the bytes of the index, or does not fit its format.
    """
    return Material(
        evidence=evidence,
        plan=evidence.plan,
        ledger=evidence.ledger,
        spec=evidence.run_spec,
        secret=evidence.secret,
        experiments={record.experiment_id: record for record in evidence.experiments()},
    )
