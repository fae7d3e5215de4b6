"""R10: each refusal of prepare, by itself, with its place; and all of them in one answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.sample_evidence import sample_round
from support.synthetic import CampaignRepo, campaign_repo, knob
from support.tools import needs_valgrind

from roundkit.core.clock import format_utc
from roundkit.core.errors import Refusal, Refused
from roundkit.report import copy_notebook
from roundkit.rounds.prepare_look import look_at
from roundkit.rules.looks import plan_looks
from roundkit.rules.run_spec import run_spec_of


def refusals(repo: CampaignRepo, out: Path, **options: Any) -> list[Refusal]:
    """Freeze, expect a refusal, and see that nothing was written."""
    before = sorted(out.parent.iterdir())
    with pytest.raises(Refused) as caught:
        repo.freeze(out, **options)
    assert sorted(out.parent.iterdir()) == before
    assert caught.value.exit_code == 3
    assert all(refusal.place and refusal.remedy for refusal in caught.value.refusals)
    return list(caught.value.refusals)


@pytest.fixture
def only(three_lanes: CampaignRepo, open_folder: Path) -> Callable[..., Refusal]:
    """Freeze the three lanes and return the one refusal, which has the code asked for."""

    def check(code: str, out: Path = open_folder / "round", **options: Any) -> Refusal:
        found = refusals(three_lanes, out, **options)
        assert [refusal.code for refusal in found] == [code], found
        return found[0]

    return check


Only = Callable[..., Refusal]


def lane_line(repo: CampaignRepo, text: str) -> int:
    lines = repo.round_file.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_r10_scope_overlap_names_lanes_and_paths(three_lanes: CampaignRepo, only: Only) -> None:
    three_lanes.edit_round(lambda draft: draft["lanes"][1].update(globs=["knobs/{L1,L2}.json"]))
    refusal = only("scope-overlap")
    assert "'L1' and 'L2'" in refusal.message
    assert "'knobs/L1.json'" in refusal.message
    assert refusal.place == f"round.yaml: lanes[1].globs (line {lane_line(three_lanes, '{L1,L2}') - 1})"


def test_r10_scope_overlap_of_a_file_that_two_lanes_would_create(
    three_lanes: CampaignRepo, only: Only
) -> None:
    def edit(draft: Any) -> None:
        draft["lanes"][0].update(globs=["knobs/L1.json", "knobkit/new.py"], creates=True)
        draft["lanes"][1].update(globs=["knobs/L2.json", "knobkit/*w.py"], creates=True)

    three_lanes.edit_round(edit)
    assert "'knobkit/new.py'" in only("scope-overlap").message


@pytest.mark.parametrize(
    ("glob", "reached"),
    [
        ("bench/*.py", "'bench/bench.py'"),
        ("build.py", "'build.py'"),
        ("sm*.py", "'smoke.py'"),
        ("BENCH/bench.py", "'BENCH/bench.py'"),
        ("knobkit/conftest.py", "'knobkit/conftest.py'"),
        ("knobkit/.gitattributes", "'knobkit/.gitattributes'"),
        ("campaign.yaml", "'campaign.yaml'"),
    ],
)
def test_r10_protected_path(three_lanes: CampaignRepo, only: Only, glob: str, reached: str) -> None:
    three_lanes.edit_round(
        lambda draft: draft["lanes"][2].update(globs=["knobs/L3.json", glob], creates=True)
    )
    assert reached in only("protected-path").message


def test_r10_protected_path_that_the_round_adds(three_lanes: CampaignRepo, only: Only) -> None:
    three_lanes.edit_round(lambda draft: draft.update(protected_paths=["knobs/L2.json"]))
    assert "'knobs/L2.json'" in only("protected-path").message


def test_r10_protected_path_of_a_hold_out(three_lanes: CampaignRepo, only: Only) -> None:
    three_lanes.start_from(three_lanes.commit({"held/out.json": "{}"}))
    three_lanes.edit_campaign(lambda plan: plan.update(hidden_paths=["held/**"]))
    three_lanes.edit_round(lambda draft: draft["lanes"][2].update(globs=["held/*"]))
    assert "'held/out.json'" in only("protected-path").message


@pytest.mark.parametrize("planes", [["algorithm", "kernel"], [], ""])
def test_r10_plane_count(three_lanes: CampaignRepo, only: Only, planes: object) -> None:
    three_lanes.edit_campaign(lambda plan: plan["search_plan"][1].update(plane=planes))
    assert only("plane-count").place.startswith("campaign.yaml: search_plan[1].plane")


def test_r10_entry_twice(three_lanes: CampaignRepo, only: Only) -> None:
    three_lanes.edit_round(lambda draft: draft["lanes"][1].update(entry="E-L1"))
    assert only("entry-twice").place.startswith("round.yaml: lanes[1].entry")


@pytest.mark.parametrize("status", ["kept", "rejected"])
def test_r10_entry_not_planned(three_lanes: CampaignRepo, only: Only, status: str) -> None:
    three_lanes.edit_campaign(lambda plan: plan["search_plan"][0].update(status=status))
    assert status in only("entry-not-planned").message


def test_r10_entry_unknown(three_lanes: CampaignRepo, only: Only) -> None:
    three_lanes.edit_round(lambda draft: draft["lanes"][0].update(entry="E-L9"))
    assert "E-L1, E-L2, E-L3" in only("entry-unknown").remedy


def test_r10_search_entry_twice(three_lanes: CampaignRepo, only: Only) -> None:
    three_lanes.edit_campaign(lambda plan: plan["search_plan"].append(dict(plan["search_plan"][0])))
    refusal = only("search-entry-twice")
    assert refusal.place.startswith("campaign.yaml: search_plan[3].id")
    assert "'E-L1'" in refusal.message


def test_r10_negative_record(three_lanes: CampaignRepo, only: Only, open_folder: Path) -> None:
    failed = {"entry": "E-L2", "round": "r00", "conditions": "before the cache", "reason": "regression"}
    three_lanes.edit_campaign(lambda plan: plan.update(negative_memory=[failed]))
    assert "before the cache" in only("negative-record").message
    three_lanes.edit_round(lambda draft: draft["lanes"][1].update(changed_condition="there is a cache now"))
    assert three_lanes.freeze(open_folder / "round").lane("L2").changed_condition == "there is a cache now"


def test_r10_incumbent_missing(three_lanes: CampaignRepo, only: Only) -> None:
    three_lanes.start_from("0" * 40)
    assert "0" * 40 in only("incumbent-missing").message


def test_r10_incumbent_missing_when_it_is_no_commit(three_lanes: CampaignRepo, only: Only) -> None:
    tree = three_lanes.repository.tree_id("HEAD")
    three_lanes.start_from(tree)
    assert only("incumbent-missing").message == f"the repository has no commit {tree}"


def test_r10_incumbent_mismatch(three_lanes: CampaignRepo, only: Only) -> None:
    other = three_lanes.commit({"README.md": "other"})
    three_lanes.edit_campaign(lambda plan: plan["search_state"].update(next_candidate_parent=other))
    assert other in only("incumbent-mismatch").message


def test_r10_incumbent_mismatch_with_the_round_that_is_said_to_have_made_it(
    three_lanes: CampaignRepo, only: Only
) -> None:
    named = "evidence/demo/rounds/r01/round-ledger.json"
    path = three_lanes.campaign_file.parent / named
    path.parent.mkdir(parents=True)
    path.write_bytes(sample_round().ledger.to_bytes())
    three_lanes.edit_campaign(lambda plan: plan["search_state"].update(incumbent_evidence=named))
    refusal = only("incumbent-mismatch")
    assert refusal.message == f"round r01 ended with other files than {three_lanes.incumbent}"
    assert "set incumbent_evidence to null" in refusal.remedy


@pytest.mark.parametrize(
    ("sigma_min", "exponent", "pairs"), [(9.0, 2.0, 12), (2.0, 40.0, 60), (2.0, 2.0, 60), (8.0, 2.0, 12)]
)
def test_r10_gates_under_which_no_look_has_a_boundary(
    three_lanes: CampaignRepo, open_folder: Path, only: Only, sigma_min: float, exponent: float, pairs: int
) -> None:
    early = {
        "first_look": 6, "every": 2, "spending_exponent": exponent,
        "futility_power": None, "futility_optimism": 1.5,
    }  # fmt: skip
    three_lanes.edit_campaign(
        lambda plan: plan["test_plan"].update(early_stopping=early, sigma_min=sigma_min, ab_ba_pairs=pairs)
    )
    if sigma_min < 9 and exponent < 40:
        plan = three_lanes.freeze(open_folder / "round")
        assert plan_looks(plan.gates, "ticket") is not None
        return
    assert "test_plan.early_stopping" in only("looks-impossible").place


@pytest.mark.parametrize(
    ("gate", "value"), [("min_gain", 0.005), ("loss_margin", 0.02), ("sigma_min", 1.5), ("ab_ba_pairs", 6)]
)
def test_r10_loosened_gate(three_lanes: CampaignRepo, only: Only, gate: str, value: float) -> None:
    three_lanes.edit_campaign(lambda plan: plan["test_plan"].update(ab_ba_pairs=8))
    three_lanes.edit_round(lambda draft: draft.update(gates={gate: value}))
    assert only("loosened-gate").place.startswith(f"round.yaml: gates.{gate}")


def test_r10_glob_matches_nothing(three_lanes: CampaignRepo, only: Only, open_folder: Path) -> None:
    three_lanes.edit_round(lambda draft: draft["lanes"][0].update(globs=["knobs/L1.json", "knobs/L1/**"]))
    assert only("glob-matches-nothing").place.startswith("round.yaml: lanes[0].globs[1]")
    three_lanes.edit_round(lambda draft: draft["lanes"][0].update(creates=True))
    assert three_lanes.freeze(open_folder / "round").lane("L1").globs == ("knobs/L1.json", "knobs/L1/**")


def test_r10_hidden_glob_matches_nothing(three_lanes: CampaignRepo, only: Only) -> None:
    three_lanes.edit_campaign(lambda plan: plan.update(hidden_paths=["hold-out/**"]))
    refusal = only("glob-matches-nothing")
    assert refusal.message == "'hold-out/**' hides no file of the incumbent"
    assert refusal.place.startswith("campaign.yaml: hidden_paths[0]")


def test_r10_lane_deadline_past(three_lanes: CampaignRepo, only: Only) -> None:
    three_lanes.edit_round(lambda draft: draft["lanes"][0].update(deadline_utc="2020-01-01T00:00:00Z"))
    assert "has passed" in only("lane-deadline").message


def test_r10_lane_deadline_after_the_round(three_lanes: CampaignRepo, only: Only) -> None:
    three_lanes.edit_round(lambda draft: draft["lanes"][0].update(deadline_utc="2999-01-01T00:00:00Z"))
    assert "after the round" in only("lane-deadline").message


def test_r10_round_deadline_is_expired_at_the_very_moment(three_lanes: CampaignRepo, only: Only) -> None:
    moment = datetime.now(UTC) + timedelta(hours=1)
    three_lanes.edit_round(lambda draft: draft.update(deadline_utc=format_utc(moment)))
    refusal = only("round-deadline", now=moment)
    assert refusal.message == f"the round's deadline {format_utc(moment)} has passed"
    assert refusal.place.startswith("round.yaml: deadline_utc")


def test_r10_too_many_lanes(three_lanes: CampaignRepo, only: Only) -> None:
    three_lanes.edit_campaign(lambda plan: plan["budget"].update(lanes_per_round=2))
    assert only("too-many-lanes").message == "3 lanes, and the campaign allows 2 a round"


def test_r10_lane_twice_also_by_letter_case(three_lanes: CampaignRepo, only: Only) -> None:
    three_lanes.edit_round(lambda draft: draft["lanes"][2].update(id="l1"))
    refusal = only("lane-twice")
    assert refusal.message == "lane 'l1' has the same id as lane 'L1'"
    assert refusal.place.startswith("round.yaml: lanes[2].id")


def test_r10_attempt_over_budget_and_uncapped(three_lanes: CampaignRepo, open_folder: Path) -> None:
    def edit(draft: Any) -> None:
        draft["lanes"][0].update(budget={"tokens": 10}, attempt_worst_case={"tokens": 11})
        draft["lanes"][1].update(budget={"turns": 10})

    three_lanes.edit_round(edit)
    codes = [refusal.code for refusal in refusals(three_lanes, open_folder / "round")]
    assert codes == ["attempt-over-budget", "attempt-uncapped"]


def test_r10_replay_sources(three_lanes: CampaignRepo, only: Only) -> None:
    three_lanes.edit_round(lambda draft: draft["lanes"][0].update(harness="replay"))
    refusal = only("replay-sources")
    assert refusal.message == "lane 'L1' replays nothing"
    assert refusal.place.startswith("round.yaml: lanes[0].replay")


def test_r10_unknown_key_with_its_line(three_lanes: CampaignRepo, only: Only) -> None:
    three_lanes.edit_round(lambda draft: draft["lanes"][1].update(gIobs=["x"]))
    refusal = only("unknown-key")
    assert refusal.place == f"round.yaml: lanes[1].gIobs (line {lane_line(three_lanes, 'gIobs')})"


def test_r10_unknown_key_does_not_hide_other_problems(three_lanes: CampaignRepo, open_folder: Path) -> None:
    three_lanes.edit_campaign(lambda plan: plan["search_plan"][0].update(status="kept", plans=1))
    codes = {refusal.code for refusal in refusals(three_lanes, open_folder / "round")}
    assert codes == {"unknown-key", "entry-not-planned"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("submission_cap", "four"),
        ("submission_cap", 0),
        ("attempts", True),
        ("harness", "telepathy"),
        ("globs", []),
    ],
)
def test_r10_wrong_value(three_lanes: CampaignRepo, only: Only, key: str, value: object) -> None:
    three_lanes.edit_round(lambda draft: draft["lanes"][1].update({key: value}))
    assert only("wrong-value").place.startswith(f"round.yaml: lanes[1].{key}")


def test_r10_wrong_value_that_canonical_json_cannot_hold(
    three_lanes: CampaignRepo, open_folder: Path
) -> None:
    three_lanes.edit_campaign(lambda plan: plan["limits"].update(disk_bytes=2**60))
    with pytest.raises(Refused, match="wrong-value"):
        three_lanes.freeze(open_folder / "round")


def test_r10_missing_key(three_lanes: CampaignRepo, only: Only) -> None:
    three_lanes.edit_round(lambda draft: draft.pop("aa_interval"))
    assert "'aa_interval'" in only("missing-key").message


def test_r10_missing_file(three_lanes: CampaignRepo, open_folder: Path) -> None:
    three_lanes.round_file.unlink()
    with pytest.raises(Refused, match="missing-file"):
        three_lanes.freeze(open_folder / "round")


def test_r10_malformed_yaml_names_the_line(three_lanes: CampaignRepo, open_folder: Path) -> None:
    three_lanes.round_file.write_text("lanes: [\n")
    with pytest.raises(Refused, match="malformed-yaml"):
        three_lanes.freeze(open_folder / "round")


def test_r10_repository_dirty(three_lanes: CampaignRepo, only: Only) -> None:
    (three_lanes.root / "README.md").write_text("edited")
    (three_lanes.root / "left over.txt").write_text("")
    refusal = only("repository-dirty")
    assert "'README.md'" in refusal.message
    assert "'left over.txt'" in refusal.message


def test_r10_not_dirty_by_campaign_evidence_round_file_or_ignored(
    three_lanes: CampaignRepo, open_folder: Path
) -> None:
    inside = three_lanes.root / "next-round.yaml"
    three_lanes.round_file.rename(inside)
    (three_lanes.root / "evidence" / "knobs").mkdir(parents=True)
    (three_lanes.root / "evidence" / "knobs" / "index.json").write_text("{}")
    (three_lanes.root / "trace.log").write_text("ignored")
    repo = CampaignRepo(three_lanes.root, three_lanes.campaign_file, inside)
    assert repo.freeze(open_folder / "round").round_id == "r01"


def test_r10_not_dirty_by_notebooks_that_init_copies(three_lanes: CampaignRepo, open_folder: Path) -> None:
    beside = three_lanes.campaign_file.parent / "notebooks"
    copy_notebook("control", beside)
    assert three_lanes.freeze(open_folder / "round").round_id == "r01"
    (beside / "mine.ipynb").write_text("{}")
    with pytest.raises(Refused, match=r"untracked: '[^']*notebooks/mine.ipynb'"):
        three_lanes.freeze(open_folder / "again")


def test_r10_not_a_repository(three_lanes: CampaignRepo, only: Only, open_folder: Path) -> None:
    (open_folder / "empty").mkdir()
    said = {"nowhere": "there is no folder {}", "empty": "{} is not in a git repository"}
    for name, words in said.items():
        three_lanes.edit_campaign(lambda plan, name=name: plan["repository"].update(path=f"../{name}"))
        assert only("not-a-repository").message == words.format(open_folder / name)


def test_r10_not_a_repository_below_its_top(three_lanes: CampaignRepo, only: Only) -> None:
    three_lanes.edit_campaign(lambda plan: plan["repository"].update(path="knobs"))
    assert str(three_lanes.root) in only("not-a-repository").remedy


def test_r10_empty_and_bare_repository(three_lanes: CampaignRepo, only: Only, open_folder: Path) -> None:
    subprocess.run(["git", "init", "--quiet", open_folder / "empty"], check=True)
    subprocess.run(["git", "init", "--quiet", "--bare", open_folder / "bare"], check=True)
    for name, lacks in (("empty", "commit"), ("bare", "working tree")):
        three_lanes.edit_campaign(lambda plan, name=name: plan["repository"].update(path=f"../{name}"))
        assert only(f"{name}-repository").message == f"{open_folder / name} has no {lacks}"


def test_r10_branch_missing(three_lanes: CampaignRepo, only: Only) -> None:
    three_lanes.edit_campaign(lambda plan: plan["repository"].update(branch="trunk"))
    refusal = only("branch-missing")
    assert "'trunk'" in refusal.message
    assert refusal.place.startswith("campaign.yaml: repository.branch")


def test_r10_submodule(three_lanes: CampaignRepo, only: Only) -> None:
    git = three_lanes.repository.git
    git("update-index", "--add", "--cacheinfo", f"160000,{three_lanes.incumbent},vendor")
    (three_lanes.root / "vendor").mkdir()
    git("-c", "user.name=o", "-c", "user.email=o@localhost", "commit", "--quiet", "-m", "submodule")
    three_lanes.start_from(git("rev-parse", "HEAD").text)
    assert "'vendor'" in only("submodule").message


def test_r10_out_exists(three_lanes: CampaignRepo, only: Only, open_folder: Path) -> None:
    out = open_folder / "round"
    out.mkdir()
    (out / "note.txt").write_text("mine")
    only("out-exists")
    assert (out / "note.txt").read_text() == "mine"


def test_r10_out_exists_as_a_dangling_link(three_lanes: CampaignRepo, only: Only, open_folder: Path) -> None:
    (open_folder / "round").symlink_to(open_folder / "nowhere")
    assert only("out-exists").place == "--out"
    assert not (open_folder / "nowhere").exists()


def test_r10_out_inside_repository(three_lanes: CampaignRepo, only: Only) -> None:
    refusal = only("out-inside-repository", three_lanes.root / "build")
    assert refusal.message.endswith(f"build lies in the campaign repository {three_lanes.root}")


def test_r10_out_inside_repository_through_a_link(
    three_lanes: CampaignRepo, only: Only, open_folder: Path
) -> None:
    (open_folder / "link").symlink_to(three_lanes.root)
    refusal = only("out-inside-repository", open_folder / "link" / "round")
    assert refusal.message.startswith(f"{three_lanes.root / 'round'} lies in")


def test_r10_out_beside_the_repository_may_be_named_from_within(three_lanes: CampaignRepo) -> None:
    out = three_lanes.root / ".." / "round"
    assert not look_at(three_lanes.campaign_file, three_lanes.round_file, out).refusals


def test_r10_out_visible(only: Only) -> None:
    refusal = only("out-visible", Path("/usr/local/round"))
    assert refusal.message == "/usr/local/round lies in /usr, which every candidate can read"


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's commands run under that user's id")
def test_r10_validator_hash(three_lanes: CampaignRepo, only: Only) -> None:
    pinned = {"bench/validate.py": "0" * 64}
    three_lanes.edit_campaign(lambda plan: plan["test_plan"].update(validator_hashes=pinned))
    assert "bench/validate.py" in only("validator-hash").message


def test_r10_instrument_missing(three_lanes: CampaignRepo, only: Only) -> None:
    three_lanes.edit_campaign(
        lambda plan: plan["benchmark"].update(argv=["{python}", "-I", "bench/bnech.py"])
    )
    assert "'bench/bnech.py'" in only("instrument-missing").message


def decided_by(repo: CampaignRepo, instrument: str, unit: str, **limits: int) -> None:
    """Let an instrument decide over a metric in that unit."""

    def edit(plan: Any) -> None:
        plan["metric"].update(name="figure", unit=unit)
        plan["benchmark"].update(instrument=instrument)
        plan["limits"].update(limits)

    repo.edit_campaign(edit)


@pytest.mark.parametrize("instrument", ["instructions", "peak-memory"])
def test_m13_r10_an_instrument_gives_its_own_unit(
    three_lanes: CampaignRepo, only: Only, instrument: str
) -> None:
    decided_by(three_lanes, instrument, "ms")
    assert f"the instrument `{instrument}` gives" in only("wrong-value").message


def test_m13_r10_an_instrument_that_the_plans_own_limits_stop_is_missing(
    three_lanes: CampaignRepo, only: Only
) -> None:
    decided_by(three_lanes, "instructions", "instructions", memory_bytes=1 << 22)
    refusal = only("instrument-missing")
    assert "does not give `instructions`" in refusal.message
    assert refusal.place.startswith("campaign.yaml: benchmark.instrument")
    assert "install the package valgrind" in refusal.remedy
    assert "kernel.perf_event_paranoid" in refusal.remedy


def on_a_bare_machine(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run roundkit where neither perf nor valgrind nor a control group is to be seen."""
    hide = (
        "for tool in /usr/bin/perf /usr/bin/valgrind; do"
        " [ ! -e $tool ] || mount --bind /dev/null $tool || exit 99; done\n"
        "mount -t tmpfs none /sys/fs/cgroup || exit 99\n"
        'exec "$@"'
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", hide, "sh", sys.executable, "-m", "roundkit", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    if os.geteuid() != 0 or (done.returncode in (1, 99) and "mount" in done.stderr):
        if "ROUNDKIT_CI" in os.environ:
            pytest.fail("this machine cannot hide a tool from one process: " + done.stderr)
        pytest.skip("hiding a tool from one process needs root")
    return done


@pytest.mark.parametrize(
    ("instrument", "unit", "remedy"),
    [
        ("instructions", "instructions", "install the package valgrind"),
        ("peak-memory", "bytes", "delegated cgroup"),
        ("cpu", "ms", "delegated cgroup"),
    ],
)
def test_m13_r10_an_instrument_that_the_machine_lacks_is_refused_with_its_remedy(
    three_lanes: CampaignRepo, open_folder: Path, instrument: str, unit: str, remedy: str
) -> None:
    decided_by(three_lanes, instrument, unit)
    out = open_folder / "round"
    files = ("--campaign", three_lanes.campaign_file, "--round", three_lanes.round_file, "--out", out)
    done = on_a_bare_machine("prepare", *files)
    assert done.returncode == 3, done.stderr
    told = done.stdout + done.stderr
    assert "instrument-missing" in told
    assert remedy in told
    assert not out.exists()


def test_m13_doctor_lists_every_instrument(open_folder: Path) -> None:
    told = json.loads(on_a_bare_machine("doctor", "--json").stdout)
    parts = {part["title"]: part["findings"] for part in told["parts"]}
    assert {each["name"]: each["state"] for each in parts["What can decide (--instrument)"]} == {
        "reported": "present",
        "wall": "present",
        "cpu": "missing",
        "instructions": "missing",
        "peak-memory": "missing",
    }


@needs_valgrind
def test_m13_the_plan_names_what_counts(three_lanes: CampaignRepo, open_folder: Path) -> None:
    decided_by(three_lanes, "instructions", "instructions")
    plan = three_lanes.freeze(open_folder / "round")
    assert plan.counting_tool in ("perf", "valgrind")
    assert run_spec_of(plan).counting_tool == plan.counting_tool


@pytest.mark.parametrize(
    ("python", "why"),
    [
        ("python3", "is not an executable file"),
        ("/nowhere/python3", "is not an executable file"),
        ("/usr", "is not an executable file"),
        ("/usr/bin/true", "does not answer as a Python interpreter"),
        ("/usr/bin/false", "does not start"),
    ],
)
def test_r10_interpreter_missing(three_lanes: CampaignRepo, only: Only, python: str, why: str) -> None:
    three_lanes.edit_campaign(lambda plan: plan["runtime"].update(python=python))
    refusal = only("interpreter-missing")
    assert refusal.message.startswith(f"{python!r} {why}")
    assert refusal.place.startswith("campaign.yaml: runtime.python")


def test_r10_readable_missing(three_lanes: CampaignRepo, only: Only) -> None:
    three_lanes.edit_campaign(lambda plan: plan["runtime"].update(readable=["/nowhere"]))
    refusal = only("readable-missing")
    assert refusal.message == "'/nowhere' is not an existing absolute path"
    assert refusal.place.startswith("campaign.yaml: runtime.readable[0]")


def test_r10_readable_exposes_round_and_repository(three_lanes: CampaignRepo, open_folder: Path) -> None:
    three_lanes.edit_campaign(lambda plan: plan["runtime"].update(readable=[str(open_folder)]))
    found = refusals(three_lanes, open_folder / "round")
    assert [refusal.code for refusal in found] == ["readable-exposes"] * 2


def test_r10_device_sets(three_lanes: CampaignRepo, open_folder: Path) -> None:
    sets = [
        {"id": "a", "platform": "cpu", "devices": ["0", "9999"]},
        {"id": "a", "platform": "fixture", "devices": ["0"]},
        {"id": "b", "platform": "cpu", "devices": ["0", "-1"]},
    ]
    three_lanes.edit_round(lambda draft: draft.update(device_sets=sets))
    three_lanes.edit_round(lambda draft: draft["lanes"][0].update(exploration_devices=["0"]))
    codes = sorted(refusal.code for refusal in refusals(three_lanes, open_folder / "round"))
    assert codes == [
        "device-missing",
        "device-missing",
        "device-set-twice",
        "device-twice",
        "exploration-device",
    ]


def test_r10_round_exists(three_lanes: CampaignRepo, open_folder: Path) -> None:
    three_lanes.repository.git("branch", "roundkit/r01")
    (three_lanes.root / "evidence" / "knobs" / "rounds" / "r01").mkdir(parents=True)
    codes = [refusal.code for refusal in refusals(three_lanes, open_folder / "round")]
    assert codes == ["round-exists"] * 2


def test_r10_all_problems_are_told_together(open_folder: Path) -> None:
    repo = campaign_repo(open_folder, lanes=("L1", "L2", "L3", "L4"))

    def edit(draft: Any) -> None:
        draft.update(gates={"min_gain": 0.0}, colour="blue")
        draft["lanes"][0].update(globs=["knobs/*.json"], deadline_utc="2020-01-01T00:00:00Z")
        draft["lanes"][1].update(entry="E-L1")
        draft["lanes"][2].update(globs=["bench/**", "nothing/**"])
        draft["lanes"][3].update(id="L1")

    repo.edit_round(edit)
    repo.edit_campaign(lambda plan: plan["budget"].update(lanes_per_round=3))
    repo.edit_campaign(lambda plan: plan["search_plan"][2].update(plane=["a", "b"]))
    (repo.root / "README.md").write_text(knob())
    codes = {refusal.code for refusal in refusals(repo, open_folder / "round")}
    assert codes == {
        "unknown-key", "repository-dirty", "loosened-gate", "lane-deadline", "too-many-lanes", "lane-twice",
        "entry-twice", "plane-count", "protected-path", "glob-matches-nothing", "scope-overlap",
    }  # fmt: skip


def test_r10_names_that_are_too_long_together(three_lanes: CampaignRepo, only: Only) -> None:
    three_lanes.edit_round(lambda draft: draft["lanes"][0].update(id="L" * 31))
    three_lanes.edit_round(lambda draft: draft.update(round_id="r" * 29))
    assert "shorten" in only("name-too-long").remedy


@pytest.mark.parametrize("round_id", ["r01.lock", "r..1", "r1."])
def test_r10_a_round_id_of_which_git_makes_no_branch(
    three_lanes: CampaignRepo, only: Only, round_id: str
) -> None:
    three_lanes.edit_round(lambda draft: draft.update(round_id=round_id))
    assert only("round-id").message == f"git takes no branch 'roundkit/{round_id}'"


def test_r10_a_branch_in_the_way_of_the_rounds_own(three_lanes: CampaignRepo, only: Only) -> None:
    three_lanes.repository.git("branch", "roundkit")
    assert "rename the branch 'roundkit'" in only("branch-in-the-way").remedy


@pytest.mark.parametrize(
    ("code", "agent"),
    [
        ("network-host", {"hosts": ["https://api.example.com/v1"]}),
        ("key-in-plan", {"key_variables": ["KEY"], "environment": {"KEY": "value"}}),
        ("variable-reserved", {"environment": {"HTTPS_PROXY": "http://elsewhere"}}),
        ("variable-reserved", {"pass_variables": ["HOME"]}),
        ("credential-place", {"credentials": [{"source": "/etc/key", "at": "../key"}]}),
        ("env-name", {"environment": {"OLDPWD": "/"}}),
        ("env-value", {"environment": {"A": "x\0y"}}),
        ("wrong-value", {"hosts": [7]}),
    ],
)
def test_an_agent_that_could_never_start_so_is_refused(
    three_lanes: CampaignRepo, only: Only, code: str, agent: dict[str, Any]
) -> None:
    three_lanes.edit_round(lambda draft: draft["lanes"][1].update(harness="codex", agent=agent))
    assert "lanes[1]" in only(code).place
