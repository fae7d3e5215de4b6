"""Replay: existing commits, branches and patches as lanes, and a whole round from a range of commits."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.synthetic import CampaignRepo, knob

from roundkit.agents.replay import CannotReplay, run_replay
from roundkit.core.errors import Refused
from roundkit.rounds.launch import launch
from roundkit.rounds.layout import RoundFolder, read_plan
from roundkit.rounds.prepare import freeze
from roundkit.rounds.replay import ReplayRound, plan_replay
from roundkit.rounds.replay_files import ReplayOptions
from roundkit.rules.replay_lanes import CommitChange, group_commits

PYTHON = "/usr/bin/python3"


@pytest.fixture
def options(open_folder: Path) -> ReplayOptions:
    """A benchmark that lies outside the repository and reports nothing."""
    script = open_folder / "outside" / "bench.py"
    script.parent.mkdir()
    script.write_text("import knobkit; knobkit.load_knobs()")
    return ReplayOptions(
        benchmark=("{python}", str(script)),
        python=PYTHON,
        pairs=6,
        deadline_utc=datetime.now(UTC) + timedelta(hours=1),
    )


def test_sources_of_every_kind_add_up_and_stay_in_scope(three_lanes: CampaignRepo, open_folder: Path) -> None:
    git = three_lanes.repository.git
    base = three_lanes.incumbent
    three_lanes.edit_round(
        lambda draft: draft["lanes"][0].update(globs=["knobs/L1.json", "src/**"], creates=True)
    )
    first = three_lanes.commit({"knobs/L1.json": knob(0.1), "knobs/L2.json": knob(0.1)})
    git("checkout", "--quiet", "-b", "feature", base)
    three_lanes.commit({"src/a.py": "a\n"})
    three_lanes.commit({"src/b.bin": b"\x00\x01", "README.md": "no"})
    (open_folder / "undo.patch").write_bytes(git("diff", "--binary", "feature", "feature~1").stdout)
    git("checkout", "--quiet", "main")
    three_lanes.start_from(base)
    folder, manifest = three_lanes.launched(open_folder / "round")
    sources = (first, "feature", str(open_folder / "undo.patch"), "feature~2..feature~1")
    outcome = run_replay(manifest.lanes[0], folder.clone("L1"), three_lanes.root, sources)
    assert [step.status for step in outcome.steps] == ["queued", "queued", "queued", "does-not-apply"]
    assert outcome.steps[0].left_out == ("knobs/L2.json",)
    assert outcome.steps[1].applied == ("src/a.py", "src/b.bin")
    assert len(outcome.tickets) == 3
    assert (folder.clone("L1") / "knobs/L1.json").read_text() == knob(0.1)
    assert (folder.clone("L1") / "src/a.py").exists()
    assert not (folder.clone("L1") / "src/b.bin").exists()
    assert (folder.clone("L1") / "README.md").read_text() == (three_lanes.root / "README.md").read_text()


def test_r04_a_replayed_driver_gets_the_same_ticket(three_lanes: CampaignRepo, open_folder: Path) -> None:
    base = three_lanes.incumbent
    commit = three_lanes.commit({"knobs/L1.json": knob(0.1)})
    three_lanes.start_from(base)
    folder, manifest = three_lanes.launched(open_folder / "round")
    lane, clone = manifest.lanes[0], folder.clone("L1")
    first = run_replay(lane, clone, three_lanes.root, (commit,))
    subprocess.run(["git", "-C", clone, "checkout", "--quiet", "."], check=True)
    again = run_replay(lane, clone, three_lanes.root, (commit,))
    assert again.tickets == first.tickets
    assert again.steps[0].duplicate


def test_a_wrapper_that_the_clone_changed_is_not_run(three_lanes: CampaignRepo, open_folder: Path) -> None:
    base = three_lanes.incumbent
    commit = three_lanes.commit({"knobs/L1.json": knob(0.1)})
    three_lanes.start_from(base)
    folder, manifest = three_lanes.launched(open_folder / "round")
    clone = folder.clone("L1")
    was_run = open_folder / "was-run"
    (clone / ".roundkit" / "round").write_text(f"open({str(was_run)!r}, 'w')\n")
    outcome = run_replay(manifest.lanes[0], clone, three_lanes.root, (commit,))
    assert [step.status for step in outcome.steps] == ["queued"]
    assert not was_run.exists()
    assert len(list(folder.outbox("L1").iterdir())) == 1


def test_unknown_source(three_lanes: CampaignRepo, open_folder: Path) -> None:
    folder, manifest = three_lanes.launched(open_folder / "round")
    with pytest.raises(CannotReplay, match="no-such-thing"):
        run_replay(manifest.lanes[0], folder.clone("L1"), three_lanes.root, ("no-such-thing",))


def prepared(replay: ReplayRound, out: Path) -> RoundFolder:
    freeze(replay.campaign_file, replay.round_file, out)
    folder = RoundFolder(out)
    launch(folder)
    return folder


def history(repo: CampaignRepo) -> str:
    """Make commits of every kind on main and return the commit before them."""
    repo.campaign_file.unlink()
    base = repo.commit({"src/one.py": "1\n", "src/two.py": "2\n", "src/[odd] {name}.py": "3\n"})
    repo.commit({"src/one.py": "1a\n"}, "one")
    repo.commit({"src/two.py": "2a\n"}, "two")
    repo.commit({}, "nothing")
    repo.commit({"src/one.py": None, "src/uno.py": "1a\n"}, "rename one")
    repo.commit({"bench/bench.py": "import sys\n"}, "touch the benchmark")
    repo.commit({"src/flip.py": "x"}, "add")
    repo.commit({"src/flip.py": None}, "and remove")
    git = repo.repository.git
    git("checkout", "--quiet", "-b", "side", "HEAD~3")
    repo.commit({"src/[odd] {name}.py": "3a\n"}, "on the side")
    repo.commit({"src/new.py": "n\n"}, "more on the side")
    git("checkout", "--quiet", "main")
    git(
        "-c",
        "user.name=o",
        "-c",
        "user.email=o@localhost",
        "merge",
        "--quiet",
        "--no-ff",
        "-m",
        "merge",
        "side",
    )
    return base


def test_range_becomes_lanes_with_disjoint_files(
    three_lanes: CampaignRepo, open_folder: Path, options: ReplayOptions
) -> None:
    base = history(three_lanes)
    benchmark = ("{python}", "bench/bench.py")
    replay = plan_replay(
        three_lanes.root, base, "main", open_folder / "work", replace(options, benchmark=benchmark)
    )
    hypotheses = [entry["hypothesis"] for entry in replay.campaign["search_plan"]]
    assert [text.count(";") + 1 for text in hypotheses] == [2, 1, 1]
    assert "rename one" in hypotheses[0]
    assert sorted(row.reason for row in replay.dropped) == [
        "changes no file", "changes the protected 'bench/bench.py'", "is undone within the range",
    ]  # fmt: skip
    folder = prepared(replay, open_folder / "round")
    tickets = []
    for lane, sources in replay.sources.items():
        frozen = read_plan(folder).lane(lane)
        tickets += run_replay(frozen, folder.clone(lane), three_lanes.root).tickets
        assert frozen.replay == sources
    assert len(tickets) == 3
    assert (folder.clone("L3") / "src/[odd] {name}.py").read_text() == "3a\n"
    assert (folder.clone("L3") / "src/new.py").read_text() == "n\n"
    assert not (folder.clone("L1") / "src/one.py").exists()


def test_benchmark_outside_the_repository_measures_wall_time(
    three_lanes: CampaignRepo, open_folder: Path, options: ReplayOptions
) -> None:
    base = history(three_lanes)
    options = replace(options, each_commit=True, target_package="knobkit")
    replay = plan_replay(three_lanes.root, base, "main", open_folder / "work", options)
    assert replay.campaign["benchmark"]["instrument"] == "wall"
    assert replay.campaign["runtime"]["readable"] == [str(open_folder / "outside")]
    assert [len(sources) for sources in replay.sources.values()] == [2, 1, 1, 2, 1]
    folder = prepared(replay, open_folder / "round")
    outcome = run_replay(read_plan(folder).lane("L1"), folder.clone("L1"), three_lanes.root)
    assert len(outcome.tickets) == 2


def test_what_cannot_be_replayed_is_refused(
    three_lanes: CampaignRepo, open_folder: Path, options: ReplayOptions
) -> None:
    base = history(three_lanes)
    work = open_folder / "work"
    rows = [
        ("range", "nowhere", "main", work),
        ("range", "side", "main~1", work),
        ("nothing-to-replay", "main", "main", work),
        ("work-inside-repository", base, "main", three_lanes.root / "work"),
    ]
    for code, first, last, folder in rows:
        with pytest.raises(Refused, match=code):
            plan_replay(three_lanes.root, first, last, folder, options)
    assert not work.exists()


def change(name: str, *paths: str) -> CommitChange:
    return CommitChange(name, name, paths)


@pytest.mark.parametrize(
    ("commits", "groups"),
    [
        ([], []),
        ([change("a", "x"), change("b", "y")], ["a", "b"]),
        ([change("a", "x"), change("b", "y"), change("c", "x", "y")], ["abc"]),
        ([change("a", "x"), change("b", "y"), change("c", "z"), change("d", "z", "x")], ["acd", "b"]),
        ([change("a", "x"), change("b")], ["a"]),
        ([change("a", "x"), change("b", "x/y/z")], ["ab"]),
        ([change("a", "x/y/z"), change("b", "x/y/w"), change("c", "x")], ["abc"]),
        ([change("a", "Read"), change("b", "READ")], ["ab"]),
    ],
)
def test_grouping(commits: list[CommitChange], groups: list[str]) -> None:
    found = ["".join(commit.commit for commit in group.commits) for group in group_commits(commits)]
    assert found == groups
