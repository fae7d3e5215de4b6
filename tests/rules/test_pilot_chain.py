"""The chain of attempts: whatever is taken out, put in or made anew in the middle of it shows."""

from __future__ import annotations

import pytest

from roundkit.rules.pilot_chain import Link, chain_of, head_line, head_problems, head_sentence


def link(name: str, previous: str | None, record: str | None = "") -> Link:
    return Link(name, True, previous, name.upper() if record == "" else record)


WHOLE = [link("a", None), link("b", "A"), link("c", "B")]


def places(links: list[Link]) -> list[str]:
    return [problem.where for problem in chain_of(links).problems]


@pytest.mark.parametrize("links", [WHOLE, WHOLE[::-1], [WHOLE[1], WHOLE[2], WHOLE[0]]])
def test_p02_a_whole_chain_has_an_order_and_a_head_wherever_its_folders_lie(links: list[Link]) -> None:
    chain = chain_of(links)
    assert (chain.order, chain.head, chain.problems) == (("a", "b", "c"), "C", ())


def test_p02_nothing_and_one_that_runs_are_whole() -> None:
    assert (chain_of([]).head, chain_of([]).problems) == (None, ())
    running = chain_of([*WHOLE, link("d", "C", record=None)])
    assert (running.order[-1], running.head, running.problems) == ("d", None, ())


def test_p02_whatever_breaks_it_is_named() -> None:
    assert places(WHOLE[1:]) == ["b"]
    assert places([*WHOLE[1:], link("d", "C")]) == ["b"]
    assert places([WHOLE[0], WHOLE[2]]) == ["c"]
    assert places([*WHOLE, link("d", "B")]) == ["c", "d"]
    assert places([*WHOLE, link("d", None)]) == ["a", "d"]
    assert places([WHOLE[0], link("b", "A", record="X"), WHOLE[2]]) == ["c"]
    assert places([*WHOLE, Link("d", False, None, None)]) == ["d"]
    assert places([link("a", "B"), link("b", "A")]) == ["a", "b"]
    assert places([*WHOLE[:2], link("b2", "A", record="B")]) == ["b", "b2"]


def test_p02_a_head_that_was_posted_is_the_last_or_an_earlier_one() -> None:
    chain = chain_of(WHOLE)
    assert head_problems(chain, "C") == head_problems(chain, "A") == []
    assert head_sentence(chain, "C") == "the posted head C is the last one of 3"
    assert head_sentence(chain, "A") == "the posted head A is the one 2 before the last of 3"
    anew = chain_of([*WHOLE[:2], link("c", "B", record="C2")])
    assert anew.problems == ()
    assert [problem.where for problem in head_problems(anew, "C")] == ["chain"]


def test_p02_where_there_is_no_head_it_is_said_why() -> None:
    assert head_line(chain_of(WHOLE), "run") == "head C"
    assert head_line(chain_of([]), "run") == "head: none, no run was started"
    running = chain_of([*WHOLE, link("d", "C", record=None)])
    assert head_line(running, "attempt") == "head: none, the last attempt has no record yet"
    assert head_line(chain_of(WHOLE[1:]), "run") == "head: none, the chain is broken"
