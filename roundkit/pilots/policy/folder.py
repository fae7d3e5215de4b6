"""A policy pilot's folder: its frozen plan, checked before a field of it is trusted, and its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from roundkit.audit.policy_material import round_view
from roundkit.core.canonical import digest_bytes
from roundkit.core.errors import refuse
from roundkit.evidence import open_evidence
from roundkit.evidence import policy_layout as layout
from roundkit.models.policy_plan import PolicyPlan, PolicySlot
from roundkit.models.policy_run import PolicyRunRecord
from roundkit.rules.policy_order import policy_schedule, schedule_digest
from roundkit.rules.policy_run import RoundView


@dataclass(frozen=True)
class PolicyFolder:
    """A pilot's folder and its plan."""

    root: Path
    plan: PolicyPlan

    @property
    def lock(self) -> Path:
        """Held by the one process that runs the pilot; beside the folder, which is evidence."""
        return self.root.with_name(f".{self.root.name}.lock")

    @property
    def work(self) -> Path:
        """Where the run that goes on has its repository and rounds."""
        return self.root / layout.WORK

    def run(self, slot: PolicySlot) -> Path:
        """Return a run's folder."""
        return self.root / layout.run_folder(slot)

    def rounds(self, slot: PolicySlot) -> Path:
        """Return the folder with the evidence of a run's rounds."""
        return self.run(slot) / layout.ROUNDS

    def record(self, slot: PolicySlot) -> PolicyRunRecord | None:
        """Return a run's record; None while it has none."""
        path = self.run(slot) / layout.RECORD
        return PolicyRunRecord.from_bytes(path.read_bytes(), place=str(path)) if path.is_file() else None


def open_policy(root: Path) -> PolicyFolder:
    """Open a pilot's folder.

    Raises:
        Refused: ``not-a-pilot``, or ``plan-changed`` where plan or campaign are not what was frozen.
    """
    root = root.absolute()
    path = root / layout.PLAN
    try:
        data, campaign = path.read_bytes(), (root / layout.CAMPAIGN).read_bytes()
        seal = (root / layout.SEAL).read_bytes()
    except OSError as error:
        raise refuse(
            "not-a-pilot", f"no frozen pilot at {root}", place=str(root), remedy="run `pilot prepare` first"
        ) from error
    plan = PolicyPlan.from_bytes(data, place=layout.PLAN)
    expected = policy_schedule(plan.seed, plan.repetitions)
    if (
        plan.to_bytes() != data
        or seal != layout.seal_bytes(digest_bytes(data))
        or digest_bytes(campaign) != plan.campaign_sha256
        or (plan.schedule, plan.schedule_sha256) != (expected, schedule_digest(expected))
    ):
        raise refuse(
            "plan-changed",
            "the frozen pilot was edited after freezing",
            place=str(path),
            remedy="restore it, or prepare a new pilot; a frozen plan is never edited",
        )
    return PolicyFolder(root, plan)


def read_rounds(folder: Path) -> tuple[RoundView, ...]:
    """Return the rounds whose evidence lies in a folder, in order.

    Raises:
        EvidenceProblem: one of them is damaged.
    """
    places: Sequence[Path] = sorted(folder.iterdir()) if folder.is_dir() else ()
    return tuple(read_round(place) for place in places if not place.name.startswith("."))


def read_round(place: Path) -> RoundView:
    """Return one round's evidence, read and verified.

    Raises:
        EvidenceProblem: it is damaged.
    """
    return round_view(open_evidence(place))
