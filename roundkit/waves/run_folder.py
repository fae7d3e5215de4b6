"""The folder of one gate's run: what it is, and which of its steps have left their record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from roundkit.core.clock import now_utc
from roundkit.core.errors import refuse
from roundkit.evidence import wave_layout as names
from roundkit.models.base import Record
from roundkit.models.wave_gate import (
    CommitStep,
    GateRun,
    GateStep,
    HarvestStep,
    OwnersStep,
    PickStep,
    PrefilterStep,
    RejectRows,
    RunEnd,
    RunMode,
)
from roundkit.models.wave_records import LedgerRow
from roundkit.rules.wave_steps import Identity, Step, decided
from roundkit.waves.folder import CampaignFolder, read_record, write_once
from roundkit.waves.owners import Earlier
from roundkit.waves.staging import DraftStore

_RUN = "run.json"
_END = "end.json"
_REJECTS = "rejects.json"

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class RunFolder:
    """A run of the gate: its folder, and what is recorded there.

    Attributes:
        campaign: The campaign.
        path: The run's folder.
    """

    campaign: CampaignFolder
    path: Path

    @property
    def store(self) -> DraftStore:
        """Copies of the drafts."""
        return DraftStore(self.path / "drafts")

    @property
    def staging(self) -> Path:
        """Where every call has a folder of its own; gone once the run has ended."""
        return self.path / "staging"

    def log(self, name: str) -> Path:
        """Return the log of a command, which is written while it talks."""
        return self.path / "logs" / f"{name}.log"

    def has(self, step: Step) -> bool:
        """Say whether a step has left its record."""
        return (self.path / f"{step}.json").exists()

    def record(self, step: Step, record: Record) -> None:
        """Write the record of a step, once.

        Raises:
            OSError: it cannot be written.
        """
        write_once(self.path / f"{step}.json", record)

    @cached_property
    def run(self) -> GateRun:
        """What this run is."""
        return self._read(_RUN, GateRun)

    @cached_property
    def owners(self) -> OwnersStep:
        """Drafts and their owners."""
        return self._read("owners.json", OwnersStep)

    @cached_property
    def prefilter(self) -> PrefilterStep:
        """What the prefilter said."""
        return self._read("prefilter.json", PrefilterStep)

    @cached_property
    def pick(self) -> PickStep:
        """What goes to the gate."""
        return self._read("pick.json", PickStep)

    @cached_property
    def gate(self) -> GateStep:
        """What the gates said."""
        return self._read("gate.json", GateStep)

    @cached_property
    def commit(self) -> CommitStep:
        """What was committed."""
        return self._read("commit.json", CommitStep)

    @cached_property
    def harvest(self) -> HarvestStep:
        """How the harvest went."""
        return self._read("harvest.json", HarvestStep)

    @cached_property
    def row(self) -> LedgerRow:
        """Its row in the ledger."""
        return self._read("row.json", LedgerRow)

    @property
    def rejects(self) -> RejectRows | None:
        """What it did not bank; null before that was written down."""
        return read_record(self.path / _REJECTS, RejectRows)

    def record_rejects(self, rejects: RejectRows) -> None:
        """Write down what it did not bank, once."""
        write_once(self.path / _REJECTS, rejects)

    @property
    def ended(self) -> bool:
        """Whether nothing of it is left to do."""
        return (self.path / _END).exists()

    def end(self, end: RunEnd) -> None:
        """Say that nothing of it is left to do."""
        write_once(self.path / _END, end)

    def _read(self, name: str, model: type[R]) -> R:
        found = read_record(self.path / name, model)
        if found is None:
            raise refuse("malformed", f"{name} is missing", place=str(self.path))
        return found


def begin_run(campaign: CampaignFolder, tag: str, mode: RunMode) -> RunFolder:
    """Make the folder of a wave's next run.

    Raises:
        OSError: it cannot be made.
    """
    gates = campaign.wave(tag) / names.GATES
    gates.mkdir(exist_ok=True)
    number = 1 + max((int(path.name) for path in gates.iterdir() if path.name.isdigit()), default=0)
    folder = gates / f"{number:04d}"
    folder.mkdir()
    folder.chmod(0o711)
    run = GateRun(
        format="roundkit-gate-run/1", plan_sha256=campaign.plan_sha256, tag=tag, number=number, mode=mode,
        started_utc=now_utc(),
    )  # fmt: skip
    write_once(folder / _RUN, run)
    return RunFolder(campaign, folder)


def runs_of(campaign: CampaignFolder, tag: str) -> list[RunFolder]:
    """Return a wave's runs, oldest first; a folder that a killed gater had not begun to fill is none."""
    gates = campaign.wave(tag) / names.GATES
    if not gates.is_dir():
        return []
    found = sorted(path for path in gates.iterdir() if path.name.isdigit())
    return [RunFolder(campaign, path) for path in found if (path / _RUN).exists()]


def earlier_of(runs: Iterable[RunFolder]) -> Earlier:
    """Return what ended runs over a wave's own drafts leave nothing to do about."""
    closed: set[Identity] = set()
    refused: set[tuple[str, str | None]] = set()
    for folder in runs:
        if not folder.ended or folder.run.mode == "parked":
            continue
        closed |= decided(folder.owners, folder.prefilter, folder.pick, folder.gate)
        refused |= {(row.path, row.sha256) for row in folder.owners.refused}
    return Earlier(frozenset(closed), frozenset(refused))
