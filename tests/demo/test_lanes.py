"""The demo's lanes: what they may touch, and what they do to the program. No wall clock is asserted."""

import itertools
import json
import subprocess
import sys

import pytest
from wcmatch import glob

HONEST = ("L1", "L2", "L3", "L4", "L5")
COUNT_SCANS = """
import json, sys
sys.path.append(".")
from searchkit import engine, index

class Terms(list):
    scans = 0
    def count(self, term):
        Terms.scans += 1
        return super().count(term)

documents_of = engine.build_index
def counted(sources):
    return [type(kept)(kept.path, kept.text, Terms(kept.terms)) for kept in documents_of(sources)]
engine.build_index = counted
request = json.load(sys.stdin)
engine.search_all(request)
print(Terms.scans)
"""


def changed_paths(demo, lane):
    lines = (demo / lane["patch"]).read_text().splitlines()
    return [line.removeprefix("+++ b/") for line in lines if line.startswith("+++ ")]


def python(checkout, *arguments, **options):
    return subprocess.run(
        [sys.executable, "-s", "-P", *arguments], cwd=checkout, capture_output=True, text=True, **options
    )


def test_globs_are_disjoint_and_match_the_program(demo, lanes):
    program = demo / "program"
    matched = {
        lane_id: {
            path
            for path in glob.glob(lane["globs"], root_dir=program, flags=glob.GLOBSTAR)
            if "__pycache__" not in path
        }
        for lane_id, lane in lanes.items()
    }
    assert all(matched.values())
    for one, other in itertools.combinations(matched.values(), 2):
        assert not one & other


def test_entries_are_one_a_lane(lanes):
    assert len({lane["entry"] for lane in lanes.values()}) == len(lanes) == 8


def test_only_the_cheat_leaves_its_globs(demo, lanes):
    for lane_id, lane in lanes.items():
        outside = [path for path in changed_paths(demo, lane) if not glob.globmatch(path, lane["globs"])]
        assert outside == (["bench/driver.py"] if lane["forced"] else []), lane_id
    assert [lane_id for lane_id, lane in lanes.items() if lane["forced"]] == ["L6"]


def test_overlapping_lanes_name_each_other(lanes):
    for lane_id, lane in lanes.items():
        expects_one_of_two = lane["expected"]["composition"] == "one-of-overlap"
        assert expects_one_of_two == (lane["overlaps"] is not None)
        assert lane["overlaps"] is None or lanes[lane["overlaps"]]["overlaps"] == lane_id


@pytest.mark.parametrize("lane_id", ["L1", "L2", "L3", "L4", "L5", "L6", "L7", "L8"])
def test_build_breaks_for_the_broken_lane_alone(checkout, lane_id):
    folder = checkout(lane_id)
    build = python(folder, "build.py")
    if lane_id == "L7":
        assert build.returncode == 1
        assert "snippet.py" in build.stdout + build.stderr
        return
    assert build.returncode == 0, build.stderr
    assert python(folder, "smoke.py").returncode == 0


@pytest.mark.parametrize("lane_ids", [(), *((one,) for one in HONEST), ("L1", "L2"), ("L1", "L2", "L3")])
def test_honest_lanes_give_right_answers(figures, checkout, tmp_path, lane_ids):
    folder = checkout(*lane_ids)
    trial = figures.run_trial(folder, tmp_path / "trial", seed=20240229, repetitions=2)
    assert trial.driver_exit == 0, trial.driver_stderr
    assert len(trial.latencies_ms) == 2
    assert sorted(path.stem for path in trial.output_dir.iterdir()) == [
        "afterwards",
        "repetition-0",
        "repetition-1",
    ]
    verdict = figures.validate(folder, trial.output_dir)
    assert (verdict.returncode, verdict.stderr) == (0, "")


def test_wrong_answers_fail_the_validator(figures, checkout, tmp_path):
    folder = checkout("L8")
    trial = figures.run_trial(folder, tmp_path / "trial", seed=5, repetitions=1)
    assert trial.driver_exit == 0, trial.driver_stderr
    verdict = figures.validate(folder, trial.output_dir)
    assert verdict.returncode == 1
    assert "wrong answer to" in verdict.stderr


def scans(checkout, request):
    done = python(checkout, "-c", COUNT_SCANS, input=json.dumps(request), check=True)
    return int(done.stdout)


def test_overlapping_lanes_save_the_same_work(checkout):
    """Either lane alone saves nearly all scans over terms; the second has nothing left to save."""
    request = {
        "sources": {f"{number}.py": f"read file number{number} write line" for number in range(22)},
        "queries": ["read file", "write line"],
        "limit": 5,
    }
    program = scans(checkout(), request)
    hoisted, remembered = scans(checkout("L2"), request), scans(checkout("L3"), request)
    both = scans(checkout("L2", "L3"), request)
    assert hoisted < 0.1 * program
    assert remembered < 0.1 * program
    assert both == hoisted == remembered
