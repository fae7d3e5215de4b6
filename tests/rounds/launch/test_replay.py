"""Replay: existing commits, branches and patches as lanes, and a whole round from a range of commits."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.synthetic import CampaignRepo, knob

from roundkit.agents.replay import CannotReplay, ReplayOutcome, run_replay
from roundkit.agents.replay_room import RoomFailed
from roundkit.core.errors import Refused
from roundkit.models.round_plan import FrozenLane
from roundkit.rounds.drive_replay import replay_room
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


def replayed(
    folder: RoundFolder, repo: CampaignRepo, sources: Sequence[str] | None = None, *, lane: str = "L1",
    **options: Any,
) -> ReplayOutcome:  # fmt: skip
    plan = read_plan(folder)
    frozen: FrozenLane = plan.lane(lane)
    room = replay_room(folder, plan, frozen)
    return run_replay(frozen, room, repo.root, sources, base=plan.incumbent, **options)


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
    folder, _ = three_lanes.launched(open_folder / "round")
    sources = (first, "feature", str(open_folder / "undo.patch"), "feature~2..feature~1")
    outcome = replayed(folder, three_lanes, sources)
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
    folder, _ = three_lanes.launched(open_folder / "round")
    clone = folder.clone("L1")
    first = replayed(folder, three_lanes, (commit,))
    subprocess.run(["git", "-C", clone, "checkout", "--quiet", "."], check=True)
    again = replayed(folder, three_lanes, (commit,))
    assert again.tickets == first.tickets
    assert again.steps[0].duplicate


def test_a_wrapper_that_the_clone_changed_is_not_run(three_lanes: CampaignRepo, open_folder: Path) -> None:
    base = three_lanes.incumbent
    commit = three_lanes.commit({"knobs/L1.json": knob(0.1)})
    three_lanes.start_from(base)
    folder, _ = three_lanes.launched(open_folder / "round")
    clone = folder.clone("L1")
    was_run = open_folder / "was-run"
    (clone / ".roundkit" / "round").write_text(f"open({str(was_run)!r}, 'w')\n")
    outcome = replayed(folder, three_lanes, (commit,))
    assert [step.status for step in outcome.steps] == ["queued"]
    assert not was_run.exists()
    assert len(list(folder.outbox("L1").iterdir())) == 1


ATTACK = """#!/bin/sh
touch {mark}
cat
"""


def test_git_of_a_clone_that_somebody_configured_runs_nothing_as_the_coordinator(
    three_lanes: CampaignRepo, open_folder: Path
) -> None:
    commit = three_lanes.commit({"knobs/L1.json": knob(0.1)})
    three_lanes.start_from(three_lanes.incumbent)
    folder, _ = three_lanes.launched(open_folder / "round")
    clone, mark, outside = folder.clone("L1"), open_folder / "ran", open_folder / "elsewhere"
    outside.mkdir(mode=0o777)
    outside.chmod(0o777)
    attack = open_folder / "attack"
    attack.write_text(ATTACK.format(mark=mark))
    attack.chmod(0o755)
    open_folder.chmod(0o777)
    for key in (
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.editor",
        "core.askPass",
        "core.alternateRefsCommand",
        "filter.x.clean",
        "filter.x.smudge",
        "filter.x.process",
        "diff.x.textconv",
        "diff.x.command",
        "diff.external",
        "gpg.program",
        "uploadpack.packObjectsHook",
        "trailer.x.command",
        "credential.helper",
        "alias.apply",
    ):
        subprocess.run(["git", "-C", clone, "config", key, str(attack)], check=True)
    for key, value in (
        ("core.hooksPath", str(open_folder)),
        ("core.attributesFile", str(open_folder / "attributes")),
        ("include.path", str(open_folder / "more")),
        ("filter.x.required", "true"),
    ):
        subprocess.run(["git", "-C", clone, "config", key, value], check=True)
    (open_folder / "more").write_text(f'[core]\n\tfsmonitor = "{attack}"\n')
    for place in (open_folder / "attributes", clone / ".git/info/attributes"):
        place.write_text("* filter=x diff=x\n")
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc"):
        for place in (clone / ".git/hooks", open_folder):
            place.mkdir(exist_ok=True)
            (place / hook).write_text(ATTACK.format(mark=mark))
            (place / hook).chmod(0o755)
    (clone / ".git/objects/info").mkdir(exist_ok=True)
    (clone / ".git/objects/info/alternates").write_text(f"{folder.repository}/objects\n")
    (clone / "knobs/stray").write_text("left by another worker")
    with suppress(RoomFailed):
        replayed(folder, three_lanes, (commit,), afresh=True)
    assert not mark.exists()

    subprocess.run(["git", "-C", clone, "config", "core.worktree", str(outside)], check=True)
    with suppress(RoomFailed):
        replayed(folder, three_lanes, (commit,), afresh=True)
    assert list(outside.iterdir()) == []
    assert not mark.exists()


def test_a_clone_whose_git_folder_leads_elsewhere_is_refused(
    three_lanes: CampaignRepo, open_folder: Path
) -> None:
    commit = three_lanes.commit({"knobs/L1.json": knob(0.1)})
    three_lanes.start_from(three_lanes.incumbent)
    folder, _ = three_lanes.launched(open_folder / "round")
    before = digest_of(folder.repository)
    shutil.rmtree(folder.clone("L1") / ".git")
    (folder.clone("L1") / ".git").symlink_to(folder.repository)
    with pytest.raises((Refused, RoomFailed)):
        replayed(folder, three_lanes, (commit,), afresh=True)
    (folder.clone("L1") / ".git").unlink()
    (folder.clone("L1") / ".git").write_text(f"gitdir: {folder.repository}\n")
    with pytest.raises((Refused, RoomFailed)):
        replayed(folder, three_lanes, (commit,), afresh=True)
    assert digest_of(folder.repository) == before


def digest_of(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def test_an_owner_whose_repository_writes_patches_in_another_form_can_replay(
    three_lanes: CampaignRepo, open_folder: Path
) -> None:
    commit = three_lanes.commit({"knobs/L1.json": knob(0.1)})
    three_lanes.start_from(three_lanes.incumbent)
    for setting in (
        "diff.noprefix=true",
        "diff.mnemonicPrefix=true",
        "diff.relative=true",
        "color.ui=always",
    ):
        three_lanes.repository.git("config", *setting.split("="))
    folder, _ = three_lanes.launched(open_folder / "round")
    assert [step.status for step in replayed(folder, three_lanes, (commit,)).steps] == ["queued"]


def test_unknown_source(three_lanes: CampaignRepo, open_folder: Path) -> None:
    folder, _ = three_lanes.launched(open_folder / "round")
    with pytest.raises(CannotReplay, match="no-such-thing"):
        replayed(folder, three_lanes, ("no-such-thing",))


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
        tickets += replayed(folder, three_lanes, lane=lane).tickets
        assert frozen.replay == sources
    assert len(tickets) == 3
    assert (folder.clone("L3") / "src/[odd] {name}.py").read_text() == "3a\n"
    assert (folder.clone("L3") / "src/new.py").read_text() == "n\n"
    assert not (folder.clone("L1") / "src/one.py").exists()


@pytest.mark.parametrize("mark", ["\u2028", "\x0c", "\x85", "\x1e"])
def test_a_subject_may_hold_what_others_take_for_the_end_of_a_line(
    three_lanes: CampaignRepo, open_folder: Path, options: ReplayOptions, mark: str
) -> None:
    three_lanes.campaign_file.unlink()
    base = three_lanes.commit({"src/one.py": "1\n", "src/two.py": "2\n"})
    first = three_lanes.commit({"src/one.py": "1a\n"}, f"a{mark}b")
    second = three_lanes.commit({"src/two.py": "2a\n"}, f"c{mark}d")
    replay = plan_replay(three_lanes.root, base, "main", open_folder / "work", options)
    assert list(replay.commits.values()) == [(first,), (second,)]
    hypotheses = [entry["hypothesis"] for entry in replay.campaign["search_plan"]]
    assert [text.split(" ", 1)[1] for text in hypotheses] == ["a b", "c d"]
    prepared(replay, open_folder / "round")


def test_a_branch_beside_a_tag_of_its_name_is_replayed(
    three_lanes: CampaignRepo, open_folder: Path, options: ReplayOptions
) -> None:
    base = history(three_lanes)
    three_lanes.repository.git("tag", "main", base)
    replay = plan_replay(three_lanes.root, base, "HEAD", open_folder / "work", options)
    assert replay.campaign["repository"]["branch"] == "main"
    prepared(replay, open_folder / "round")
    three_lanes.repository.git("checkout", "--quiet", "--detach")
    replay = plan_replay(three_lanes.root, base, "HEAD", open_folder / "work", options)
    assert replay.campaign["repository"]["branch"] == "main"


def test_benchmark_outside_the_repository_measures_wall_time(
    three_lanes: CampaignRepo, open_folder: Path, options: ReplayOptions
) -> None:
    base = history(three_lanes)
    options = replace(options, each_commit=True, target_package="knobkit")
    replay = plan_replay(three_lanes.root, base, "main", open_folder / "work", options)
    assert replay.campaign["benchmark"]["instrument"] == "wall"
    by_cpu = replace(options, instrument="cpu")
    measured = plan_replay(three_lanes.root, base, "main", open_folder / "by-cpu", by_cpu).campaign
    assert (measured["benchmark"]["instrument"], measured["metric"]["name"]) == ("cpu", "cpu_ms")
    assert replay.campaign["runtime"]["readable"] == [str(open_folder / "outside")]
    assert [len(sources) for sources in replay.sources.values()] == [2, 1, 1, 2, 1]
    folder = prepared(replay, open_folder / "round")
    outcome = replayed(folder, three_lanes)
    assert len(outcome.tickets) == 2


def test_a_validator_and_a_build_from_outside_are_part_of_the_replayed_campaign(
    three_lanes: CampaignRepo, open_folder: Path, options: ReplayOptions
) -> None:
    base = history(three_lanes)
    check = open_folder / "outside" / "check.py"
    check.write_text("")
    tools = open_folder / "tools"
    tools.mkdir()
    (tools / "make.py").write_text("")
    options = replace(
        options,
        validator=("{python}", str(check), str(three_lanes.root / "knobs/L1.json")),
        build=("{python}", str(tools / "make.py")),
    )
    replay = plan_replay(three_lanes.root, base, "main", open_folder / "work", options)
    assert replay.campaign["validator"]["argv"] == ["{python}", str(check), "knobs/L1.json"]
    assert replay.campaign["build"]["argv"] == ["{python}", str(tools / "make.py")]
    assert replay.campaign["runtime"]["readable"] == [str(check.parent), str(tools)]
    assert "knobs/L1.json" in read_plan(prepared(replay, open_folder / "round")).protected_paths


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
