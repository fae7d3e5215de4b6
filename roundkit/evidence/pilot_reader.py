"""A pilot's folder as a reader finds it: no link is followed, every read is bounded, nothing is decided."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from roundkit.core.canonical import digest_bytes, digest_file
from roundkit.core.files import path_text, tree_digest
from roundkit.evidence import layout, pilot_layout
from roundkit.evidence.folder import EvidenceFolder
from roundkit.evidence.indexed import RecordType as RecordType
from roundkit.evidence.indexed import canonical_record
from roundkit.evidence.pilot_kind import require_paired
from roundkit.evidence.plan_seal import SEAL, plan_changed, seal_problem
from roundkit.evidence.problem import EvidenceProblem, problem
from roundkit.models.pilot_evidence import FROZEN_GUIDE, FROZEN_PROMPT, Artifact, TrialFiles
from roundkit.models.pilot_plan import PairedPlan, Slot
from roundkit.models.pilot_published import PublishedCohort
from roundkit.models.pilot_trial import ArchivedFile, TrialRecord, TrialStart

MAX_ARTIFACT_BYTES = 256 << 20
"""Beyond it a trial's file is not read: a wire is bounded by the plan, and this is far above any plan."""

_FIXED = (
    pilot_layout.START, pilot_layout.RECORD, pilot_layout.PROMPT, pilot_layout.WIRE, pilot_layout.CALLS,
    pilot_layout.DRIFT, pilot_layout.DRIFT_PREIMAGE, pilot_layout.PRESENTATION, pilot_layout.INTERVENTIONS,
    pilot_layout.DIFF,
)  # fmt: skip
_REVIEWED = (pilot_layout.PACKET, pilot_layout.SESSION, pilot_layout.MARKS, pilot_layout.FINISHED)


@dataclass(frozen=True)
class PilotReader:
    """A paired pilot's folder.

    Attributes:
        root: The folder; the path that leads to it may hold links, nothing inside may.
    """

    root: Path

    @property
    def is_published(self) -> bool:
        """Whether it holds a cohort that others published, in place of a plan and trials."""
        return (self.root / pilot_layout.PUBLISHED).exists()

    def read(self, name: str, *, limit: int = MAX_ARTIFACT_BYTES) -> bytes:
        """Return a file's bytes.

        Raises:
            EvidenceProblem: it is missing, a link, has a second name, or is too large.
        """
        return EvidenceFolder(self.root).read(name, limit=limit, one_name=True)

    def record(self, name: str, kind: type[RecordType]) -> RecordType:
        """Return a record.

        Raises:
            EvidenceProblem: as :meth:`read`; ``malformed`` or ``not-canonical``.
        """
        return canonical_record(self.read(name, limit=layout.MAX_RECORD_BYTES), name, kind)

    def plan(self) -> PairedPlan:
        """Return the frozen plan, compared with its seal.

        Raises:
            EvidenceProblem: as :meth:`plan_as_it_lies`; ``plan-changed``: it is not the one that was frozen.
        """
        plan = self.plan_as_it_lies()
        if (said := self.seal_problem(plan)) is not None:
            raise plan_changed(said)
        return plan

    def plan_as_it_lies(self) -> PairedPlan:
        """Return the plan without a look at its seal: for an audit, which tells everything that is wrong.

        Raises:
            EvidenceProblem: there is none that can be read; ``other-kind``: it is not of a paired pilot.
        """
        require_paired(self.root)
        return self.record(pilot_layout.PLAN, PairedPlan)

    def seal_problem(self, plan: PairedPlan) -> str | None:
        """Say how the plan is not the one that was frozen; null where it is.

        A plan of the format without a seal is compared with what was run of it: each start names its digest.

        Raises:
            EvidenceProblem: the seal is there and cannot be read.
        """
        try:
            seal: bytes | None = self.read(SEAL, limit=layout.MAX_RECORD_BYTES)
        except EvidenceProblem as found:
            if found.refusals[0].code != "missing-file":
                raise
            seal = None
        if seal is not None or plan.is_sealed:
            return seal_problem(plan.to_bytes(), seal)
        if self._started_plans() <= {plan.digest()}:
            return None
        return "is missing, and an attempt was made at another plan"

    def _started_plans(self) -> set[str]:
        """Return the digests of plans that attempts name, as far as their starts can be read."""
        named = set()
        for folder in (*self.trial_folders(), *self.setup_folders()):
            with suppress(EvidenceProblem):
                named.add(self.record(f"{folder}/{pilot_layout.START}", TrialStart).plan_sha256)
        return named

    def published(self) -> PublishedCohort:
        """Return the published cohort.

        Raises:
            EvidenceProblem: there is none that can be read.
        """
        return self.record(pilot_layout.PUBLISHED, PublishedCohort)

    def trial_record(self, folder: str) -> TrialRecord:
        """Return an attempt's record.

        Raises:
            EvidenceProblem: there is none that can be read.
        """
        return self.record(f"{folder}/{pilot_layout.RECORD}", TrialRecord)

    def digests(self, folder: str) -> dict[str, ArchivedFile]:
        """Return everything below an attempt's folder, with size and digest; of a link, those of its target.

        Raises:
            EvidenceProblem: there is too much.
        """
        top = self.root / folder
        found = (archived_file(top, path.relative_to(top).as_posix()) for path in self._below(folder))
        return {file.path: file for file in found}

    def files_below(self, folder: str) -> list[str]:
        """Return the path of everything below a folder that is no folder, sorted; none where it is missing.

        Raises:
            EvidenceProblem: there is too much.
        """
        if not (self.root / folder).is_dir():
            return []
        return [path.relative_to(self.root).as_posix() for path in self._below(folder)]

    @staticmethod
    def may_be_added(name: str) -> bool:
        """Say whether a file may lie in an attempt's folder without being in its record."""
        return name in {pilot_layout.RECORD, pilot_layout.INTERVENTIONS} or name.startswith(
            f"{pilot_layout.REVIEW}/"
        )

    def matches(self, folder: str, listed: ArchivedFile, found: ArchivedFile) -> bool:
        """Say whether a file is the one that a record lists; a ledger has to begin with it."""
        if listed == found:
            return True
        if listed.path != pilot_layout.INTERVENTIONS or found.size < listed.size:
            return False
        return digest_bytes(self.read(f"{folder}/{listed.path}")[: listed.size]) == listed.sha256

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder below, sorted; none where it does not exist."""
        try:
            return sorted(entry.name for entry in (self.root / folder).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def trial_folders(self) -> list[str]:
        """Return the folders of all attempts at slots, relative to the pilot's."""
        return [f"{pilot_layout.TRIALS}/{name}" for name in self.names(pilot_layout.TRIALS)]

    def setup_folders(self) -> list[str]:
        """Return the folders of all attempts outside of the matrix."""
        return [f"{pilot_layout.SETUP}/{name}" for name in self.names(pilot_layout.SETUP)]

    def artifact(self, folder: str, name: str) -> Artifact:
        """Return one file of a trial as it was found; a file that cannot be read is found so."""
        try:
            return Artifact(name, self.read(f"{folder}/{name}" if folder else name))
        except EvidenceProblem as error:
            return Artifact(name, problem=error.refusals[0].code)
        except OSError:
            return Artifact(name, problem="not-a-file")

    def trial_files(self, folder: str, slot: Slot) -> TrialFiles:
        """Return everything that a trial's eligibility is decided on, the slot's frozen prompt included."""
        review = f"{folder}/{pilot_layout.REVIEW}/{pilot_layout.PACKET_FILES}"
        names = [
            *_FIXED,
            *(f"{pilot_layout.REVIEW}/{name}" for name in _REVIEWED),
            *(f"{pilot_layout.REVIEW}/{pilot_layout.PACKET_FILES}/{name}" for name in self.names(review)),
        ]
        artifacts = {name: self.artifact(folder, name) for name in names}
        frozen = {
            FROZEN_PROMPT: self.artifact("", pilot_layout.task_input(slot.task, "prompt")),
            FROZEN_GUIDE: self.artifact("", pilot_layout.variant_guide(slot.variant)),
        }
        return TrialFiles(folder, {**artifacts, **frozen}, self._candidate(folder))

    def _below(self, folder: str) -> list[Path]:
        found: list[Path] = []
        pending = [self.root / folder]
        while pending:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    (pending if entry.is_dir(follow_symlinks=False) else found).append(Path(entry))
            if len(found) > layout.MAX_FILES:
                raise problem("too-large", f"more than {layout.MAX_FILES} files", where=folder)
        return sorted(found)

    def _candidate(self, folder: str) -> str | None:
        path = self.root / folder / pilot_layout.CANDIDATE
        if path.is_symlink() or not path.is_dir():
            return None
        try:
            return tree_digest(path, skip=frozenset())
        except OSError:
            return None


def archived_file(trial: Path, name: str) -> ArchivedFile:
    """Return what a record binds of a file: size and digest; of a link those of its target.

    Args:
        trial: The attempt's folder.
        name: The file's path below it.

    Raises:
        OSError: it cannot be read.
    """
    path = trial / name
    mode = path.lstat().st_mode
    shown = path_text(name)
    if stat.S_ISREG(mode):
        return ArchivedFile(path=shown, size=path.stat().st_size, sha256=digest_file(path))
    content = os.fsencode(path.readlink()) if stat.S_ISLNK(mode) else b""
    return ArchivedFile(path=shown, size=len(content), sha256=digest_bytes(content))
