"""Freezing a policy pilot: every refusal with its place, and a plan that nobody edits."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from roundkit.cli.app import app
from roundkit.core.errors import Refused
from roundkit.pilots.policy.folder import open_policy
from roundkit.pilots.policy.run import run_policy

from .conftest import SmallPilot

Edit = Callable[[Any], object]


def _budget(**caps: int) -> Edit:
    return lambda draft: draft["total_budget"].update({"wall_s": None, **caps})


def _lane(number: int, **changes: Any) -> Edit:
    return lambda draft: draft["lanes"][number].update(changes)


REFUSALS: dict[str, tuple[str, Edit, str, str]] = {
    "two lanes reach one file": (
        "round.yaml", _lane(1, globs=["knobs/L1.json"]), "scope-overlap", "round.yaml: lanes"),
    "two lanes alone": ("round.yaml", lambda d: d["lanes"].__delitem__(slice(2, 4)), "too-few-lanes",
                        "round.yaml: lanes"),
    "two repetitions": ("pilot.yaml", lambda d: d.update(repetitions=2), "too-few-repetitions",
                        "pilot.yaml: repetitions"),
    "a hundred million repetitions": ("pilot.yaml", lambda d: d.update(repetitions=100_000_000),
                                      "too-many-repetitions", "pilot.yaml: repetitions"),
    "a round without an end": ("pilot.yaml", lambda d: d.update(round_s=1e300), "wrong-value",
                               "pilot.yaml: round_s"),
    "one lane a round of P": ("pilot.yaml", lambda d: d.update(lanes_per_round=1), "lanes-per-round",
                              "pilot.yaml: lanes_per_round"),
    "more lanes a round than there are": ("pilot.yaml", lambda d: d.update(lanes_per_round=9),
                                          "lanes-per-round", "pilot.yaml: lanes_per_round"),
    "two models": ("round.yaml", _lane(2, model="another"), "agent-differs", "round.yaml: lanes[2].model"),
    "two harnesses": ("round.yaml", _lane(2, harness="none"), "agent-differs",
                      "round.yaml: lanes[2].harness"),
    "agents that no run starts": (
        "round.yaml", lambda d: [lane.update(harness="swarmflow") for lane in d["lanes"]], "lane-by-hand",
        "round.yaml: lanes[0].harness"),
    "a deadline of one lane": ("round.yaml", _lane(0, deadline_utc="2029-01-01T00:00:00Z"), "lane-deadline",
                               "round.yaml: lanes[0].deadline_utc"),
    "a budget that caps nothing": ("pilot.yaml", _budget(), "budget-uncapped", "pilot.yaml: total_budget"),
    "a budget of what no lane states": ("pilot.yaml", _budget(tokens=9), "budget-uncapped",
                                        "round.yaml: lanes[0].attempt_worst_case"),
    "a budget under one attempt each": ("pilot.yaml", _budget(wall_s=479), "budget-too-small",
                                        "pilot.yaml: total_budget.wall_s"),
    "a campaign of another name": ("pilot.yaml", lambda d: d.update(campaign_id="other"), "other-campaign",
                                   "pilot.yaml: campaign_id"),
    "an unknown key": ("pilot.yaml", lambda d: d.update(fractoin=0.5), "unknown-key",
                       "pilot.yaml: fractoin"),
    "a fraction over one": ("pilot.yaml", lambda d: d.update(fraction=1.5), "wrong-value",
                            "pilot.yaml: fraction"),
    "a path above the file": ("pilot.yaml", lambda d: d.update(campaign="../campaign.yaml"), "wrong-value",
                              "pilot.yaml: campaign"),
    "a glob on a protected path": ("round.yaml", _lane(0, globs=["bench/model.json"]), "protected-path",
                                   "round.yaml: lanes[0]"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_p11_what_no_comparison_can_start_from_is_refused_with_its_place(
    small_pilot: SmallPilot, case: str
) -> None:
    file, edit, code, place = REFUSALS[case]
    small_pilot.edit(file, edit)
    with pytest.raises(Refused) as refused:
        small_pilot.prepare()
    found = [refusal for refusal in refused.value.refusals if refusal.code == code]
    assert found, str(refused.value)
    assert found[0].place.startswith(place)
    assert found[0].remedy
    assert not small_pilot.folder.exists()


DIFFERENCES: dict[str, tuple[Edit, str]] = {
    "model": (_lane(1, model="another"), "lanes[1].model"),
    "budget": (_lane(0, budget={"wall_s": 999}), "lanes[0].budget"),
    "globs": (_lane(3, globs=["knobs/L4.json", "knobs/L5.json"], creates=True), "lanes[3].globs"),
    "gates": (lambda draft: draft.update(gates={"min_gain": 0.02}), "gates"),
    "devices": (lambda draft: draft["device_sets"].pop(), "device_sets"),
    "composition": (lambda d: d["composition"].update(fallback="keep-incumbent"), "composition"),
    "number of lanes": (lambda draft: draft["lanes"].pop(), "lanes"),
}


@pytest.mark.parametrize("case", DIFFERENCES)
def test_p11_arms_that_differ_are_refused(small_pilot: SmallPilot, case: str) -> None:
    edit, place = DIFFERENCES[case]
    shutil.copy(small_pilot.root / "round.yaml", small_pilot.root / "serial.yaml")
    small_pilot.edit("pilot.yaml", lambda draft: draft["rounds"].update(S="serial.yaml"))
    small_pilot.edit("serial.yaml", edit)
    with pytest.raises(Refused) as refused:
        small_pilot.prepare()
    places = [refusal.place for refusal in refused.value.refusals if refusal.code == "arms-differ"]
    assert any(found.startswith(f"serial.yaml: {place}") for found in places), str(refused.value)


def test_p11_two_files_that_say_the_same_are_one(small_pilot: SmallPilot) -> None:
    shutil.copy(small_pilot.root / "round.yaml", small_pilot.root / "serial.yaml")
    small_pilot.edit("pilot.yaml", lambda draft: draft["rounds"].update(S="serial.yaml"))
    small_pilot.edit("serial.yaml", lambda draft: draft.update(round_id="another"))
    assert small_pilot.prepare().provenance == "scripted"


def test_p11_every_problem_is_told_at_once(small_pilot: SmallPilot) -> None:
    small_pilot.edit("pilot.yaml", lambda draft: draft.update(repetitions=1, lanes_per_round=1))
    small_pilot.edit("round.yaml", _lane(1, globs=["knobs/L1.json"]))
    with pytest.raises(Refused) as refused:
        small_pilot.prepare()
    codes = {refusal.code for refusal in refused.value.refusals}
    assert {"too-few-repetitions", "lanes-per-round", "scope-overlap"} <= codes


def test_p11_the_same_files_freeze_to_the_same_order(small_pilot: SmallPilot) -> None:
    plan = small_pilot.prepare()
    assert open_policy(small_pilot.folder).plan == plan
    assert plan.lanes_of("P") == 4
    assert plan.lanes_of("S") == 1


def test_p11_the_command_says_how_often_equal_arms_are_called_faster(small_pilot: SmallPilot) -> None:
    words = ["pilot", "prepare", str(small_pilot.pilot_file), "--out", str(small_pilot.folder)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "at most 12.5% of pilots" in done.output
    assert f"digest {open_policy(small_pilot.folder).plan.digest()}" in done.output


@pytest.mark.parametrize("name", ["plan.json", "campaign.yaml"])
def test_p11_an_edited_plan_is_refused(small_pilot: SmallPilot, name: str) -> None:
    small_pilot.prepare()
    path: Path = small_pilot.folder / name
    path.write_bytes(path.read_bytes().replace(b"knobs", b"knocks"))
    with pytest.raises(Refused, match="plan-changed"):
        run_policy(small_pilot.folder, report=print)


def test_p11_without_authority_a_pilot_of_a_model_is_blocked(small_pilot: SmallPilot) -> None:
    small_pilot.edit(
        "round.yaml", lambda d: [lane["agent"].update(provenance="model") for lane in d["lanes"]]
    )
    small_pilot.prepare()
    with pytest.raises(Refused, match=r"not-authorized.*blocked"):
        run_policy(small_pilot.folder, report=print)
    assert not any((small_pilot.folder / "runs").iterdir())


@pytest.mark.parametrize(
    "words",
    [
        ("intervene", "{}", "P.1", "--kind", "clarification"),
        ("review", "packet", "{}", "--all"),
        ("review", "start", "{}", "P.1", "--reviewer", "r"),
        ("replay", "{}"),
    ],
)
def test_p11_what_is_for_trials_says_so_of_a_policy_pilot(words: tuple[str, ...]) -> None:
    folder = Path(__file__).resolve().parents[2] / "evidence/knobs/pilots/p-versus-s"
    said = CliRunner().invoke(app, ["pilot", *(word.format(folder) for word in words)])
    assert isinstance(said.exception, Refused)
    [refusal] = said.exception.refusals
    assert (refusal.code, "kind policy" in refusal.message) == ("other-kind", True)
    assert "paired pilot" in refusal.remedy
    assert "pilot audit" in refusal.remedy
