"""A policy pilot's folder, read through no link and in bounds: what its audit and its report work on."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from roundkit.core.errors import Refused
from roundkit.evidence import EvidenceProblem, RoundEvidence, open_evidence
from roundkit.evidence import policy_layout as layout
from roundkit.evidence.folder import EvidenceFolder
from roundkit.evidence.plan_seal import SEAL
from roundkit.evidence.problem import problem
from roundkit.models.base import Record
from roundkit.models.policy_plan import PolicyPlan, PolicySlot
from roundkit.models.policy_run import PolicyDecision, PolicyEnd, PolicyLaunch, PolicyRunRecord, PolicyStart
from roundkit.rules.policy_run import RoundView

_MOST_BYTES = 16 << 20
_MOST_NAMES = 10_000
_RUN_FILES = frozenset({layout.START, layout.LAUNCH, layout.END, layout.RECORD, layout.ROUNDS, layout.BROKEN})
_TOP = frozenset({layout.PLAN, SEAL, layout.CAMPAIGN, layout.DECISION, layout.RUNS})

RecordType = TypeVar("RecordType", bound=Record)


@dataclass(frozen=True)
class RunMaterial:
    """What lies in one run's folder; None where a file is missing.

    Attributes:
        rounds: The evidence of its rounds, in order of their names.
    """

    slot: PolicySlot
    folder: str
    start: PolicyStart | None
    launch: PolicyLaunch | None
    end: PolicyEnd | None
    record: PolicyRunRecord | None
    rounds: tuple[RoundEvidence, ...]

    def views(self) -> tuple[RoundView, ...]:
        """Return its rounds, read.

        Raises:
            EvidenceProblem: one of them is damaged.
        """
        return tuple(map(round_view, self.rounds))


@dataclass(frozen=True)
class PolicyMaterial:
    """A pilot's whole folder.

    Attributes:
        path: The folder.
        plan: The frozen plan.
        plan_bytes: Its bytes as they lie there.
        seal: Its digest as it was frozen, with its name.
        campaign_bytes: The campaign file's.
        decision: What was decided; None before every slot is used.
        runs: One for each slot whose folder is there, in the order of the schedule.
        extra: Names that no pilot has.
        problems: What could not be read.
    """

    path: Path
    plan: PolicyPlan
    plan_bytes: bytes
    seal: bytes
    campaign_bytes: bytes
    decision: PolicyDecision | None
    runs: tuple[RunMaterial, ...]
    extra: tuple[str, ...]
    problems: tuple[EvidenceProblem, ...] = field(repr=False)

    @property
    def records(self) -> tuple[PolicyRunRecord, ...]:
        """Every record that is there, in the order of the schedule."""
        return tuple(run.record for run in self.runs if run.record is not None)


def read_policy(path: Path) -> PolicyMaterial:
    """Read a pilot's folder.

    Raises:
        EvidenceProblem: there is no plan that can be read.
    """
    folder = EvidenceFolder(path)
    plan_bytes = folder.read(layout.PLAN, limit=_MOST_BYTES)
    plan = _parse(PolicyPlan, plan_bytes, layout.PLAN)
    seal = folder.read(SEAL, limit=_MOST_BYTES)
    campaign = folder.read(layout.CAMPAIGN, limit=_MOST_BYTES)
    problems: list[EvidenceProblem] = []
    extra = [name for name in _names(path) if name not in _TOP and name != layout.WORK]
    expected = {layout.run_folder(slot).partition("/")[2]: slot for slot in plan.schedule}
    there = _names(path / layout.RUNS)
    extra += [f"{layout.RUNS}/{name}" for name in there if name not in expected]
    runs = [_run(path, slot, extra, problems) for name, slot in expected.items() if name in there]
    decision = _optional(PolicyDecision, path, layout.DECISION, problems)
    return PolicyMaterial(
        path, plan, plan_bytes, seal, campaign, decision, tuple(runs), tuple(extra), tuple(problems)
    )


def round_view(evidence: RoundEvidence) -> RoundView:
    """Return one round's evidence as the rules of a run take it.

    Raises:
        EvidenceProblem: it is damaged.
    """
    return RoundView(evidence.plan, evidence.ledger, tuple(evidence.experiments()), evidence.digest)


def _run(path: Path, slot: PolicySlot, extra: list[str], problems: list[EvidenceProblem]) -> RunMaterial:
    name = layout.run_folder(slot)
    extra += [f"{name}/{each}" for each in _names(path / name) if each not in _RUN_FILES]
    rounds = []
    for each in _names(path / name / layout.ROUNDS):
        place = path / name / layout.ROUNDS / each
        try:
            if place.is_symlink():
                raise problem("not-a-file", f"{each} is a link", where=f"{name}/{layout.ROUNDS}/{each}")
            rounds.append(open_evidence(place))
        except EvidenceProblem as found:
            problems.append(found)
    return RunMaterial(
        slot=slot,
        folder=name,
        start=_optional(PolicyStart, path, f"{name}/{layout.START}", problems),
        launch=_optional(PolicyLaunch, path, f"{name}/{layout.LAUNCH}", problems),
        end=_optional(PolicyEnd, path, f"{name}/{layout.END}", problems),
        record=_optional(PolicyRunRecord, path, f"{name}/{layout.RECORD}", problems),
        rounds=tuple(rounds),
    )


def _names(folder: Path) -> list[str]:
    """Return the names in a folder, sorted; none where it is a link or missing."""
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            return []
        names = sorted(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return []
    if len(names) > _MOST_NAMES:
        raise problem("too-large", f"more than {_MOST_NAMES} names in {folder.name}", where=folder.name)
    return names


def _optional(
    model: type[RecordType], path: Path, name: str, problems: list[EvidenceProblem]
) -> RecordType | None:
    """Return a record; None where its file is missing, and where it cannot be read, which is noted."""
    try:
        return _parse(model, EvidenceFolder(path).read(name, limit=_MOST_BYTES), name)
    except EvidenceProblem as found:
        if any(refusal.code != "missing-file" for refusal in found.refusals):
            problems.append(found)
        return None


def _parse(model: type[RecordType], data: bytes, name: str) -> RecordType:
    try:
        record = model.from_bytes(data, place=name)
        written = record.to_bytes()  # it may hold a figure that canonical JSON does not have
    except (Refused, ValueError) as error:
        raise problem("malformed", f"{name} does not fit its format: {error}", where=name) from error
    if written != data:
        raise problem("not-canonical", f"{name} is not canonical JSON", where=name)
    return record
