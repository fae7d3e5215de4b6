"""Where everything of a round lies on the disk."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from roundkit.core.errors import Refused, refuse, system_refusal
from roundkit.models.evidence import EvidencePointer
from roundkit.models.round_plan import RoundPlan


@dataclass(frozen=True)
class RoundFolder:
    """A round directory; lanes see only their own clone."""

    root: Path

    @property
    def plan_file(self) -> Path:
        """The frozen plan."""
        return self.root / "round-plan.json"

    @property
    def launch_file(self) -> Path:
        """The manifest that drivers take."""
        return self.root / "launch.json"

    @property
    def ledger_file(self) -> Path:
        """The ledger of a pruned round."""
        return self.root / "round-ledger.json"

    @property
    def pointer_file(self) -> Path:
        """Where the evidence of a pruned round lies; everything else but plan and ledger goes, or is gone."""
        return self.root / "evidence-pointer.json"

    @property
    def lanes(self) -> Path:
        """Folder of lane clones; where launch was told to put them elsewhere, a link leads there."""
        link = self.root / "lanes"
        return link.readlink() if link.is_symlink() else link

    @property
    def store(self) -> Path:
        """The coordinator's own folder (0700): database, repository, blobs, logs, secret."""
        return self.root / "store"

    @property
    def database(self) -> Path:
        """The coordinator's database."""
        return self.store / "round.sqlite3"

    @property
    def repository(self) -> Path:
        """Bare repository with the incumbent and every candidate commit."""
        return self.store / "repository.git"

    @property
    def blobs(self) -> Path:
        """Content-addressed bytes of every submitted file."""
        return self.store / "blobs"

    @property
    def secret_file(self) -> Path:
        """The coordinator's secret, 32 bytes, 0600."""
        return self.store / "secret"

    @property
    def serve_lock(self) -> Path:
        """Held by the one serve process of the round."""
        return self.store / "serve.lock"

    @property
    def close_lock(self) -> Path:
        """Held by the one close process of the round."""
        return self.store / "close.lock"

    def drive_lock(self, lane: str) -> Path:
        """Return what is held by whoever runs the agent of a lane."""
        return self.store / f"drive-{lane}.lock"

    @property
    def checkouts(self) -> Path:
        """Built checkouts of the incumbent and of candidates."""
        return self.root / "checkouts"

    @property
    def provision(self) -> Path:
        """What the plan's ``provision`` command made."""
        return self.checkouts / "provision"

    @property
    def trials(self) -> Path:
        """Working folders of experiments."""
        return self.root / "trials"

    @property
    def homes(self) -> Path:
        """Private homes of the lanes' agents."""
        return self.root / "homes"

    def attempt_log(self, lane: str, ordinal: int) -> Path:
        """Return the folder of what an attempt's agent said, bounded and without its keys."""
        return self.store / "agents" / lane / str(ordinal)

    def clone(self, lane: str) -> Path:
        """Return the clone of a lane."""
        return self.lanes / lane

    def outbox(self, lane: str) -> Path:
        """Return the folder in which a lane publishes submissions."""
        return self.clone(lane) / ".roundkit" / "outbox"

    def status(self, lane: str) -> Path:
        """Return the folder into which a lane's ticket states are mirrored."""
        return self.clone(lane) / ".roundkit" / "status"


def evidence_folder(plan: RoundPlan) -> Path:
    """Return where a round's evidence goes: beside the campaign file."""
    return Path(plan.campaign_path).parent / evidence_name(plan)


def evidence_name(plan: RoundPlan) -> str:
    """Return the evidence folder's path relative to the campaign file."""
    return f"evidence/{plan.campaign.campaign_id}/rounds/{plan.round_id}"


def round_folder(path: Path) -> RoundFolder:
    """Return the round at a path, absolute and without links."""
    return RoundFolder(path.resolve())


def read_plan(folder: RoundFolder) -> RoundPlan:
    """Read the frozen plan and check that it still is the one that was frozen.

    Raises:
        Refused: ``not-a-round``, ``not-permitted``, ``pruned``, ``malformed`` or ``plan-changed``.
    """
    if folder.pointer_file.exists():
        raise _pruned(folder)
    try:
        data = folder.plan_file.read_bytes()
        frozen = (folder.store / "plan-digest").read_text(errors="replace").strip()
    except PermissionError as error:
        raise Refused(system_refusal(error)) from error
    except OSError as error:
        there = folder.root.is_dir()
        raise refuse(
            "not-a-round",
            "there is no frozen round" if there else "there is no such folder",
            place=str(folder.root),
            remedy="name a folder that `roundkit prepare` made",
        ) from error
    plan = _parse(data, folder)
    if plan is None or plan.to_bytes() != data or plan.digest() != frozen:
        raise refuse(
            "plan-changed",
            "the frozen plan was edited after freezing",
            place=str(folder.plan_file),
            remedy="restore round-plan.json, or prepare a new round; a frozen plan is never edited",
        )
    return plan


def _pruned(folder: RoundFolder) -> Refused:
    """Say where the evidence of a pruned round lies, if its pointer can be read."""
    place = str(folder.pointer_file)
    try:
        pointer = EvidencePointer.from_bytes(folder.pointer_file.read_bytes(), place=place)
    except (OSError, ValueError):
        remedy = "it says where the evidence lies: `roundkit report` and `roundkit audit` work on that"
    else:
        said = shlex.join(["roundkit", "audit", pointer.evidence, "--expect", pointer.index_sha256])
        remedy = f"its evidence lies at {pointer.evidence}; check it with `{said}`"
    return refuse("pruned", f"the round at {folder.root} was closed and pruned", place=place, remedy=remedy)


def _parse(data: bytes, folder: RoundFolder) -> RoundPlan | None:
    try:
        return RoundPlan.from_bytes(data, place=str(folder.plan_file))
    except ValueError:
        return None
