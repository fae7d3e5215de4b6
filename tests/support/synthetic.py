"""A campaign repository for tests, and lanes that are scripted: real git, real files, the real wrapper."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from support.program import CAMPAIGN, FILES, ROUND

from roundkit.core.clock import format_utc
from roundkit.core.git import Repository
from roundkit.core.yamlfile import dump_yaml, load_yaml
from roundkit.models.lane import LaunchManifest
from roundkit.models.round_plan import RoundPlan
from roundkit.rounds.launch import launch
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.prepare import freeze

SECRET = bytes(range(32))
SYSTEM_PYTHON = Path("/usr/bin/python3")
BASE_MS = 10.0
STAGE_MS = 30.0
NOISE = 0.002

Content = str | bytes | None


@dataclass(frozen=True)
class CampaignRepo:
    """A synthetic campaign: its repository, and the owner's two files."""

    root: Path
    campaign_file: Path
    round_file: Path

    @property
    def repository(self) -> Repository:
        return Repository(self.root)

    @property
    def incumbent(self) -> str:
        return str(load_yaml(self.campaign_file.read_bytes(), place="")["search_state"]["incumbent_revision"])

    def edit_campaign(self, edit: Callable[[Any], object]) -> None:
        """Change the campaign file as an editor would: comments stay."""
        _edit(self.campaign_file, edit)

    def edit_round(self, edit: Callable[[Any], object]) -> None:
        """Change the round file."""
        _edit(self.round_file, edit)

    def copy_to(self, folder: Path) -> CampaignRepo:
        """Copy the repository and the two files into another folder, which exists."""
        shutil.copytree(self.root, folder / self.root.name, symlinks=True)
        shutil.copy(self.round_file, folder / self.round_file.name)
        root = folder / self.root.name
        return CampaignRepo(root, root / self.campaign_file.name, folder / self.round_file.name)

    def commit(self, files: Mapping[str, Content], message: str = "change") -> str:
        """Commit files on the checked-out branch and return the commit."""
        write_files(self.root, files)
        return commit_all(self.repository, list(files), message)

    def start_from(self, commit: str) -> None:
        """Make a commit the incumbent."""
        self.edit_campaign(lambda plan: plan["search_state"].update(incumbent_revision=commit))

    def freeze(self, out: Path, **options: Any) -> RoundPlan:
        return freeze(self.campaign_file, self.round_file, out, **{"secret": SECRET, **options})

    def launched(self, out: Path) -> tuple[RoundFolder, LaunchManifest]:
        """Prepare and launch the round into a folder."""
        self.freeze(out)
        folder = RoundFolder(out)
        return folder, launch(folder)


@contextmanager
def reachable_folder() -> Iterator[Path]:
    """Make a folder that commands under another user id can reach, and remove it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="roundkit-test-")).resolve()
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def campaign_repo(
    tmp_path: Path,
    lanes: Sequence[str] = ("L1", "L2", "L3"),
    *,
    shared: Sequence[Sequence[str]] = (),
    reinforcing: Sequence[tuple[str, str, float]] = (),
    noise: float = NOISE,
    device_sets: Sequence[Mapping[str, Any]] = ({"id": "cpu0", "platform": "cpu", "devices": ["0"]},),
    files: Mapping[str, Content] | None = None,
) -> CampaignRepo:
    """Build a campaign in ``tmp_path/program`` with one search plan entry and one knob file a lane.

    Args:
        tmp_path: An empty folder.
        lanes: Lane ids; lane ``L1`` pursues entry ``E-L1`` and owns ``knobs/L1.json``.
        shared: Groups of lanes behind one bottleneck: their gains overlap.
        reinforcing: Rows (lane, lane, share): their gains reinforce each other.
        noise: Relative standard deviation of one reading.
        device_sets: What the round measures on.
        files: Further files of the program.
    """
    root = tmp_path / "program"
    root.mkdir(parents=True)
    model = {
        "base_ms": BASE_MS,
        "stages": dict.fromkeys(lanes, STAGE_MS),
        "shared": [list(group) for group in shared],
        "reinforcing": [list(row) for row in reinforcing],
        "noise": noise,
    }
    knobs: dict[str, Content] = {f"knobs/{lane}.json": knob(0.0) for lane in lanes}
    write_files(root, {**FILES, "bench/model.json": json.dumps(model), **knobs, **(files or {})})
    repository = Repository(root)
    repository.git("init", "--quiet", "--initial-branch=main")
    incumbent = commit_all(repository, ["."], "the program")
    python = str(SYSTEM_PYTHON) if SYSTEM_PYTHON.exists() else "auto"
    campaign_file, round_file = root / "campaign.yaml", tmp_path / "round.yaml"
    campaign_file.write_text(CAMPAIGN.replace("INCUMBENT", incumbent).replace("PYTHON", python, 1))
    deadline = format_utc(datetime.now(UTC) + timedelta(days=1))
    round_file.write_text(ROUND.replace("DEADLINE", f'"{deadline}"'))
    repo = CampaignRepo(root, campaign_file, round_file)
    repo.edit_campaign(lambda plan: plan["search_plan"].extend(map(_entry, lanes)))
    repo.edit_round(lambda draft: draft["device_sets"].extend(map(dict, device_sets)))
    repo.edit_round(lambda draft: draft["lanes"].extend(map(_lane, lanes)))
    return repo


def knob(value: float = 0.0, mode: str | None = None) -> str:
    """Return a knob file: the share of its stage's time that is saved, and how it breaks, if it does."""
    return json.dumps({"value": value, "mode": mode})


def scripted_lane(clone: Path, changes: Mapping[str, Content], *, expect_exit: int = 0) -> dict[str, Any]:
    """Change files in a lane clone, submit with the clone's own wrapper, and return its answer."""
    write_files(clone, changes)
    return wrapper(clone, "submit", expect_exit=expect_exit)


def wrapper(clone: Path, *words: str, expect_exit: int = 0, env: Mapping[str, str] | None = None) -> Any:
    """Run the wrapper of a lane clone and return what it answers."""
    done = subprocess.run(
        [sys.executable, clone / ".roundkit" / "round", *words],
        capture_output=True, env=env, cwd=clone, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == expect_exit, done.stdout.decode() + done.stderr.decode()
    return json.loads(done.stdout)


def write_files(root: Path, files: Mapping[str, Content]) -> None:
    """Write files below a folder; None removes one."""
    for name, content in files.items():
        path = root / name
        if content is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def commit_all(repository: Repository, paths: Sequence[str], message: str) -> str:
    """Commit what changed below some paths and return the commit."""
    if paths:
        repository.git("add", "--all", "--", *paths)
    identity = ("-c", "user.name=owner", "-c", "user.email=owner@localhost")
    repository.git(*identity, "commit", "--quiet", "--allow-empty", "-m", message)
    return repository.git("rev-parse", "HEAD").text


def _edit(path: Path, edit: Callable[[Any], object]) -> None:
    content = load_yaml(path.read_bytes(), place=path.name)
    edit(content)
    path.write_bytes(dump_yaml(content))


def _entry(lane: str) -> dict[str, Any]:
    return {
        "id": f"E-{lane}",
        "target_stage": lane,
        "exposed_share": 0.3,
        "conditional_headroom": 0.2,
        "plane": "algorithm",
        "hypothesis": f"The stage of {lane} can be faster.",
        "status": "planned",
    }


def _lane(lane: str) -> dict[str, Any]:
    return {
        "id": lane,
        "entry": f"E-{lane}",
        "globs": [f"knobs/{lane}.json"],
        "harness": "none",
        "attempts": 1,
        "submission_cap": 4,
    }
