"""What a wave is drawn from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from roundkit.core.resources import shipped
from roundkit.core.yamlfile import plain, read_yaml
from roundkit.models.lane_agent import Authorization
from roundkit.models.wave_plan import Band, LeverSet, WaveDraft
from roundkit.models.wave_records import Target, Wave
from roundkit.rules.wave_draw import (
    Known,
    Standing,
    answer_problem,
    choose,
    next_tag,
    no_draw,
    rotation,
    wave_micro_usd,
    worst_wave_micro_usd,
)

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
ALL = Band(id="all")


def plan(**changes: Any) -> WaveDraft:
    _, content = read_yaml(shipped("templates") / "wave-plan.yaml")
    return WaveDraft.model_validate(plain(content)).model_copy(update=changes)


def target(name: str, group: str = "a", **more: Any) -> Target:
    values = {
        "group": group,
        "name": name,
        "size": 10,
        "input": f"{group}/{name}",
        "output": f"{group}/{name}.c",
    }
    return Target.model_validate({**values, **more})


def wave(tag: str, band: str, lever: str, names: str = "") -> Wave:
    return Wave(
        format="roundkit-wave/1", plan_sha256="0" * 64, tag=tag, drawn_utc=NOW, band=band, lever_set=lever,
        targets=tuple(target(name) for name in names), missing_inputs=0, left_out={}, retried=0,
    )  # fmt: skip


def test_what_is_banked_in_a_wave_excluded_or_missing_is_left_out_and_counted() -> None:
    answer = [target(name) for name in "abcde"] + [target("x", "out"), target("y", size=99), target("z")]
    known = Known(
        banked={("a", "a")}, gating={("a", "b")}, drafting={("a", "c")}, drawn={("a", "d"), ("a", "a")},
        missing={("a", "e")},
    )  # fmt: skip
    choice = choose(plan(excluded_groups=("out",)), Band(id="small", under=50), answer, known)
    assert [one.name for one in choice.targets] == ["d", "z"]
    assert choice.left_out == {"banked": 1, "drafting": 1, "excluded-group": 1, "gating": 1, "other-band": 1}
    assert (choice.missing, choice.retried) == (1, 1)


def test_siblings_collapse_to_one_exemplar_unless_switched_off() -> None:
    answer = [
        target("a", family="f"),
        target("b", family="f"),
        target("c", family="g"),
        target("d"),
        target("e"),
    ]
    known = Known(families={"g"})
    choice = choose(plan(), ALL, answer, known)
    assert [one.name for one in choice.targets] == ["a", "d", "e"]
    assert choice.left_out == {"sibling": 2}
    everything = choose(plan(one_per_family=False), ALL, answer, known)
    assert len(everything.targets) == 5


def test_a_sibling_whose_exemplar_has_no_input_takes_its_place() -> None:
    answer = [target("a", family="f"), target("b", family="f")]
    choice = choose(plan(), ALL, answer, Known(missing={("a", "a")}))
    assert [one.name for one in choice.targets] == ["b"]
    assert choice.missing == 1


def test_a_wave_has_its_size_and_its_groups() -> None:
    answer = [target(f"f{number}", f"g{number % 4}") for number in range(12)]
    choice = choose(plan(targets=4, most_groups=2), ALL, answer, Known())
    assert [one.group for one in choice.targets] == ["g0", "g1", "g0", "g1"]
    assert choice.left_out == {"group-limit": 2, "wave-full": 6}


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ([target("a"), target("a", output="other.c")], "a/a"),
        ([target("a"), target("b", output="a/a.c")], "a/a.c"),
        ([target("a", output="../a.c")], "output of a/a"),
        ([target("a", input="/etc/passwd")], "input of a/a"),
        ([target("a", output=".git/config")], "output of a/a"),
    ],
)
def test_an_answer_that_cannot_be_a_wave(answer: list[Target], says: str) -> None:
    assert says in (answer_problem(answer) or "")


def test_homonyms_of_two_groups_are_two_targets() -> None:
    assert answer_problem([target("f", "a"), target("f", "b")]) is None


def test_the_rotation_comes_from_the_waves_and_visits_every_pair() -> None:
    levers = (LeverSet(id="plain"), LeverSet(id="tells"))
    bands = tuple(Band(id=name) for name in ("b0", "b1", "b2", "b3"))
    two = plan(lever_sets=levers, bands=bands)
    waves: list[Wave] = []
    for number in range(8):
        band, lever = rotation(two, waves)[0]
        waves.append(wave(f"{number + 1:04d}", band.id, lever.id))
    pairs = [(one.band, one.lever_set) for one in waves]
    assert len(set(pairs)) == 8
    # Neighbours differ in both, and a lever set has its turn every second wave.
    assert all(one[1] != other[1] for one, other in pairwise(pairs))
    assert all(one[0] != other[0] for one, other in pairwise(pairs[:4]))
    assert [lever for _, lever in pairs].count("tells") == 4
    again = rotation(two, waves)[0]
    assert (again[0].id, again[1].id) == pairs[0]


def test_tags_count_on_from_what_is_there() -> None:
    assert next_tag([]) == "0001"
    assert next_tag(["0001", "0009"]) == "0010"
    assert next_tag(["9999"]) == "10000"


def test_w10_why_nothing_is_drawn() -> None:
    def reason(draft: WaveDraft = plan(), **standing: Any) -> str | None:  # noqa: B008
        return no_draw(
            draft, Standing(**{"drawn": 3, "waiting": 0, "credit_usd": None, "now": NOW, **standing})
        )

    assert reason() is None
    assert reason(credit_usd=2.0) is None
    assert reason(credit_usd=1.99) == "credit"
    assert reason(stop=True) == "stop"
    assert reason(waiting=1) is None
    assert reason(waiting=2) == "queue"
    assert reason(plan(waves=3)) == "waves"
    assert reason(plan(waves=4)) is None
    assert reason(plan(deadline_utc=NOW)) == "deadline"
    assert reason(plan(deadline_utc=NOW + timedelta(seconds=1))) is None


def test_an_authorization_bounds_what_waves_may_cost_at_worst() -> None:
    lever = LeverSet(id="tells", micro_usd=400_000)
    costly = plan(lever_sets=(LeverSet(id="plain"), lever), targets=10)
    assert worst_wave_micro_usd(costly) == 4_000_000
    assert wave_micro_usd(costly, wave("0001", "small", "plain", "abc")) == 450_000
    assert wave_micro_usd(costly, wave("0001", "small", "tells", "abc")) == 1_200_000
    allowed = Authorization(by="Ada", micro_usd=5_000_000, until_utc=NOW + timedelta(hours=1), models=("m",))
    bounded = costly.model_copy(update={"authorization": allowed})
    standing = Standing(drawn=1, waiting=0, credit_usd=None, now=NOW, committed_micro_usd=1_000_000)
    assert no_draw(bounded, standing) is None
    assert no_draw(bounded, Standing(1, 0, None, NOW, committed_micro_usd=1_000_001)) == "authorization"
    assert no_draw(bounded, Standing(1, 0, None, NOW + timedelta(hours=1))) == "authorization"
