"""What a frozen round holds, and that it is whole or absent."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.synthetic import SECRET, CampaignRepo

from roundkit.core.errors import Refused
from roundkit.core.git import Repository
from roundkit.rounds import prepare_folder
from roundkit.rounds.layout import RoundFolder, read_plan
from roundkit.rules.forecast import forecast


def test_plan_store_and_secret(three_lanes: CampaignRepo, open_folder: Path) -> None:
    plan = three_lanes.freeze(open_folder / "round")
    folder = RoundFolder(open_folder / "round")
    assert read_plan(folder) == plan
    assert (folder.store / "plan-digest").read_text().strip() == plan.digest()
    assert folder.plan_file.read_bytes() == plan.to_bytes()
    assert folder.secret_file.read_bytes() == SECRET
    assert plan.secret_sha256 == hashlib.sha256(SECRET).hexdigest()
    assert folder.store.stat().st_mode & 0o777 == 0o700
    assert folder.secret_file.stat().st_mode & 0o777 == 0o600
    assert Repository(folder.repository).resolve("refs/heads/incumbent") == plan.incumbent
    assert plan.campaign_sha256 == hashlib.sha256(three_lanes.campaign_file.read_bytes()).hexdigest()


def test_lanes_inherit_from_their_entry_and_the_round(three_lanes: CampaignRepo, open_folder: Path) -> None:
    plan = three_lanes.freeze(open_folder / "round")
    lane = plan.lane("L2")
    assert (lane.plane, lane.target_stage) == ("algorithm", "L2")
    assert lane.deadline_utc == plan.deadline_utc


def test_gates_are_the_campaigns_unless_tightened(three_lanes: CampaignRepo, open_folder: Path) -> None:
    three_lanes.edit_round(lambda draft: draft.update(gates={"min_gain": 0.02, "ab_ba_pairs": 10}))
    gates = three_lanes.freeze(open_folder / "round").gates
    assert (gates.min_gain, gates.ab_ba_pairs, gates.loss_margin, gates.repetitions) == (0.02, 10, 0.01, 2)


def test_protected_files_are_what_commands_name_and_globs_match(
    three_lanes: CampaignRepo, open_folder: Path
) -> None:
    three_lanes.start_from(three_lanes.commit({"sub/conftest.py": "", "bench/held.json": "1"}))
    three_lanes.edit_campaign(lambda plan: plan.update(hidden_paths=["bench/held.json"]))
    plan = three_lanes.freeze(open_folder / "round")
    assert set(plan.protected_files) == {
        "bench/bench.py", "bench/model.json", "bench/validate.py", "build.py", "smoke.py", "sub/conftest.py",
    }  # fmt: skip
    content = (three_lanes.root / "bench/bench.py").read_bytes()
    assert plan.protected_files["bench/bench.py"] == hashlib.sha256(content).hexdigest()


def test_the_same_inputs_give_the_same_digest_in_another_process(
    three_lanes: CampaignRepo, open_folder: Path
) -> None:
    require = {"require": ["pids", "memory"], "pids": 64, "memory_bytes": 1 << 29}
    three_lanes.edit_campaign(lambda plan: plan["limits"].update(require))
    three_lanes.freeze(open_folder / "round")
    script = (
        "import sys; from pathlib import Path; from roundkit.rounds.layout import *;"
        "print(read_plan(RoundFolder(Path(sys.argv[1]))).digest())"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", script, open_folder / "round"],
            env={**os.environ, "PYTHONHASHSEED": str(seed)}, capture_output=True, text=True, check=False,
        ).stdout
        for seed in range(4)
    }  # fmt: skip
    assert len(seen) == 1
    assert seen != {""}


def test_random_secrets_differ(three_lanes: CampaignRepo, open_folder: Path) -> None:
    digests = {three_lanes.freeze(open_folder / name, secret=None).secret_sha256 for name in ("a", "b")}
    assert len(digests) == 2


def test_nothing_is_hard_linked_to_the_campaign_repository(
    three_lanes: CampaignRepo, open_folder: Path
) -> None:
    three_lanes.freeze(open_folder / "round")
    assert all(path.stat().st_nlink == 1 for path in (open_folder / "round").rglob("*") if path.is_file())


def test_a_failing_prepare_leaves_nothing(
    three_lanes: CampaignRepo, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(prepare_folder, "_copy_incumbent", full)
    before = sorted(open_folder.iterdir())
    with pytest.raises(OSError, match="No space"):
        three_lanes.freeze(open_folder / "round")
    assert sorted(open_folder.iterdir()) == before


def test_an_empty_folder_may_become_the_round(three_lanes: CampaignRepo, open_folder: Path) -> None:
    (open_folder / "round").mkdir()
    plan = three_lanes.freeze(open_folder / "round")
    assert (open_folder / "round" / "round-plan.json").read_bytes() == plan.to_bytes()


def test_an_edited_plan_is_refused(three_lanes: CampaignRepo, open_folder: Path) -> None:
    three_lanes.freeze(open_folder / "round")
    plan_file = open_folder / "round" / "round-plan.json"
    plan_file.write_bytes(plan_file.read_bytes().replace(b'"min_gain":0.01', b'"min_gain":0.00'))
    with pytest.raises(Refused, match="plan-changed"):
        read_plan(RoundFolder(open_folder / "round"))


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_shallow_repositories_and_both_object_formats(
    three_lanes: CampaignRepo, open_folder: Path, object_format: str
) -> None:
    if object_format == "sha1":
        three_lanes.commit({"README.md": "newer"})
        source = f"file://{three_lanes.root}"
        subprocess.run(["git", "clone", "--quiet", "--depth=1", source, open_folder / "other"], check=True)
    else:
        other = Repository(open_folder / "other")
        other.path.mkdir()
        other.git("init", "--quiet", "--initial-branch=main", "--object-format=sha256")
        subprocess.run(["cp", "-r", *(three_lanes.root / name for name in (
            "bench", "knobkit", "knobs", "build.py", "smoke.py"
        )), other.path], check=True)  # fmt: skip
        other.git("add", ".")
        other.git("-c", "user.name=o", "-c", "user.email=o@localhost", "commit", "--quiet", "-m", "all")
    three_lanes.edit_campaign(lambda plan: plan["repository"].update(path="../other"))
    three_lanes.start_from(Repository(open_folder / "other").git("rev-parse", "HEAD").text)
    _, manifest = three_lanes.launched(open_folder / "round")
    clone = Repository(Path(manifest.lanes[0].clone))
    assert clone.git("rev-parse", "HEAD").text == manifest.incumbent


def test_forecast_counts_trials_minutes_and_agents(three_lanes: CampaignRepo, open_folder: Path) -> None:
    plan = three_lanes.freeze(open_folder / "round")
    found = forecast(plan)
    assert found.tickets == 12
    assert {row.purpose: row.experiments for row in found.rows} == {
        "tickets": 12, "A/A checks": 4, "composition": 2, "standalone": 0, "rerun": 2,
    }  # fmt: skip
    assert found.trials == 20 * 14
    assert found.device_minutes == pytest.approx(280 * 0.05 / 60)
    assert {cap.total for cap in found.agents} == {None}


def test_forecast_without_a_measured_trial_says_why(three_lanes: CampaignRepo, open_folder: Path) -> None:
    three_lanes.edit_campaign(lambda plan: plan["test_plan"].update(noise=None))
    found = forecast(three_lanes.freeze(open_folder / "round"))
    assert found.device_minutes is None
    assert "write its seconds to test_plan.noise.trial_s" in (found.unknown or "")
