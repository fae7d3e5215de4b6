"""A policy pilot's folder: its frozen plan, checked before a field of it is trusted, and its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from roundkit.audit.policy_material import round_view
from roundkit.core.canonical import digest_bytes
from roundkit.core.errors import refuse
from roundkit.evidence import open_evidence
from roundkit.evidence import policy_layout as layout
from roundkit.evidence.plan_seal import SEAL, seal_problem
from roundkit.models.base import Record
from roundkit.models.policy_plan import PolicyPlan, PolicySlot
from roundkit.models.policy_run import PolicyRunRecord, PolicyStart
from roundkit.rules.pilot_chain import Chain, Link, chain_of
from roundkit.rules.policy_order import policy_schedule, schedule_digest
from roundkit.rules.policy_run import RoundView, run_link

Model = TypeVar("Model", bound=Record)


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
        return read_record(self.run(slot) / layout.RECORD, PolicyRunRecord)

    def chain(self) -> Chain:
        """Return the runs in the order in which they were started."""
        return chain_of([self._link(slot) for slot in self.plan.schedule if self.run(slot).exists()])

    def _link(self, slot: PolicySlot) -> Link:
        return run_link(slot, read_record(self.run(slot) / layout.START, PolicyStart), self.record(slot))


def read_record(path: Path, kind: type[Model]) -> Model | None:
    """Return a record; None where it is not there.

    Raises:
        Refused: ``malformed``: what is there is none, or a link.
    """
    if not path.is_file() and not path.is_symlink():
        return None
    try:
        # A link's own name holds no record, wherever it leads.
        data = b"" if path.is_symlink() else path.read_bytes()
        return kind.from_bytes(data, place=path.name)
    except ValueError as error:
        raise refuse(
            "malformed",
            f"{path.name} is no {kind.__name__}: {next(iter(str(error).splitlines()), '')}",
            place=str(path),
            remedy="restore the folder from a copy; `pilot audit` says what else was changed",
        ) from error


def open_policy(root: Path) -> PolicyFolder:
    """Open a pilot's folder.

    Raises:
        Refused: ``not-a-pilot``, or ``plan-changed`` where plan or campaign are not what was frozen.
    """
    # Whatever path leads here, there is one lock of the pilot, beside the folder itself.
    root = root.resolve()
    path = root / layout.PLAN
    for name in (layout.RUNS, layout.WORK):
        if (root / name).is_symlink():
            raise refuse(
                "plan-changed",
                f"{name} is a link: nothing of a pilot lies elsewhere",
                place=str(root / name),
                remedy="put the folder itself there",
            )
    try:
        data, campaign = path.read_bytes(), (root / layout.CAMPAIGN).read_bytes()
        seal = (root / SEAL).read_bytes()
    except OSError as error:
        raise refuse(
            "not-a-pilot", f"no frozen pilot at {root}", place=str(root), remedy="run `pilot prepare` first"
        ) from error
    plan = PolicyPlan.from_bytes(data, place=layout.PLAN)
    expected = policy_schedule(plan.seed, plan.repetitions)
    if (
        plan.to_bytes() != data
        or seal_problem(data, seal) is not None
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
