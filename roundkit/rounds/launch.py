"""``launch``: from a frozen round to one ready clone per lane, and the manifest that drivers take."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from roundkit.core.clock import format_utc, is_expired, now_utc
from roundkit.core.errors import refuse
from roundkit.core.files import atomic_write
from roundkit.core.git import Repository
from roundkit.core.progress import SILENT, Progress
from roundkit.core.resources import lane_wrapper
from roundkit.models.lane import LaneFile, LaunchLane, LaunchManifest
from roundkit.models.round_plan import FrozenLane, RoundPlan
from roundkit.rounds.launch_clone import make_clone, remove_clone, visible_commit
from roundkit.rounds.launch_environment import import_place, make_environment
from roundkit.rounds.launch_root import place_lanes
from roundkit.rounds.layout import RoundFolder, read_plan
from roundkit.rounds.left_credentials import remove_left_credentials
from roundkit.rounds.locks import hold_lock
from roundkit.rounds.prepare_folder import INCUMBENT_BRANCH
from roundkit.rules.scope import submission_regex

WRAPPER = "round"
_READY_FOLDER = "launched"


@dataclass(frozen=True)
class _Launch:
    folder: RoundFolder
    plan: RoundPlan
    digest: str

    def ready_file(self, lane: str) -> Path:
        """Return the record that a lane is complete; it lies where no lane reaches it."""
        return self.folder.store / _READY_FOLDER / f"{lane}.json"


def launch(
    folder: RoundFolder,
    *,
    posted_digest: str | None = None,
    round_root: Path | None = None,
    now: datetime | None = None,
    progress: Progress = SILENT,
) -> LaunchManifest:
    """Make every lane of a round ready, or what is missing of them, and write ``launch.json``.

    A lane that stands is left as it is, whatever its agent made of it.

    Args:
        folder: The round directory.
        posted_digest: The plan digest that was posted; null when none was.
        round_root: Folder below which the clones are put instead of the round directory.
        now: The time; the clock's unless given.
        progress: Shows the lanes that are ready.

    Raises:
        Refused: ``digest-mismatch``, ``round-deadline``, ``other-plan``, ``repository-damaged``,
            ``import-probe``, ``launch-running``, or what reading the plan or placing the clones raises.
        ConfinementUnavailable: the import probe cannot be confined on this host.
    """
    plan = read_plan(folder)
    remove_left_credentials(folder)
    run = _Launch(folder, plan, plan.digest())
    check_digest(plan, posted_digest, place=str(folder.plan_file))
    _check_deadline(plan, now or now_utc())
    with hold_lock(folder.store / "launch.lock", code="launch-running", what="a launch of this round"):
        manifest_before = _read_manifest(run)
        _check_repository(run)
        if round_root is not None:
            place_lanes(folder, plan, round_root)
        base = visible_commit(folder.repository, plan)
        lanes = []
        with progress.task(f"launch {plan.round_id}", len(plan.lanes), "lanes") as task:
            for lane in plan.lanes:
                lanes.append(_ready_lane(run, lane, base, manifest_before))
                task.advance()
        manifest = LaunchManifest(
            format="roundkit-launch/1",
            round_id=plan.round_id,
            round_digest=run.digest,
            incumbent=plan.incumbent,
            protected_paths=plan.protected_paths,
            lanes=tuple(lanes),
        )
        if manifest != manifest_before:
            atomic_write(folder.launch_file, manifest.to_bytes())
    return manifest


def check_digest(plan: RoundPlan, posted: str | None, *, place: str) -> None:
    """Check that a plan is the one whose digest was posted, if any was.

    Raises:
        Refused: ``digest-mismatch``.
    """
    if posted is not None and posted.strip().lower() != plan.digest():
        raise refuse(
            "digest-mismatch",
            f"the plan's digest is {plan.digest()}, and {posted} was posted",
            place=place,
            remedy="launch the round that was posted, or post this plan's digest",
        )


def _check_deadline(plan: RoundPlan, now: datetime) -> None:
    if is_expired(plan.deadline_utc, now):
        raise refuse(
            "round-deadline",
            f"the round's deadline {format_utc(plan.deadline_utc)} has passed",
            place="round-plan.json: deadline_utc",
            remedy="prepare a new round",
        )


def _read_manifest(run: _Launch) -> LaunchManifest | None:
    try:
        data = run.folder.launch_file.read_bytes()
    except FileNotFoundError:
        return None
    try:
        manifest = LaunchManifest.from_bytes(data, place="launch.json")
    except ValueError:
        manifest = None
    if manifest is None or manifest.round_digest != run.digest:
        raise refuse(
            "other-plan",
            "launch.json belongs to another plan than round-plan.json",
            place=str(run.folder.launch_file),
            remedy="launch each round in a directory of its own",
        )
    return manifest


def _check_repository(run: _Launch) -> None:
    repository = Repository(run.folder.repository)
    if repository.resolve(f"refs/heads/{INCUMBENT_BRANCH}") != run.plan.incumbent:
        raise refuse(
            "repository-damaged",
            f"the round's own repository has no incumbent {run.plan.incumbent}",
            place=str(run.folder.repository),
            remedy="prepare the round anew",
        )


def _ready_lane(run: _Launch, lane: FrozenLane, base: str, before: LaunchManifest | None) -> LaunchLane:
    clone = run.folder.clone(lane.id)
    ready = run.ready_file(lane.id)
    # Agents start only after launch.json is there, so that a clone without either record is nobody's work.
    handed_out = next((known for known in before.lanes if known.id == lane.id), None) if before else None
    if clone.is_dir() and handed_out is not None:
        return handed_out
    if clone.is_dir() and ready.is_file():
        return LaunchLane.from_bytes(ready.read_bytes(), place=str(ready))
    remove_clone(clone)
    made = _make_lane(run, lane, base, clone)
    ready.parent.mkdir(exist_ok=True)
    atomic_write(ready, made.to_bytes())
    return made


def _make_lane(run: _Launch, lane: FrozenLane, base: str, clone: Path) -> LaunchLane:
    plan = run.plan
    make_clone(run.folder.repository, base, clone)
    _furnish(clone / ".roundkit", _lane_file(run, lane, base))
    environment = make_environment(clone, plan) if plan.lane_environment == "venv" else None
    probe = import_place(clone, plan, environment) if plan.campaign.target_package else None
    return LaunchLane(
        id=lane.id,
        clone=str(clone),
        wrapper=str(clone / ".roundkit" / WRAPPER),
        entry=lane.entry,
        plane=lane.plane,
        hypothesis=lane.hypothesis,
        globs=lane.globs,
        harness=lane.harness,
        model=lane.model,
        budget=lane.budget,
        deadline_utc=lane.deadline_utc,
        environment=str(environment) if environment else None,
        probe=probe,
    )


def _lane_file(run: _Launch, lane: FrozenLane, base: str) -> LaneFile:
    globs = {other.id: other.globs for other in run.plan.lanes}
    return LaneFile(
        format="roundkit-lane/1",
        round_id=run.plan.round_id,
        round_digest=run.digest,
        lane=lane.id,
        base_commit=base,
        globs=lane.globs,
        globs_regex=submission_regex(lane.id, globs, run.plan.protected_paths),
        protected_paths=run.plan.protected_paths,
        submission_cap=lane.submission_cap,
        deadline_utc=lane.deadline_utc,
    )


def _furnish(home: Path, lane_file: LaneFile) -> None:
    """Lay out the lane's ``.roundkit`` folder."""
    home.mkdir()
    for name in ("scratch", "outbox", "status"):
        (home / name).mkdir()
    atomic_write(home / "lane.json", lane_file.to_bytes())
    atomic_write(home / WRAPPER, lane_wrapper().read_bytes())
    (home / WRAPPER).chmod(0o755)
