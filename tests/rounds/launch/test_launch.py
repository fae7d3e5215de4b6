"""Launch: clones of their own, resumed where it was killed, refused for another plan."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.killing import run_to_end
from support.processes import ended_with_test
from support.synthetic import CampaignRepo, knob, scripted_lane, wrapper

from roundkit.core.errors import Refused
from roundkit.core.git import Repository
from roundkit.models.lane import LaneFile, LaunchManifest
from roundkit.rounds.launch import launch
from roundkit.rounds.layout import RoundFolder, read_plan


@pytest.fixture
def folder(three_lanes: CampaignRepo, open_folder: Path) -> RoundFolder:
    three_lanes.freeze(open_folder / "round")
    return RoundFolder(open_folder / "round")


def regular_files(root: Path) -> Iterator[Path]:
    return (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())


def snapshot(root: Path) -> dict[str, tuple[int, int, str]]:
    return {
        str(path.relative_to(root)): (
            path.stat().st_ino,
            path.stat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest(),
        )
        for path in regular_files(root)
    }


def test_clone_is_detached_without_remote_branch_tag_or_hook(folder: RoundFolder) -> None:
    plan = read_plan(folder)
    for lane in launch(folder).lanes:
        clone = Repository(Path(lane.clone))
        assert clone.git("rev-parse", "HEAD").text == plan.incumbent
        assert clone.git("symbolic-ref", "--quiet", "HEAD", check=False).exit_code == 1
        assert clone.git("remote").text == ""
        assert clone.git("for-each-ref").text == ""
        assert not (clone.path / ".git" / "hooks").exists()
        assert not (clone.path / ".git" / "objects" / "info" / "alternates").exists()
        assert clone.dirty_paths() == []
        assert str(folder.root) not in (clone.path / ".git" / "config").read_text()


def test_lane_folder_holds_what_the_agent_needs(folder: RoundFolder) -> None:
    plan = read_plan(folder)
    lane = launch(folder).lanes[1]
    home = Path(lane.clone) / ".roundkit"
    assert sorted(path.name for path in home.iterdir()) == [
        "lane.json",
        "outbox",
        "round",
        "scratch",
        "status",
    ]
    assert (home / "round").stat().st_mode & 0o777 == 0o755
    lane_file = LaneFile.from_bytes((home / "lane.json").read_bytes(), place="lane.json")
    assert (lane_file.lane, lane_file.round_digest) == ("L2", plan.digest())
    assert lane_file.base_commit == plan.incumbent
    assert lane.probe == "knobkit"
    assert lane.wrapper == str(home / "round")


def test_no_file_is_shared_with_another_lane_the_store_or_the_campaign(
    folder: RoundFolder, three_lanes: CampaignRepo
) -> None:
    launch(folder)
    inodes: dict[int, Path] = {}
    for root in (three_lanes.root, folder.root):
        for path in regular_files(root):
            assert path.stat().st_nlink == 1, path
            assert inodes.setdefault(path.stat().st_ino, path) == path


def test_r23_a_lane_that_damages_its_objects_harms_nobody_else(
    folder: RoundFolder, three_lanes: CampaignRepo
) -> None:
    launch(folder)
    for path in regular_files(folder.clone("L1") / ".git" / "objects"):
        path.chmod(0o600)
        path.write_bytes(b"damage")
    for repository in (folder.clone("L2"), folder.clone("L3"), three_lanes.root, folder.repository):
        assert Repository(repository).git("fsck", "--full", check=False).exit_code == 0
    assert scripted_lane(folder.clone("L2"), {"knobs/L2.json": knob(0.1)})["status"] == "queued"


def test_again_changes_nothing_that_stands(folder: RoundFolder) -> None:
    first = launch(folder)
    scripted_lane(folder.clone("L1"), {"knobs/L1.json": knob(0.2)})

    def standing() -> list[object]:
        manifest = folder.launch_file.stat()
        return [
            snapshot(folder.lanes), snapshot(folder.store / "launched"), manifest.st_ino, manifest.st_mtime_ns
        ]  # fmt: skip

    before = standing()
    assert launch(folder) == first
    assert standing() == before


def test_again_makes_a_lane_that_was_lost(folder: RoundFolder) -> None:
    first = launch(folder)
    shutil.rmtree(folder.clone("L2"))
    kept = snapshot(folder.clone("L1"))
    assert launch(folder) == first
    assert snapshot(folder.clone("L1")) == kept
    assert wrapper(folder.clone("L2"), "submit")["status"] == "nothing-changed"


def test_resumes_after_a_kill_at_any_moment(folder: RoundFolder) -> None:
    script = (
        "import sys; from pathlib import Path; from roundkit.rounds.launch import launch;"
        "from roundkit.rounds.layout import RoundFolder; print('go', flush=True);"
        "launch(RoundFolder(Path(sys.argv[1])))"
    )
    for delay_s in (0.02, 0.08, 0.16, 0.3):
        process = ended_with_test(
            subprocess.Popen(
                [sys.executable, "-c", script, folder.root], stdout=subprocess.PIPE, start_new_session=True
            )
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(delay_s)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    manifest = launch(folder)
    assert [lane.id for lane in manifest.lanes] == ["L1", "L2", "L3"]
    for lane in manifest.lanes:
        assert Repository(Path(lane.clone)).dirty_paths() == []
        assert wrapper(Path(lane.clone), "submit")["status"] == "nothing-changed"
    assert LaunchManifest.from_bytes(folder.launch_file.read_bytes(), place="") == manifest


def test_digest_that_was_posted_must_be_the_plans(folder: RoundFolder) -> None:
    with pytest.raises(Refused, match="digest-mismatch"):
        launch(folder, posted_digest="0" * 64)
    assert not folder.launch_file.exists()
    assert launch(folder, posted_digest=read_plan(folder).digest()).round_id == "r01"


def test_refuses_after_the_round_deadline(folder: RoundFolder) -> None:
    with pytest.raises(Refused, match="round-deadline"):
        launch(folder, now=read_plan(folder).deadline_utc)


def test_refuses_the_directory_of_another_plan(
    folder: RoundFolder, three_lanes: CampaignRepo, open_folder: Path
) -> None:
    launch(folder)
    three_lanes.freeze(open_folder / "other", secret=bytes(32))
    for name in ("round-plan.json", "store/plan-digest"):
        shutil.copy(open_folder / "other" / name, folder.root / name)
    with pytest.raises(Refused, match="other-plan"):
        launch(folder)


def test_import_probe_that_resolves_elsewhere_refuses(three_lanes: CampaignRepo, open_folder: Path) -> None:
    elsewhere = open_folder / "elsewhere"
    (elsewhere / "other_package").mkdir(parents=True)
    (elsewhere / "other_package" / "__init__.py").write_text("")
    for path in (elsewhere, elsewhere / "other_package"):
        path.chmod(0o755)

    def edit(plan: dict[str, object]) -> None:
        plan.update(
            target_package="other_package",
            runtime={"python": "/usr/bin/python3", "readable": [str(elsewhere)]},
            environment={"PYTHONPATH": str(elsewhere)},
        )

    three_lanes.edit_campaign(edit)
    three_lanes.freeze(open_folder / "round")
    with pytest.raises(Refused, match="import-probe") as caught:
        launch(RoundFolder(open_folder / "round"))
    assert str(elsewhere) in str(caught.value)
    assert not RoundFolder(open_folder / "round").launch_file.exists()


@pytest.mark.parametrize("target", ["knobkit", "knobkit/__init__.py"])
def test_target_is_a_package_or_a_path(three_lanes: CampaignRepo, open_folder: Path, target: str) -> None:
    three_lanes.edit_campaign(lambda plan: plan.update(target_package=target))
    three_lanes.freeze(open_folder / "real")
    (open_folder / "round").symlink_to(open_folder / "real")
    manifest = launch(RoundFolder(open_folder / "round"))
    assert [lane.probe for lane in manifest.lanes] == [target] * 3


def test_private_environment_imports_from_the_clone(three_lanes: CampaignRepo, open_folder: Path) -> None:
    three_lanes.edit_round(lambda draft: draft.update(lane_environment="venv"))
    folder, manifest = three_lanes.launched(open_folder / "round")
    assert [lane.environment for lane in manifest.lanes] == [
        str(folder.clone(lane) / ".roundkit" / "venv") for lane in ("L1", "L2", "L3")
    ]
    python = folder.clone("L1") / ".roundkit" / "venv" / "bin" / "python"
    script = "import sys, knobkit; print(sys.prefix, knobkit.__file__)"
    shown = subprocess.run(
        [python, "-c", script], cwd=folder.clone("L1"), capture_output=True, text=True, check=True
    ).stdout.split()
    assert all(Path(path).is_relative_to(folder.clone("L1")) for path in shown)


def test_hold_outs_are_in_no_clone_and_no_history(three_lanes: CampaignRepo, open_folder: Path) -> None:
    three_lanes.start_from(three_lanes.commit({"held/answers.json": "the secret answers"}))
    three_lanes.edit_campaign(lambda plan: plan.update(hidden_paths=["held/**"]))
    folder, manifest = three_lanes.launched(open_folder / "round")
    clone = Repository(folder.clone("L1"))
    assert not (clone.path / "held").exists()
    objects = clone.git("cat-file", "--batch-all-objects", "--batch").stdout
    assert b"the secret answers" not in objects
    assert clone.git("rev-list", "--count", "HEAD").text == "1"
    assert manifest.incumbent == three_lanes.incumbent
    assert scripted_lane(folder.clone("L1"), {"knobs/L1.json": knob(0.1)})["submitted"] == 1
    assert scripted_lane(folder.clone("L1"), {"held/answers.json": "mine"})["outside_scope_count"] == 1


@pytest.mark.slow
def test_a_workspace_holds_the_clones_and_nothing_else_of_the_round(
    folder: RoundFolder, open_folder: Path
) -> None:
    workspace = open_folder / "workspace"
    workspace.mkdir()
    done = run_to_end(open_folder / "leases", "launch", folder.root, "--round-root", workspace)
    clone = workspace / "r01-lanes" / "L1"
    assert f"L1: {clone}" in done
    assert folder.clone("L1") == clone
    assert [path.name for path in workspace.iterdir()] == ["r01-lanes"]
    assert folder.store.is_dir()
    before = snapshot(clone)
    assert launch(folder).lanes[0].clone == str(clone)
    assert snapshot(clone) == before
    scripted_lane(clone, {"knobs/L1.json": knob(0.1)})
    run_to_end(open_folder / "leases", "serve", folder.root, "--until-idle")
    run_to_end(open_folder / "leases", "close", folder.root)
    run_to_end(open_folder / "leases", "prune", folder.root)
    assert list(workspace.iterdir()) == []
    assert not (folder.root / "lanes").is_symlink()


@pytest.mark.parametrize(
    ("place", "code"),
    [
        ("missing", "round-root-missing"),
        ("round/store", "round-root"),
        ("round", "round-root"),
        ("program", "round-root"),
        (".", "round-root"),
        ("taken", "round-root-taken"),
    ],
)
def test_a_workspace_that_shows_the_round_or_is_shown_is_refused(
    folder: RoundFolder, open_folder: Path, place: str, code: str
) -> None:
    (open_folder / "taken/r01-lanes/L1").mkdir(parents=True)
    with pytest.raises(Refused, match=rf"\[{code}\]"):
        launch(folder, round_root=open_folder / place)
    assert not folder.lanes.exists()


def test_clones_stay_where_they_were_made(folder: RoundFolder, open_folder: Path) -> None:
    (open_folder / "workspace").mkdir()
    launch(folder)
    with pytest.raises(Refused, match=r"\[lanes-elsewhere\]"):
        launch(folder, round_root=open_folder / "workspace")
