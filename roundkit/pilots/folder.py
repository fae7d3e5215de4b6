"""A pilot's folder: where everything lies, the frozen plan, and the attempts that were made."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from roundkit.core.errors import Refused, refuse
from roundkit.evidence import pilot_layout as layout
from roundkit.evidence.pilot_kind import pilot_kind
from roundkit.evidence.pilot_reader import PilotReader
from roundkit.models.base import Record
from roundkit.models.pilot_plan import PairedPlan, Slot
from roundkit.models.pilot_trial import TrialRecord, TrialStart
from roundkit.rules.pilot_matrix import Attempt

Model = TypeVar("Model", bound=Record)


@dataclass(frozen=True)
class PilotFolder:
    """One pilot's folder."""

    root: Path

    @property
    def plan_file(self) -> Path:
        """The frozen plan."""
        return self.root / layout.PLAN

    @property
    def trials(self) -> Path:
        """Attempts at the matrix."""
        return self.root / layout.TRIALS

    @property
    def setup(self) -> Path:
        """Attempts outside the matrix."""
        return self.root / layout.SETUP

    @property
    def replays(self) -> Path:
        """Acceptance decided again."""
        return self.root / layout.REPLAYS

    @property
    def work(self) -> Path:
        """The running coordinator's own."""
        return self.root / layout.WORK

    @property
    def lock(self) -> Path:
        """Held by whoever runs tuples."""
        return self.work / "run.lock"


@dataclass(frozen=True)
class TrialPlace:
    """One attempt: what it is at, and the folder that it leaves.

    Attributes:
        path: The folder.
        attempt: Its name.
        task: The task's id.
        variant: The variant's id.
        slot: The slot; null for a setup attempt.
    """

    path: Path
    attempt: str
    task: str
    variant: str
    slot: Slot | None

    @property
    def tuple_id(self) -> str | None:
        """The tuple; null for a setup attempt."""
        return None if self.slot is None else self.slot.tuple_id

    @property
    def name(self) -> str:
        """What it is called: its tuple, or the setup attempt."""
        return self.tuple_id or self.attempt


def frozen_kind(root: Path) -> str:
    """Return the kind of a pilot from its frozen plan.

    Raises:
        Refused: ``no-pilot``: the folder holds none; ``malformed``, ``not-permitted``: none that can be read.
    """
    kind = pilot_kind(root)
    plan = root / layout.PLAN
    if kind is None and plan.exists():
        raise refuse(
            "malformed" if os.access(plan, os.R_OK) else "not-permitted",
            "it is no plan of a pilot, or this user may not read it",
            place=str(plan),
            remedy="restore it from a copy, or be the user who may read it",
        )
    if kind is None:
        raise refuse(
            "no-pilot",
            f"{root} holds no frozen pilot",
            place=str(root / layout.PLAN),
            remedy="freeze one: roundkit pilot prepare pilot.yaml --out PILOT_DIR",
        )
    return kind


def read_plan(folder: PilotFolder) -> PairedPlan:
    """Read the frozen plan of a paired pilot.

    Raises:
        Refused: ``no-pilot``; ``other-kind``; ``plan-changed``: it is not the one that was frozen; or why it
            cannot be read, as :meth:`roundkit.evidence.pilot_reader.PilotReader.plan` says.
    """
    frozen_kind(folder.root)
    return PilotReader(folder.root).plan()


def read_model(path: Path, kind: type[Model]) -> Model | None:
    """Return what a file of the archive says; null where it is missing, a link, or says nothing that fits."""
    try:
        return None if path.is_symlink() else kind.from_bytes(path.read_bytes(), place=path.name)
    except (OSError, ValidationError, Refused, ValueError):
        return None


def attempts_in(place: Path) -> Iterator[Attempt]:
    """Yield the attempts in ``trials`` or ``setup``, by name; an empty folder, or a file, is none."""
    if not place.is_dir():
        return
    for path in sorted(place.iterdir()):
        if not path.is_dir() or not any(path.iterdir()):
            continue
        start = read_model(path / layout.START, TrialStart)
        yield Attempt(path.name, start, read_model(path / layout.RECORD, TrialRecord))


def slot_place(folder: PilotFolder, slot: Slot) -> TrialPlace:
    """Return where an attempt at a slot lies."""
    path = folder.root / layout.trial_folder(slot.order, slot.tuple_id)
    return TrialPlace(path, path.name, slot.task, slot.variant, slot)


def setup_place(folder: PilotFolder, task: str, variant: str) -> TrialPlace:
    """Return where the next setup attempt lies."""
    number = 1
    while (path := folder.setup / f"{task}.{variant}-{number}").exists():
        number += 1
    return TrialPlace(path, path.name, task, variant, None)
