"""Attempts: identity, phase, number, charge and deadline of every run of a lane's agent."""

from __future__ import annotations

from collections.abc import Iterator

from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.material import Material
from roundkit.rules.attempts import account, ledger_problems
from roundkit.rules.authority import authority_problems


def check_attempts(material: Material) -> list[Check]:
    """Check every attempt against the plan: who it is, what it is charged, and when it began."""
    number = len(material.ledger.attempts)
    return [
        *conclude(
            "attempts", _attempt_problems(material), f"{number} attempts, each within its lane's budget"
        )
    ]


def _attempt_problems(material: Material) -> Iterator[Disagreement]:
    plan, ledger = material.plan, material.ledger
    lanes = {lane.id for lane in plan.lanes}
    for record in ledger.attempts:
        if record.binding.lane not in lanes:
            yield differs("round-ledger.json", "lane of an attempt", record.binding.lane, "one of the plan")
        if not plan.frozen_utc <= record.reserved_utc <= ledger.closed_utc:
            yield Disagreement(
                f"lane {record.binding.lane}",
                f"attempt {record.binding.ordinal} was reserved before the plan was frozen or after the end",
            )
    reserved = [record.reserved_utc for record in ledger.attempts]
    if reserved != sorted(reserved):
        yield Disagreement("round-ledger.json", "attempts are not in the order of their reservation")
    for problem in authority_problems(plan, ledger.attempts):
        yield Disagreement("round-ledger.json", problem)
    for lane in plan.lanes:
        for problem in ledger_problems(material.evidence.round_digest, account(lane, ledger.attempts)):
            yield Disagreement(f"lane {lane.id}", problem)
