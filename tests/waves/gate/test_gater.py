"""A gater over waves as a drafter leaves them: what is banked, what is not, and what is said of it."""

from __future__ import annotations

from pathlib import Path

from support.wave_builder import Heard, WaveCampaign, wave_campaign

from roundkit.evidence import wave_layout as names
from roundkit.waves.freeze import freeze


def right(group: str, name: str) -> str:
    return f"right {group} {name}\n"


def test_w01_right_drafts_are_banked_in_one_commit_with_one_row_a_wave(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder)
    first = campaign.drafted(
        {"a.txt": right("g", "a"), "b.txt": "wrong\n", "c.txt": "mismatch\n", "d.txt": "nothing\n",
         "e.txt": "silent\n", "notes.md": "not a draft\n"},
        ("g", "a"), ("g", "b"), ("h", "c"), ("h", "d"), ("h", "e"), ("h", "never")
    )  # fmt: skip
    second = campaign.drafted({"f.txt": right("h", "f")}, ("h", "f"))
    before = campaign.git.resolve("HEAD")
    assert campaign.gate() == 0
    one, two = campaign.rows()
    assert (one.tag, one.mode, one.targets, one.drafts, one.gated, one.banked) == (first, "wave", 6, 5, 2, 1)
    assert one.prefilter == {"agree": 2, "error": 1, "mismatch": 1, "nothing-to-check": 1}
    assert (two.tag, two.banked, two.harvest, two.credit_usd) == (second, 1, "done", 3.5)
    assert campaign.banked() == [("g", "a"), ("h", "f")]
    assert campaign.git.resolve("HEAD~2") == before
    assert campaign.git.resolve("HEAD") == two.commit
    assert (campaign.tree / "src/g/a.txt").read_text() == right("g", "a")
    assert campaign.git.dirty_paths() == []
    assert sorted((row.stage, row.name, row.reason) for row in campaign.rejects()) == [
        ("gate", "b", "wrong body"),
        ("prefilter", "c", "mismatch: as it says"),
        ("prefilter", "d", "nothing-to-check: as it says"),
        ("prefilter", "e", "error: the prefilter said nothing"),
    ]
    assert (campaign.folder.at(names.LESSONS) / f"{first}.md").read_text() == "g/a"
    assert "staged src/g/a.txt right g a" in campaign.logs()


def test_w01_the_best_attempt_is_gated_and_the_first_stands_where_nobody_can_say(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder)
    keys = [("g", "scored"), ("g", "tied"), ("g", "broken")]
    tag = campaign.wave(*keys)
    for index, score in enumerate((3, 1, 2)):
        campaign.shard(
            tag, index,
            {
                "scored.txt": f"{right('g', 'scored')} score={score} {index}",
                "tied.txt": f"{right('g', 'tied')} score=1 {index}",
                "broken.txt": f"{right('g', 'broken')} unscored {index}",
            },
            attempt=index + 1,
        )  # fmt: skip
    campaign.hand_on(tag)
    assert campaign.gate() == 0
    taken = {name: (campaign.tree / f"src/g/{name}.txt").read_text().split()[-1] for _, name in keys}
    assert taken == {"scored": "1", "tied": "0", "broken": "0"}
    assert [row.stage for row in campaign.rejects()] == ["score"] * 6
    assert len(list((campaign.folder.wave(tag) / "shards").rglob("*.txt"))) == 9


def test_w01_a_failing_prefilter_lets_nothing_pass_and_a_later_pass_takes_it_up(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder)
    tag = campaign.wave(("g", "a"), ("g", "b"))
    drafts = campaign.shard(tag, 0, {"a.txt": right("g", "a"), "b.txt": "explode\n"})
    campaign.hand_on(tag)
    heard = Heard()
    assert campaign.gate(heard) == 0
    assert campaign.rows()[0].prefilter == {"error": 2}
    assert campaign.banked() == []
    assert any("***" in line and "exited with 7" in line for line in heard.lines)
    (drafts / "b.txt").write_text("mismatch\n")
    assert campaign.gate(only=tag) == 0
    assert campaign.banked() == [("g", "a")]


def test_w01_a_prefilter_that_answers_what_no_record_holds_lets_nothing_pass(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder)
    campaign.drafted({"a.txt": right("g", "a") + "vast\n"}, ("g", "a"))
    assert campaign.gate() == 0
    assert (campaign.banked(), campaign.rows()[0].gated) == ([], 0)
    assert "is beyond 2^53" in campaign.rejects()[0].reason


def test_w01_a_draft_that_makes_the_gate_crash_takes_no_other_down(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder)
    named = ["a", "b", "c", "d", "e"]
    drafts = {f"{name}.txt": right("g", name) for name in named} | {"c.txt": "crash\n"}
    tag = campaign.drafted(drafts, *(("g", name) for name in named))
    assert campaign.gate() == 0
    assert campaign.banked() == [("g", name) for name in named if name != "c"]
    assert [row.reason for row in campaign.rejects()] == ["no answer: gate of g exited with 9"]
    assert campaign.gate(only=tag) == 1
    assert campaign.rows()[1].mode == "gate-only"


def test_w01_an_expensive_group_bisects_and_a_parked_one_waits_for_its_own_gate(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder, expensive_groups=["slow"], chunk=4, parked_groups=["slow"])
    named = [f"n{number}" for number in range(6)]
    drafts = {f"{name}.txt": right("slow", name) for name in named} | {"n1.txt": "wrong\n"}
    campaign.drafted(drafts, *(("slow", name) for name in named))
    assert campaign.gate() == 0
    assert campaign.banked() == []
    assert {row.stage for row in campaign.rejects()} == {"parked"}
    assert campaign.gate(parked=True) == 0
    assert campaign.banked() == [("slow", name) for name in named if name != "n1"]
    row = campaign.rows()[-1]
    assert (row.mode, row.gated, row.banked) == ("parked", 6, 5)
    heard = Heard()
    assert campaign.gate(heard, parked=True) == 0
    assert heard.lines == ["nothing is parked"]


def test_w01_what_another_wave_banked_meanwhile_is_not_banked_twice(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder)
    for _ in range(2):
        campaign.drafted({"a.txt": right("g", "a")}, ("g", "a"))
    assert campaign.gate() == 0
    assert campaign.banked() == [("g", "a")]
    assert [row.banked for row in campaign.rows()] == [1, 0]
    assert [row.reason for row in campaign.rejects()] == ["its target is banked already"]


def test_w02_a_campaign_frozen_anew_banks_beside_its_forerunner_of_the_same_id(open_folder: Path) -> None:
    first = wave_campaign(open_folder)
    first.drafted({"a.txt": right("g", "a")}, ("g", "a"))
    assert first.gate() == 0
    second = WaveCampaign(freeze(open_folder / "wave-plan.yaml", open_folder / "again"), first.tree)
    second.drafted({"b.txt": right("g", "b")}, ("g", "b"))
    assert second.gate() == 0
    assert second.banked() == [("g", "a"), ("g", "b")]
    row = second.rows()[0]
    assert (row.banked, row.commit) == (1, second.git.resolve("HEAD"))


def test_w02_a_row_that_is_gone_from_the_ledger_comes_back_as_it_was(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder)
    for name in "ab":
        campaign.drafted({f"{name}.txt": right("g", name), "z.txt": "nobody's\n"}, ("g", name))
    assert campaign.gate() == 0
    rows, rejects = campaign.rows(), campaign.rejects()
    for name in (names.LEDGER, names.REJECTS):
        with campaign.folder.at(name).open("r+b") as stream:
            stream.truncate(campaign.folder.at(name).stat().st_size - 20)
    assert len(campaign.rows()) == 1
    assert campaign.gate() == 0
    assert (campaign.rows(), campaign.rejects()) == (rows, rejects)


def test_w03_drafts_of_a_killed_drafter_and_of_stragglers_are_taken_up(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder)
    killed = campaign.wave(("g", "a"), ("g", "b"))
    drafts = campaign.shard(killed, 0, {"a.txt": right("g", "a")})
    assert campaign.gate(only=killed) == 0
    assert campaign.banked() == [("g", "a")]
    row = campaign.rows()[0]
    assert (row.mode, row.banked, row.began_utc, row.wall_s) == ("gate-only", 1, None, None)
    heard = Heard()
    assert campaign.gate(heard, only=killed) == 0
    assert heard.lines == [f"wave {killed}: no draft that is not decided"]
    (drafts / "b.txt").write_text(right("g", "b"))
    assert campaign.gate(only=killed) == 0
    assert campaign.banked() == [("g", "a"), ("g", "b")]
    assert [run.mode for run in campaign.runs(killed)] == ["gate-only", "gate-only"]
