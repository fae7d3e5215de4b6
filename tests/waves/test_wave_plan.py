"""The template's defaults, and what freezing refuses."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from support.wave_campaigns import target, wave_campaign

from roundkit.core.errors import Refused
from roundkit.core.resources import shipped
from roundkit.core.yamlfile import plain, read_yaml
from roundkit.models.wave_plan import WaveDraft
from roundkit.waves.freeze import check_tools, freeze


def codes(refused: pytest.ExceptionInfo[Refused]) -> list[str]:
    return [refusal.code for refusal in refused.value.refusals]


def test_the_template_has_the_defaults_of_the_campaign_that_they_come_from() -> None:
    _, content = read_yaml(shipped("templates") / "wave-plan.yaml")
    plan = WaveDraft.model_validate(plain(content))
    workers, draft = plan.workers, plan.draft
    assert (workers.start, workers.most, workers.step, workers.sustained_minutes) == (24, 64, 8, 3)
    assert (workers.least_gain, workers.stalls) == (0.10, 2)
    assert (plan.targets, plan.queue_depth, plan.credit_floor_usd) == (220, 2, 2.00)
    assert (draft.turn_tokens, draft.turns, draft.micro_usd) == (8000, 24, 150_000)
    assert (draft.tail, draft.grace_s, draft.ramp_s, draft.most_ramp_s) == (0.80, 120, 240, 0.5)
    assert (plan.commit.least_lines, plan.gate.jobs) == (0.8, 10)


def test_w11_a_folder_takes_one_campaign(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder, [target("f")])
    first = campaign.folder
    assert freeze(campaign.plan_file, campaign.directory).plan_sha256 == first.plan_sha256
    campaign.write_plan(campaign_id="other")
    with pytest.raises(Refused) as refused:
        freeze(campaign.plan_file, campaign.directory)
    assert codes(refused) == ["plan-changed"]
    assert "campaign_id" in str(refused.value)
    campaign.write_plan(campaign_id="test")
    (open_folder / "tools" / "draw.py").write_text("changed")
    with pytest.raises(Refused) as refused:
        freeze(campaign.plan_file, campaign.directory)
    assert codes(refused) == ["plan-changed"]
    check_tools(first)
    (first.tools / "draw.py").write_text("changed")
    with pytest.raises(Refused) as refused:
        check_tools(first)
    assert codes(refused) == ["tools-changed"]


def test_w11_a_folder_with_something_else_in_it_is_no_place_for_a_campaign(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder, [target("f")])
    campaign.directory.mkdir()
    (campaign.directory / "notes").write_text("mine")
    with pytest.raises(Refused) as refused:
        freeze(campaign.plan_file, campaign.directory)
    assert codes(refused) == ["folder-in-use"]
    assert sorted(path.name for path in campaign.directory.iterdir()) == ["notes"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"tree": "tools"}, "tree-missing"),
        ({"tools": "nowhere"}, "tools-missing"),
        ({"tools": "."}, "folder-inside"),
        ({"provision": ["/nowhere"]}, "readable-missing"),
        ({"bands": []}, "wrong-value"),
        ({"bands": [{"id": "a"}, {"id": "a"}]}, "wrong-value"),
        ({"bands": [{"id": "a", "at_least": 5, "under": 5}]}, "wrong-value"),
        ({"waves": 2**53}, "wrong-value"),
        ({"commit": {"paths": ["src/**", "scr/**"]}}, "glob-matches-nothing"),
        ({"commit": {"watched": ["src/README", "src/READNE"]}}, "glob-matches-nothing"),
        ({"commit": {"others": ["another/"]}}, "glob-matches-nothing"),
        ({"draft": {"argv": ["agent", "a\0b"]}}, "wrong-value"),
        ({"draft": {"agent": {"provenance": "model"}}}, "not-authorized"),
        ({"draft": {"agent": {"provenance": "stub", "hosts": ["api.example.org"]}}}, "not-authorized"),
        ({"draft": {"agent": {"provenance": "stub", "effort": "high"}}}, "unused-key"),
    ],
)
def test_a_plan_that_cannot_hold_is_refused(open_folder: Path, changes: dict[str, Any], code: str) -> None:
    campaign = wave_campaign(open_folder, [target("f")])
    campaign.write_plan(**changes)
    with pytest.raises(Refused) as refused:
        freeze(campaign.plan_file, campaign.directory)
    assert code in codes(refused)
    assert not campaign.directory.exists()


def test_tools_that_cannot_be_copied_whole_are_refused(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder, [target("f")])
    os.mkfifo(open_folder / "tools" / "pipe")
    with pytest.raises(Refused) as refused:
        freeze(campaign.plan_file, campaign.directory)
    assert codes(refused) == ["tools-special"]
    assert not campaign.directory.exists()


def test_an_agent_may_not_read_what_holds_the_tree_or_the_campaign(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder, [target("f")])
    (open_folder / "key").write_text("secret")
    credential = {"source": str(open_folder / "tree" / "targets.json"), "at": "key"}
    for agent in ({"readable": [str(open_folder)]}, {"credentials": [credential]}):
        campaign.write_plan(draft={"agent": {"provenance": "stub", **agent}})
        with pytest.raises(Refused) as refused:
            freeze(campaign.plan_file, campaign.directory)
        assert codes(refused) == ["readable-exposes"]


def test_two_authorized_models_are_all_that_may_be_used(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder, [target("f")])
    campaign.write_plan(
        draft={"agent": {"provenance": "model"}},
        pools=[{"id": "a", "model": "m1", "share": 1}, {"id": "b", "model": "m2", "share": 1}],
        authorization={
            "by": "Ada", "micro_usd": 10, "until_utc": "2100-01-01T00:00:00Z", "models": ["m1"],
        },
    )  # fmt: skip
    with pytest.raises(Refused) as refused:
        freeze(campaign.plan_file, campaign.directory)
    assert codes(refused) == ["not-authorized"]
    assert "'m2'" in str(refused.value)
