"""The pure decisions of a wave's gate: batches, attempts, collapses, what waits and what is closed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundkit.models.wave_calls import PrefilterAnswer, PrefilterResult
from roundkit.models.wave_records import Draft, Target
from roundkit.rules.wave_batches import NOT_NAMED, Answer, Batch, Outcome, batches
from roundkit.rules.wave_collapse import has_collapsed, line_count
from roundkit.rules.wave_pick import best, counts, in_order, judged, shared_outputs, without_repeats
from roundkit.rules.wave_steps import STEPS, next_step

DIGEST = "0" * 63


def run(names: Sequence[str], chunk: int | None, gate: Callable[[Batch], Answer]) -> Outcome:
    asking = batches(names, chunk)
    try:
        batch = next(asking)
        while True:
            batch = asking.send(gate(batch))
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome


def all_or_nothing(bad: set[str]) -> Callable[[Batch], Answer]:
    """A gate that builds a batch as a whole, and says nothing of its parts."""

    def gate(batch: Batch) -> Answer:
        assert not bad.intersection(batch.settled)
        return Answer() if bad.intersection(batch.names) else Answer(frozenset(batch.names))

    return gate


@pytest.mark.parametrize(
    ("count", "chunk", "bad", "calls"),
    [
        (8, 8, set(), 1),
        (8, 8, {"n3"}, 7),
        (32, 8, {"n9"}, 10),
        (32, 32, {"n9"}, 11),
        (32, 8, set(), 4),
        (1, 8, {"n0"}, 1),
        (8, 1, {"n3"}, 8),
    ],
)
def test_w01_one_bad_draft_costs_two_calls_a_halving(
    count: int, chunk: int, bad: set[str], calls: int
) -> None:
    names = [f"n{number}" for number in range(count)]
    outcome = run(names, chunk, all_or_nothing(bad))
    assert outcome.calls == calls
    assert set(outcome.banked) == set(names) - bad
    assert outcome.rejected == dict.fromkeys(bad, NOT_NAMED)


@given(
    bad=st.sets(st.integers(0, 40)),
    crashing=st.sets(st.integers(0, 40)),
    count=st.integers(0, 40),
    chunk=st.none() | st.integers(1, 9),
)
def test_w01_every_draft_is_decided_once_whatever_fails(
    bad: set[int], crashing: set[int], count: int, chunk: int | None
) -> None:
    names = [str(number) for number in range(count)]

    def gate(batch: Batch) -> Answer:
        asked = {int(name) for name in batch.names}
        if asked & crashing:
            return Answer(failure="it crashed")
        if chunk is not None and asked & bad:
            return Answer()
        return Answer(frozenset(batch.names) | {"never asked"}, {str(number): "wrong" for number in bad})

    outcome = run(names, chunk, gate)
    assert sorted([*outcome.banked, *outcome.rejected, *outcome.failed]) == sorted(names)
    assert set(outcome.failed) == {str(number) for number in crashing if number < count}
    assert set(outcome.rejected) == {str(number) for number in bad - crashing if number < count}


def test_w01_a_cheap_group_is_one_call_and_its_answer_decides_all() -> None:
    outcome = run(["a", "b", "c"], None, lambda _: Answer(frozenset({"a", "c"}), {"c": "no", "x": "?"}))
    assert outcome == Outcome(("a",), {"c": "no", "b": NOT_NAMED}, {}, 1)


@pytest.mark.parametrize(
    ("head", "now", "collapsed"),
    [
        (b"a\n" * 10, b"a\n" * 8, False),
        (b"a\n" * 10, b"a\n" * 7, True),
        (b"a\n" * 10, b"", True),
        (b"a\n" * 10, None, True),
        (b"a\n" * 10, b"a\n" * 7 + b"a", False),
        (b"", b"", False),
        (b"one", None, True),
    ],
)
def test_w08_a_file_collapses_under_its_share_of_lines(
    head: bytes, now: bytes | None, collapsed: bool
) -> None:
    assert has_collapsed(head, now, 0.8) is collapsed
    assert line_count(b"a\nb") == 2


def draft(name: str, digit: str, attempt: int = 1, shard: int = 0) -> Draft:
    return Draft(
        group="g", name=name, shard=shard, attempt=attempt, path=f"{attempt}/{shard}/{name}",
        sha256=DIGEST + digit,
    )  # fmt: skip


def test_w01_scores_decide_and_ties_keep_the_first() -> None:
    attempts = in_order([draft("f", "2", 2), draft("f", "1", 1, 7), draft("f", "0", 1, 3)])
    assert [each.sha256[-1] for each in attempts] == ["0", "1", "2"]
    assert best(attempts, None) is attempts[0]
    assert best(attempts, {}) is attempts[0]
    assert best(attempts, {DIGEST + "1": 2.0, DIGEST + "2": 2.0}) is attempts[1]
    assert best(attempts, {DIGEST + "0": 3.0, DIGEST + "2": 2.5}) is attempts[2]
    assert without_repeats([*attempts, draft("f", "0", 9)]) == attempts


def test_w01_only_one_clear_agreement_passes() -> None:
    asked = [draft(name, "0") for name in ("agreed", "twice", "torn", "unnamed")]

    def said(name: str, status: str, digit: str = "0") -> PrefilterResult:
        return PrefilterResult.model_validate(
            {"group": "g", "name": name, "sha256": DIGEST + digit, "status": status}
        )

    answer = PrefilterAnswer(
        results=(
            said("agreed", "agree"), said("twice", "agree"), said("twice", "agree"), said("torn", "agree"),
            said("torn", "mismatch"), said("unnamed", "agree", "1"), said("stranger", "agree"),
        )
    )  # fmt: skip
    results = judged(asked, answer, "")
    assert [result.status for result in results] == ["agree", "agree", "error", "error"]
    assert counts(judged(asked, None, "it crashed")) == {"error": 4}


def test_w08_targets_that_share_an_output_are_named() -> None:
    rows = [("a", "f", "x"), ("b", "f", "x"), ("b", "g", "y"), ("b", "g", "y")]
    targets = [
        Target(group=group, name=name, size=1, input="i", output=output) for group, name, output in rows
    ]
    assert shared_outputs(targets) == {("a", "f"): "x", ("b", "f"): "x"}


def test_w02_the_next_step_is_the_first_without_a_record() -> None:
    assert next_step([]) == "owners"
    assert next_step(["owners", "pick"]) == "prefilter"
    assert next_step(STEPS) is None
