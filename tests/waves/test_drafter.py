"""The drafter, end to end: real processes behind the real boundary, agents that are scripted."""

from __future__ import annotations

import json
import os
import resource
import shutil
import time
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from support.killing import wait_for
from support.wave_campaigns import WORKERS, target, wave_campaign
from support.wave_provider import wave_provider

from roundkit.core.clock import format_utc, now_utc
from roundkit.core.errors import Refused
from roundkit.evidence import wave_layout as names
from roundkit.models.wave_records import DrafterState
from roundkit.waves import stop
from roundkit.waves.agent_place import inherited_values
from roundkit.waves.drafter_state import is_finished, read_state
from roundkit.waves.drafting_wave import begin_wave
from roundkit.waves.draw import charged_micro_usd, draw
from roundkit.waves.folder import CampaignFolder
from roundkit.waves.freeze import check_tools
from roundkit.waves.host_room import make_room
from roundkit.waves.shard_run import AgentSetting
from roundkit.waves.status import read_status
from roundkit.waves.telemetry import EventCollector


def test_w01_a_wave_is_drawn_shared_out_drafted_and_handed_on(open_folder: Path) -> None:
    parts = ["right", "wrong-symbol", "wrong-body", "truncated", "right"]
    campaign = wave_campaign(open_folder, [target(f"f{n}", plays=part) for n, part in enumerate(parts)])
    lines = campaign.draft()
    folder = campaign.folder
    drafts = campaign.drafts("0001")
    assert drafts["f0"] == campaign.targets[0]["data"]["source"]
    assert "helped(x)" in drafts["f1"]
    assert "- 2" in drafts["f2"]
    assert campaign.targets[3]["data"]["source"].startswith(drafts["f3"])
    assert drafts["f3"] != campaign.targets[3]["data"]["source"]
    drafted = folder.drafted("0001")
    assert drafted is not None
    assert (drafted.shards, drafted.running, drafted.workers) == (3, 0, 3)
    ends = [end for _, end in folder.shards("0001")]
    assert [end and (end.end_reason, end.exit_code) for end in ends] == [("exited", 0)] * 3
    status = read_status(folder)
    assert [wave.state for wave in status.waves] == ["waiting"]
    traffic = status.waves[0].traffic
    assert traffic is not None
    assert (traffic.requests, traffic.truncated, traffic.bad_lines) == (5, 1, 0)
    assert status.drafter is not None
    assert (status.drafter.state, status.drafter.reason) == ("ended", "waves")
    assert not [line for line in lines if "ended:" in line and "drafter" not in line], lines
    rows = [json.loads(line) for line in (folder.root / "events.jsonl").read_text().splitlines()]
    assert sum(row["truncated"] for row in rows) == 1


def state(folder: CampaignFolder) -> DrafterState:
    known = read_state(folder)
    assert known is not None
    return known


def test_what_crashes_or_is_cut_off_costs_its_own_shard_alone(open_folder: Path) -> None:
    parts = ["right", "crashing", "right", "right", "right", "right"]
    campaign = wave_campaign(open_folder, [target(f"f{n}", plays=part) for n, part in enumerate(parts)])
    lines = campaign.draft()
    assert sorted(campaign.drafts("0001")) == ["f0", "f2", "f3", "f5"]
    ended = {end.index: end.end_reason for _, end in campaign.folder.shards("0001") if end is not None}
    assert ended == {0: "exited", 1: "signal", 2: "exited"}
    assert [line for line in lines if "shard 1 ended: signal" in line]


def test_a_shard_is_ended_at_its_deadline(open_folder: Path) -> None:
    with wave_provider() as provider:
        provider.hold("f1")
        campaign = wave_campaign(open_folder, [target("f0"), target("f1"), target("f2")])
        campaign.ask(provider)
        campaign.write_plan(draft={"deadline_s": 3})
        campaign.draft()
    ends = {end.index: end for _, end in campaign.folder.shards("0001") if end is not None}
    assert [ends[index].end_reason for index in range(3)] == ["exited", "deadline", "exited"]
    assert (ends[0].turns, ends[1].turns) == (1, 0)
    assert sorted(campaign.drafts("0001")) == ["f0", "f2"]


GREEDY = """
import json, os, sys, time
from pathlib import Path

task = json.loads(Path(sys.argv[1]).read_text())
one = task["targets"][0]
(Path(sys.argv[2]) / (one["name"] + ".c")).write_text(one["data"]["source"])
with Path(os.environ["ROUNDKIT_EVENTS"]).open("a") as told:
    for number in range(one["data"]["answers"]):
        row = {"at_s": time.time(), "event": "answer", "tag": task["tag"], "shard": task["shard"],
               "model": task["model"], "micro_usd": one["data"]["micro_usd"], "tokens": 1}
        told.write(json.dumps(row) + chr(10))
    told.flush()
    if one["data"]["then"] == "goes on":
        time.sleep(600)
"""


def test_w10_an_agent_that_tells_of_more_than_its_caps_is_ended_and_charged(open_folder: Path) -> None:
    plays = [(4, 1, "goes on"), (3, 10, "ends"), (2, 30, "goes on"), (3, 1, "ends")]
    targets = [
        target(f"f{n}", answers=answers, micro_usd=cost, then=then)
        for n, (answers, cost, then) in enumerate(plays)
    ]
    campaign = wave_campaign(open_folder, targets, workers={**WORKERS, "start": 4})
    (open_folder / "tools" / "greedy.py").write_text(GREEDY)
    campaign.write_plan(
        draft={"argv": ["{python}", "greedy.py", "{input}", "{output}"], "turns": 3, "micro_usd": 30,
               "deadline_s": 600},
        authorization={"by": "Ada", "micro_usd": 1000, "until_utc": "2100-01-01T00:00:00Z",
                       "models": ["stub-1"]},
    )  # fmt: skip
    lines = campaign.draft()
    ends = {end.index: end for _, end in campaign.folder.shards("0001") if end is not None}
    assert [ends[index].end_reason for index in range(4)] == ["budget", "exited", "budget", "exited"]
    assert ends[0].detail == "it told of 4 turns, and has 3"
    assert ends[2].detail == "it told of 60 micro-USD, and has 30"
    assert [line for line in lines if "shard 2 ended: budget: it told of 60 micro-USD" in line]
    assert sorted(campaign.drafts("0001")) == ["f0", "f1", "f2", "f3"]
    assert charged_micro_usd(campaign.folder, "0001") == 4 * 30 + 30


def test_independent_attempts_come_from_agents_of_their_own(open_folder: Path) -> None:
    plays = ["wrong-body", "right"]
    campaign = wave_campaign(open_folder, [target("f0", plays=plays), target("f1", plays=plays)])
    campaign.write_plan(draft={"attempts": 2})
    campaign.draft()
    found = {}
    for shard, _ in campaign.folder.shards("0001"):
        drafts = campaign.folder.shard("0001", shard.index) / names.DRAFTS
        found.update({(path.stem, shard.attempt): path.read_text() for path in drafts.iterdir()})
    assert sorted(found) == [("f0", 1), ("f0", 2), ("f1", 1), ("f1", 2)]
    assert "-" in found["f0", 1]
    assert found["f0", 2] == campaign.targets[0]["data"]["source"]


def test_inputs_are_looked_for_counted_and_copied(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder, [target("f0"), target("f1", no_input=True), target("f2")])
    (campaign.tree / "asm" / "a" / "f2.s").unlink()
    (campaign.tree / "asm" / "a" / "f2.s").symlink_to("/etc/passwd")
    campaign.draft()
    wave = campaign.folder.read_wave("0001")
    assert [one.name for one in wave.targets] == ["f0"]
    assert wave.missing_inputs == 2
    inputs = campaign.folder.shard("0001", 0) / names.INPUTS
    assert (inputs / "asm" / "a" / "f0.s").read_text() == "f0:\n"
    assert [path.name for path in inputs.rglob("*.s")] == ["f0.s"]


def test_stragglers_land_in_their_own_wave_while_the_next_one_is_drafted(open_folder: Path) -> None:
    with wave_provider() as provider:
        provider.hold("f4")
        campaign = wave_campaign(open_folder, [target(f"f{n}") for n in range(10)])
        campaign.ask(provider)
        campaign.write_plan(waves=2, targets=5, workers={"start": 5, "most": 5})
        folder = campaign.folder
        with campaign.drafting() as drafting:
            # All of the second wave but what waits for the straggler's place has ended.
            wait_for(lambda: sum(end is not None for _, end in folder.shards("0002")) == 5, "the second wave")
            assert folder.drafted("0001") is None
            assert [end for _, end in folder.shards("0001")].count(None) == 1
            provider.release("f4")
            drafting.join()
        drafted = folder.drafted("0001")
        assert drafted is not None
        assert drafted.running == 0
        assert sorted(campaign.drafts("0001")) == ["f0", "f1", "f2", "f3", "f4"]
        first = {shard.started_utc for shard, _ in folder.shards("0002")}
        straggler = next(end for shard, end in folder.shards("0001") if shard.index == 4)
        assert straggler is not None
        assert min(first) < straggler.ended_utc


def test_after_its_grace_a_wave_goes_on_without_what_still_runs(open_folder: Path) -> None:
    with wave_provider() as provider:
        provider.hold("f4")
        campaign = wave_campaign(open_folder, [target(f"f{n}") for n in range(5)])
        campaign.ask(provider)
        campaign.write_plan(draft={"grace_s": 0}, workers={"start": 5, "most": 5})
        folder = campaign.folder
        with campaign.drafting() as drafting:
            drafted = wait_for(lambda: folder.drafted("0001"), "the hand-over")
            assert (drafted.shards, drafted.running) == (5, 1)
            provider.release("f4")
            drafting.join()
        # It was never ended, and what it drafted lies in its own wave.
        assert "f4" in campaign.drafts("0001")
        assert [end and end.end_reason for _, end in folder.shards("0001")] == ["exited"] * 5


def test_a_wave_says_of_nobody_that_it_runs_who_has_ended(open_folder: Path) -> None:
    """An end that came while others were written down waited, and the audit knows when it was."""
    with wave_provider() as provider:
        provider.hold("f1")
        campaign = wave_campaign(open_folder, [target("f0"), target("f1")])
        campaign.ask(provider)
        campaign.write_plan(draft={"tail": 0.5, "grace_s": 1}, workers={**WORKERS, "start": 2})
        folder = campaign.folder
        assert draw(folder, lambda _: frozenset()).wave is not None
        wave, events = begin_wave(folder, "0001", workers=2), EventCollector(folder, time.time)
        setting = AgentSetting.of(folder, inherited_values(folder.plan, os.environ))
        for _ in range(2):
            wave.start_next(setting, events, lambda: None, time.monotonic())
        first, straggler = wave.running.values()
        wait_for(lambda: first.is_over, "the first shard's end")
        wave.reap(events)
        tail_s = time.monotonic()
        assert not wave.may_be_handed(tail_s)
        provider.release("f1")
        wait_for(lambda: straggler.is_over, "the straggler's end")
    assert not wave.may_be_handed(tail_s + 10.0)
    wave.reap(events)
    assert wave.may_be_handed(tail_s + 10.0)
    wave.hand_on()
    drafted = folder.drafted("0001")
    assert drafted is not None
    assert drafted.running == 0


def test_no_more_agents_run_at_once_than_there_are_workers(open_folder: Path) -> None:
    with wave_provider() as provider:
        provider.hold("f0")
        campaign = wave_campaign(open_folder, [target(f"f{n}") for n in range(9)])
        campaign.ask(provider)
        campaign.write_plan(
            waves=3, targets=3, draft={"tail": 0.6}, workers={"start": 3, "most": 3, "step": 1}
        )
        with campaign.drafting() as drafting:
            wait_for(lambda: campaign.folder.drafted("0003"), "the last wave")
            provider.release()
            drafting.join()
    assert read_status(campaign.folder).fleet.most == 3


def test_run_ahead_is_bounded_on_drawing_only(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder, [target(f"f{n}") for n in range(30)])
    campaign.write_plan(waves=4, targets=2, queue_depth=1)
    folder = campaign.folder
    with campaign.drafting() as drafting:
        wait_for(lambda: drafting.said("drafter waiting: the gater: as many waves"), "the bound")
        # The second may have been drawn while the first was drafted, and is then drafted whatever waits.
        waiting = folder.tags()
        assert waiting in (["0001"], ["0001", "0002"])
        assert all(folder.drafted(tag) is not None for tag in waiting)
        for tag in ("0001", "0002", "0003"):
            wait_for(partial(folder.drafted, tag), tag)
            campaign.gated(tag)
        wait_for(partial(folder.drafted, "0004"), "the rest")
        drafting.join()
    assert folder.tags() == ["0001", "0002", "0003", "0004"]


def test_what_was_drawn_and_not_banked_is_drawn_again_and_what_is_banked_is_not(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder, [target(f"f{n}") for n in range(3)])
    campaign.write_plan(waves=2)
    folder = campaign.folder
    with campaign.drafting(banked={("a", "f1")}) as drafting:
        wait_for(lambda: drafting.said("every open target is in a wave"), "the end of the targets")
        campaign.gated("0001")
        drafting.join()
    second = folder.read_wave("0002")
    assert [one.name for one in second.targets] == ["f0", "f2"]
    assert (second.retried, second.left_out) == (2, {"banked": 1})


def test_a_campaign_without_open_targets_ends(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder, [target("f0")])
    campaign.draft(banked={("a", "f0")})
    assert state(campaign.folder).reason == "exhausted"
    assert campaign.folder.tags() == []


def test_a_draw_that_keeps_failing_ends_the_drafter_with_its_words(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder, [target("f0")])
    (open_folder / "tools" / "draw.py").write_text("raise SystemExit('no atlas')")
    with campaign.drafting() as drafting:
        drafting.join()
    assert drafting.code == 1
    assert sum("no atlas" in line for line in drafting.lines) == 3
    assert state(campaign.folder).reason == "draw-failed"


def test_a_wave_that_somebody_removed_gives_its_tag_to_no_other(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder, [target("f0")])
    campaign.draft()
    campaign.gated("0001")
    shutil.rmtree(campaign.folder.wave("0001"))
    campaign.draft()
    assert campaign.folder.tags() == ["0002"]


def test_a_draw_with_an_integer_that_no_record_holds_is_told_so(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder, [target("f", address=2**63)])
    with campaign.drafting() as drafting:
        drafting.join()
    assert drafting.code == 1
    assert drafting.said("9223372036854775808 is beyond 2^53; write it as a text")


def test_a_wave_takes_the_lessons_that_are_there(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder, [target("f0")])
    tools = open_folder / "tools" / "agents" / "scripted.py"
    tools.write_text("from pathlib import Path\nprint(Path('/wave/lessons/0000.md').read_text())")
    lessons = campaign.folder.at(names.LESSONS)
    lessons.mkdir()
    (lessons / "0000.md").write_text("unsigned, not int")
    campaign.draft()
    shard = campaign.folder.shard("0001", 0)
    assert "unsigned, not int" in (shard / names.AGENT_LOG).read_text()
    assert json.loads((shard / names.TASK).read_bytes())["lessons"] == "/wave/lessons"


def test_an_agent_sees_its_inputs_and_changes_its_own_folders_alone(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder, [target("f0"), target("f1")])
    campaign.write_plan(workers={"start": 2})
    shard = campaign.directory / "waves" / "0001" / "shards"
    places = [campaign.tree / "targets.json", shard / "0001" / names.TASK, campaign.directory / names.PLAN]
    attempts = [
        "/wave/tools/new", "/wave/input.json", "/wave/inputs/asm/a/f0.s", str(shard / "0000" / names.SHARD),
        str(campaign.tree / "src/README"),
    ]  # fmt: skip
    (open_folder / "tools" / "agents" / "scripted.py").write_text(
        "from pathlib import Path\n"
        "for place in " + repr([str(place) for place in places]) + ":\n"
        "    print('read', place, Path(place).exists())\n"
        "for place in " + repr(attempts) + ":\n"
        "    try:\n        Path(place).write_text('forged')\n        print('wrote', place)\n"
        "    except OSError as error:\n        print('kept', error.strerror)\n"
        "print(sorted(p.name for p in Path('/wave/inputs').rglob('*.s')))\n"
    )
    campaign.draft()
    log = (campaign.folder.shard("0001", 0) / names.AGENT_LOG).read_text()
    assert "True" not in log
    assert "wrote" not in log
    assert log.count("kept") == len(attempts)
    assert "['f0.s']" in log
    assert "forged" not in (campaign.tree / "src/README").read_text()


def test_keys_come_by_name_and_are_in_no_log(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = wave_campaign(open_folder, [target("f0")])
    campaign.write_plan(draft={"agent": {"provenance": "scripted", "key_variables": ["WAVE_KEY"]}})
    (open_folder / "tools" / "agents" / "scripted.py").write_text(
        "import os\nprint(os.environ['WAVE_KEY'])\n"
    )
    with pytest.raises(Refused, match="WAVE_KEY"), campaign.drafting():
        pass
    monkeypatch.setenv("WAVE_KEY", "a-very-secret-key-0123456789")
    campaign.draft()
    assert (campaign.folder.shard("0001", 0) / names.AGENT_LOG).read_text().strip() == "[WAVE_KEY]"
    assert not [
        path
        for path in campaign.directory.rglob("*")
        if path.is_file() and b"a-very-secret-key" in path.read_bytes()
    ]


def test_a_plan_that_was_edited_after_a_wave_is_refused(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder, [target("f0")])
    campaign.draft()
    plan = campaign.folder.at(names.PLAN)
    plan.write_bytes(plan.read_bytes().replace(b'"queue_depth":2', b'"queue_depth":9'))
    with pytest.raises(Refused, match="plan-changed"):
        check_tools(CampaignFolder(campaign.directory))


def test_a_second_drafter_is_refused(open_folder: Path) -> None:
    with wave_provider() as provider:
        provider.hold("f0")
        campaign = wave_campaign(open_folder, [target("f0")])
        campaign.ask(provider)
        with campaign.drafting():
            provider.wait_for_request("f0")
            with pytest.raises(Refused, match="drafter-running"), campaign.drafting() as second:
                second.join()


@pytest.mark.parametrize("ending", ["authorization", "deadline"])
def test_w10_what_a_draw_names_once_the_time_is_over_is_no_wave(open_folder: Path, ending: str) -> None:
    campaign = wave_campaign(open_folder, [target("f0")])
    until = now_utc() + timedelta(seconds=5)
    if ending == "deadline":
        campaign.write_plan(deadline_utc=format_utc(until))
    else:
        campaign.write_plan(
            authorization={"by": "Ada", "micro_usd": 10**9, "until_utc": format_utc(until),
                           "models": ["stub-1"]},
        )  # fmt: skip
    command = open_folder / "tools" / "draw.py"
    waits = f"import time\ntime.sleep(max(0.0, {until.timestamp()} - time.time()))\n"
    command.write_text(waits + command.read_text())
    # Without the drafter, which would end the command a moment after the authorization.
    drawn = draw(campaign.folder, lambda _: frozenset())
    assert (drawn.wave, drawn.reason) == (None, ending)
    assert campaign.folder.tags() == []


def test_w10_stop_ends_after_the_wave_that_is_drafted_and_the_same_command_goes_on(open_folder: Path) -> None:
    with wave_provider() as provider:
        provider.hold("f0")
        campaign = wave_campaign(open_folder, [target(f"f{n}") for n in range(9)])
        campaign.ask(provider)
        campaign.write_plan(waves=3, targets=3)
        folder = campaign.folder
        with campaign.drafting() as drafting:
            provider.wait_for_request("f0")
            stop.ask(folder)
            provider.release()
            drafting.join()
        assert drafting.code == 0
        assert state(folder).reason == "stop"
        assert is_finished(folder)
        assert folder.drafted("0001") is not None
        assert not list(folder.shards("0002"))
        stop.lift(folder)
        campaign.draft()
    assert [folder.drafted(tag) is not None for tag in folder.tags()] == [True, True, True]
    assert state(folder).reason == "waves"


def test_w10_a_signal_ends_the_agents_and_loses_nothing(open_folder: Path) -> None:
    with wave_provider() as provider:
        provider.hold("f1")
        campaign = wave_campaign(open_folder, [target(f"f{n}") for n in range(3)])
        campaign.ask(provider)
        folder = campaign.folder
        with campaign.drafting() as drafting:
            provider.wait_for_request("f1")
            wait_for(lambda: {"f0", "f2"} <= set(campaign.drafts("0001")), "two drafts")
            drafting.asked.set()
            drafting.join()
        assert drafting.code == 0
    assert {end.end_reason for _, end in folder.shards("0001") if end is not None} == {"exited", "stopped"}
    assert sorted(campaign.drafts("0001")) == ["f0", "f2"]


def test_w10_credit_under_the_floor_stops_the_draw(open_folder: Path) -> None:
    with wave_provider(credit_usd=1.5) as provider:
        campaign = wave_campaign(open_folder, [target("f0")])
        campaign.ask(provider, credit=True)
        campaign.draft()
        assert campaign.folder.tags() == []
        assert (state(campaign.folder).reason, state(campaign.folder).credit_usd) == ("credit", 1.5)
        provider.credit_usd = 2.0
        campaign.draft()
    assert campaign.folder.drafted("0001") is not None


def test_w10_credit_that_cannot_be_read_is_told_and_never_fatal(open_folder: Path) -> None:
    with wave_provider(credit_usd=None) as provider:
        campaign = wave_campaign(open_folder, [target("f0")])
        campaign.ask(provider, credit=True)
        campaign.draft()
    assert campaign.folder.drafted("0001") is not None
    known = state(campaign.folder)
    assert known.credit_usd is None
    assert known.credit_reason is not None
    assert known.credit_reason.startswith("it cannot be read: credit exited with 1")


def test_refusals_of_the_provider_are_counted_by_their_source(open_folder: Path) -> None:
    refusals = {1: "provider", 3: "platform"}
    with wave_provider(refuse=lambda number, _: refusals.get(number)) as provider:
        campaign = wave_campaign(open_folder, [target(f"f{n}") for n in range(4)])
        campaign.ask(provider)
        campaign.draft()
    wave = read_status(campaign.folder).waves[0]
    assert wave.traffic is not None
    assert (wave.traffic.requests, wave.traffic.provider_429, wave.traffic.platform_429) == (6, 1, 1)
    assert wave.traffic.by_model == {"stub-1": (6, 2)}
    assert wave.traffic.memory_available_bytes
    decision = read_status(campaign.folder).decision
    assert decision is not None
    assert (decision.reason, decision.next_workers) == ("platform-429", 3)


def test_a_wave_none_of_whose_agents_could_start_is_the_last(open_folder: Path) -> None:
    """Else an unattended night would be spent on waves that come to nothing."""
    campaign = wave_campaign(open_folder, [target(f"f{n}") for n in range(9)])
    # A credential that has gone since the campaign was frozen.
    agent = {"provenance": "scripted", "credentials": [{"source": str(open_folder / "gone"), "at": "key"}]}
    campaign.write_plan(waves=3, targets=3, draft={"agent": agent})
    with campaign.drafting() as drafting:
        drafting.join()
    assert drafting.code == 1
    assert state(campaign.folder).reason == "no-agent-started"
    assert [campaign.folder.drafted(tag) is not None for tag in campaign.folder.tags()] in (
        [True],
        [True, False],
    )
    ends = [end for _, end in campaign.folder.shards("0001") if end is not None]
    assert {end.end_reason for end in ends} == {"not-started"}
    assert all("credential-unreadable" in end.detail for end in ends)


def test_room_for_the_agents_is_looked_for_before_any_starts(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder, [target("f0")], workers=WORKERS | {"most": 100_000})
    with pytest.raises(Refused, match=r"too-many-workers|too-few-descriptors"):
        make_room(campaign.folder.plan.plan)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, hard))
    try:
        small = wave_campaign(open_folder / "small", [target("f0")], workers=WORKERS | {"most": 64})
        make_room(small.folder.plan.plan)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 64 * 27
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
