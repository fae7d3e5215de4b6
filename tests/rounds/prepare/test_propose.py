"""``prepare --propose`` drafts what the advice asks for; the advice on an owner's plan refuses nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.synthetic import CampaignRepo

from roundkit.core.errors import Refused
from roundkit.core.yamlfile import load_yaml, plain
from roundkit.models.campaign import CampaignPlan
from roundkit.rounds.prepare_incumbent import advice_on
from roundkit.rounds.propose import propose_round
from roundkit.rules.advice import advise, propose_entries

PATHS = ("parse/lexer.py", "parse/tree.py", "rank/score.py", "rank/sort.py", "README.md")


def entry(name: str, stage: str, headroom: float, *scope: str, **other: Any) -> dict[str, Any]:
    return {
        "id": name, "target_stage": stage, "exposed_share": 0.5, "conditional_headroom": headroom,
        "plane": "algorithm", "hypothesis": f"{stage} can be faster.", "scope": list(scope),
        "status": "planned", **other,
    }  # fmt: skip


@pytest.fixture
def campaign(three_lanes: CampaignRepo) -> CampaignPlan:
    content = plain(load_yaml(three_lanes.campaign_file.read_bytes(), place=""))
    content["search_plan"] = []
    return CampaignPlan.model_validate(content)


def with_entries(campaign: CampaignPlan, rows: list[dict[str, Any]], **changes: Any) -> CampaignPlan:
    content = campaign.model_dump(by_alias=True)
    content.update(search_plan=rows)
    content["test_plan"].update(changes)
    return CampaignPlan.model_validate(content)


NOISE = {"sigma": 0.02, "instrument": "reported", "machine": "any", "date": "2026-01-01", "trial_s": None}
TABLE = [
    ("most headroom first", [entry("A", "a", 0.1), entry("B", "b", 0.3)], 4, ["B", "A"], {}),
    ("ties by the plan's order", [entry("B", "b", 0.1), entry("A", "a", 0.1)], 4, ["B", "A"], {}),
    (
        "one lane a stage, the one with more headroom",
        [entry("A", "Parse ", 0.1), entry("B", "parse", 0.3), entry("C", "rank", 0.2)],
        4, ["B", "C"], {"A": "the same stage as B"},
    ),
    (
        "headroom under two sigma cannot show a result",
        [entry("A", "a", 0.0399), entry("B", "b", 0.04)],
        4, ["B"], {"A": "under 2 sigma"},
    ),
    (
        "overlapping scopes are not drafted together",
        [
            entry("A", "a", 0.3, "parse/**"),
            entry("B", "b", 0.2, "**/tree.py"),
            entry("C", "c", 0.1, "rank/**"),
        ],
        4, ["A", "C"], {"B": "both match parse/tree.py"},
    ),
    (
        "files that do not exist yet overlap too",
        [entry("A", "a", 0.3, "new.py"), entry("B", "b", 0.2, "new.py")],
        4, ["A"], {"B": "both match new.py"},
    ),
    (
        "an entry without a scope overlaps nothing",
        [entry("A", "a", 0.3, "parse/**"), entry("B", "b", 0.2)],
        4, ["A", "B"], {},
    ),
    (
        "what was left out makes room for what it overlapped",
        [entry("A", "a", 0.3), entry("B", "a", 0.2, "rank/**"), entry("C", "c", 0.1, "rank/**")],
        4, ["A", "C"], {"B": "the same stage as A"},
    ),
    (
        "exactly one plane",
        [entry("A", "a", 0.3, plane=["kernel", "layout"]), entry("B", "b", 0.2, plane=["kernel"])],
        4, ["B"], {"A": "2 planes"},
    ),
    (
        "only planned entries",
        [entry("A", "a", 0.3, status="kept"), entry("B", "b", 0.2, status="rejected"), entry("C", "c", 0.1)],
        4, ["C"], {},
    ),
    (
        "no more than were asked for",
        [entry("A", "a", 0.3), entry("B", "b", 0.2)],
        1, ["A"], {"B": "room for 1 lane, and"},
    ),
    (
        "no more than the campaign allows",
        [entry(f"E{number}", f"s{number}", 0.5 - number / 100) for number in range(10)],
        20, [f"E{number}" for number in range(8)], {"E8": "room for 8", "E9": "room for 8"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "most", "chosen", "left"), [row[1:] for row in TABLE], ids=[r[0] for r in TABLE]
)
def test_propose_obeys_the_advice(
    campaign: CampaignPlan, rows: list[dict[str, Any]], most: int, chosen: list[str], left: dict[str, str]
) -> None:
    proposal = propose_entries(with_entries(campaign, rows, noise=NOISE), most, PATHS)
    assert [entry.id for entry in proposal.entries] == chosen
    reasons = {row.entry: row.why for row in proposal.left_out}
    assert reasons.keys() == left.keys()
    assert all(left[name] in reasons[name] for name in left)


def test_propose_without_known_noise_leaves_nothing_out_for_it(campaign: CampaignPlan) -> None:
    plan = with_entries(campaign, [entry("A", "a", 0.0001)], noise=None)
    assert [entry.id for entry in propose_entries(plan, 1, PATHS).entries] == ["A"]


def test_a_draft_is_commented_deterministic_and_freezes_once_it_is_filled(
    three_lanes: CampaignRepo, open_folder: Path
) -> None:
    def rows(plan: Any) -> None:
        plan["search_plan"][0].update(conditional_headroom=0.1, hypothesis="Words.\nMore words: " + "w " * 80)
        plan["search_plan"][1].update(scope=["knobs/L2.json"])
        plan["search_plan"][2].update(scope=["knobs/new.json"], target_stage="l2", conditional_headroom=0.15)

    three_lanes.edit_campaign(rows)
    draft = propose_round(three_lanes.campaign_file, 3, core=0)
    assert draft == propose_round(three_lanes.campaign_file, 3, core=0)
    text = draft.content.decode()
    assert (draft.round_id, draft.lanes, [row.entry for row in draft.left_out]) == ("r01", 2, ["E-L3"])
    assert "# of the search plan; plane and hypothesis come from there" in text
    assert "# E-L2: algorithm, stage L2, headroom 20 % of end-to-end time. The stage of L2" in text
    assert "#   E-L3: it attacks the same stage as E-L2, whose headroom is no smaller" in text
    assert "# yours to fill: the entry proposes no scope" in text
    assert max(map(len, text.splitlines())) <= 120
    content = load_yaml(draft.content, place="draft")
    assert "&id" not in text
    assert [(lane["id"], lane["entry"], list(lane["globs"])) for lane in content["lanes"]] == [
        ("L1", "E-L2", ["knobs/L2.json"]),
        ("L2", "E-L1", []),
    ]
    three_lanes.round_file.write_bytes(draft.content)
    with pytest.raises(Refused, match=r"lanes\[1\].globs") as refused:
        three_lanes.freeze(open_folder / "round")
    assert len(refused.value.refusals) == 1
    three_lanes.edit_round(lambda filled: filled["lanes"][1].update(globs=["knobs/L1.json"]))
    plan = three_lanes.freeze(open_folder / "round")
    assert [lane.entry for lane in plan.lanes] == ["E-L2", "E-L1"]
    assert plan.round_id == "r01"


def test_a_draft_knows_earlier_rounds_and_what_changed_since(three_lanes: CampaignRepo) -> None:
    revision = {
        "time": "2026-01-01T00:00:00Z", "round": "night-09", "entry": "E-L1", "from": "planned",
        "to": "planned", "reason": "lost-in-composition", "changed_condition": "incumbent abc",
    }  # fmt: skip
    memory = {"entry": "E-L2", "round": "night-08", "conditions": "incumbent def", "reason": "no gain"}

    def history(plan: Any) -> None:
        plan["search_plan_revisions"].append(revision)
        plan["negative_memory"].append(memory)
        plan["search_plan"][2].update(scope=["knobs/new.json"])

    three_lanes.edit_campaign(history)
    three_lanes.repository.git("branch", "roundkit/night-10")
    text = propose_round(three_lanes.campaign_file, 3, core=0).content.decode()
    content = load_yaml(text.encode(), place="draft")
    assert content["round_id"] == "night-11"
    first, second, third = content["lanes"]
    assert first["changed_condition"] == "incumbent abc"
    assert second["changed_condition"] is None
    assert "# yours to state: round night-08 failed under incumbent def" in text
    assert (first["creates"], third["creates"]) == (False, True)


def test_nothing_worth_a_lane_is_refused_with_every_reason(three_lanes: CampaignRepo) -> None:
    three_lanes.edit_campaign(
        lambda plan: [entry.update(conditional_headroom=0.001) for entry in plan["search_plan"]]
    )
    with pytest.raises(Refused, match="nothing-to-propose") as refused:
        propose_round(three_lanes.campaign_file, 3, core=0)
    assert str(refused.value).count("under 2 sigma") == 3


def test_advice_names_lanes_of_one_stage_blind_lanes_and_other_scopes(
    three_lanes: CampaignRepo, open_folder: Path
) -> None:
    def rows(plan: Any) -> None:
        first, second, third = plan["search_plan"]
        first.update(target_stage="Parsing", scope=["knobs/L1.json", "build.py"])
        second.update(target_stage="parsing", conditional_headroom=0.3)
        third.update(conditional_headroom=0.001)

    three_lanes.edit_campaign(rows)
    found = advise(three_lanes.freeze(open_folder / "round"))
    assert [(row.topic, row.lanes) for row in found] == [
        ("same-stage", ("L1", "L2")),
        ("no-result", ("L3",)),
        ("scope", ("L1",)),
    ]
    assert "keep L2" in found[0].suggestion
    assert "L1 20 %, L2 30 %" in found[0].found
    assert "0.1 % is under 2 sigma of the noise, 0.4 %" in found[1].found
    assert "build.py" in found[2].found


def test_a_plan_with_nothing_against_it_gets_no_advice(three_lanes: CampaignRepo, open_folder: Path) -> None:
    assert advise(three_lanes.freeze(open_folder / "round")) == ()


def test_unknown_noise_is_said_and_not_taken_for_none(three_lanes: CampaignRepo, open_folder: Path) -> None:
    three_lanes.edit_campaign(lambda plan: plan["test_plan"].update(noise=None))
    (row,) = advise(three_lanes.freeze(open_folder / "round"))
    assert (row.topic, row.lanes) == ("no-result", ())
    assert "noise is not known" in row.found


def prepare(repo: CampaignRepo, *words: str | Path, expect: int = 0) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "roundkit", "prepare", "--campaign", repo.campaign_file, *words]
    done = subprocess.run([*map(str, argv)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == expect, done.stdout + done.stderr
    return done


def test_the_command_prints_nothing_but_the_draft(three_lanes: CampaignRepo, open_folder: Path) -> None:
    drafted = prepare(three_lanes, "--propose", "2")
    assert "left out: E-L3: there is room for 2 lanes" in drafted.stderr
    assert "\nnext: look through the draft" in drafted.stderr
    assert drafted.stdout.startswith("# Drafted by `roundkit prepare --campaign campaign.yaml --propose 2`")
    assert len(load_yaml(drafted.stdout.encode(), place="draft")["lanes"]) == 2
    clash = prepare(three_lanes, "--propose", "2", "--out", open_folder / "round", expect=2)
    assert "--propose" in clash.stderr
    assert "--propose" in prepare(three_lanes, expect=2).stderr
    assert not (open_folder / "round").exists()


def test_the_command_names_what_it_left_out_beside_the_draft(three_lanes: CampaignRepo) -> None:
    def rows(plan: Any) -> None:
        plan["search_plan"][0].update(conditional_headroom=0.001)
        plan["search_plan"][2].update(target_stage="l2")

    three_lanes.edit_campaign(rows)
    drafted = prepare(three_lanes, "--propose", "1")
    noise = "under 2 sigma of the noise, 0.4 % (sigma 0.2 % a trial, by `reported`)"
    said = drafted.stderr.splitlines()
    assert f"left out: E-L1: its headroom of 0.1 % is {noise}" in said
    assert "left out: E-L3: it attacks the same stage as E-L2, whose headroom is no smaller" in said
    assert not any("of 1 lanes" in line for line in said)
    assert "1 of 2 lanes: no more entries" in prepare(three_lanes, "--propose", "2").stderr
    draft = three_lanes.campaign_file.with_name("round.yaml")
    assert f"--round {draft} --out ../r01" in drafted.stderr


def test_the_command_prints_advice_and_cost_before_it_freezes(
    three_lanes: CampaignRepo, open_folder: Path
) -> None:
    three_lanes.edit_campaign(
        lambda plan: [entry.update(target_stage="parsing") for entry in plan["search_plan"]]
    )
    printed = prepare(three_lanes, "--round", three_lanes.round_file, "--out", open_folder / "round").stdout
    order = [printed.index(words) for words in ("same-stage", "at most 12 tickets", "frozen at", "digest ")]
    assert order == sorted(order)


def test_advice_names_files_of_the_branch_that_the_incumbent_has_otherwise(
    three_lanes: CampaignRepo, open_folder: Path
) -> None:
    plan = three_lanes.freeze(open_folder / "round")
    assert advice_on(plan) == ()
    three_lanes.commit({"evidence/knobs/rounds/r00/index.json": "{}", "campaign.yaml": "# edited"})
    assert advice_on(plan) == ()  # what a campaign leaves beside itself is no part of the program
    newer = three_lanes.commit({"bench/model.json": "{}", "README.md": "new"})
    three_lanes.repository.git("tag", "main", plan.incumbent)  # a branch is no tag of its name
    (advice,) = advice_on(plan)
    assert (advice.topic, advice.lanes) == ("incumbent", ())
    assert f"'README.md', 'bench/model.json' than {plan.incumbent[:12]}" in advice.found
    assert f"incumbent_revision to {newer}" in advice.suggestion
    # The incumbent of a round whose branch nobody has merged is ahead of the branch, and nothing is newer.
    three_lanes.repository.git("branch", "--force", "roundkit/r00", newer)
    three_lanes.repository.git("reset", "--hard", "--quiet", plan.incumbent)
    ahead = plan.model_copy(update={"incumbent": newer})
    assert advice_on(ahead) == ()
