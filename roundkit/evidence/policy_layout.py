"""Names within a policy pilot's folder, which is its evidence: nothing in it is rewritten or removed.

The digests form a tree: ``decision.json`` names every run's record, a record names the evidence of its
rounds, and all of them name the plan.
"""

from __future__ import annotations

from roundkit.models.policy_plan import PolicySlot

PLAN = "plan.json"
CAMPAIGN = "campaign.yaml"
"""The owner's campaign file as it was frozen."""
DECISION = "decision.json"
RUNS = "runs"
"""One folder a run: ``<order>-<arm>.<repetition>``."""
START = "start.json"
LAUNCH = "launch.json"
END = "end.json"
RECORD = "record.json"
ROUNDS = "rounds"
"""Below a run: the evidence of each of its rounds, as ``close`` exported it."""
BROKEN = "broken"
"""Below a run: what is left of a round that was not closed, its plan and its store without its secret."""
WORK = "running"
"""Repositories and round directories of the run that goes on; gone once it has ended, and no evidence."""


def run_folder(slot: PolicySlot) -> str:
    """Return the relative path of a run's folder."""
    return f"{RUNS}/{slot.order:02d}-{slot.run_id}"


def round_name(slot: PolicySlot, number: int) -> str:
    """Return the id of a run's n-th round, from 1."""
    return f"{slot.arm}{slot.repetition}-r{number:02d}"
