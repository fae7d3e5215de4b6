"""Where there is nothing yet, a command says so in a sentence: no empty table, no None, no traceback."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.checkouts import Bench, argv
from support.synthetic import CampaignRepo, knob, scripted_lane
from support.terminals import Terminal

NO_LEDGER = "no evidence, no round and no exported frames at "


@pytest.fixture
def bench(three_lanes: CampaignRepo, open_folder: Path) -> Bench:
    """A launched round ``round`` in which nothing happened yet, and an empty folder ``empty``."""
    made = Bench(open_folder)
    three_lanes.launched(open_folder / "round")
    (open_folder / "empty").mkdir()
    return made


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("status", "round"), 0, "round r01: no ticket yet\nserve: not running\nqueue: open\n"),
        (
            ("status", "empty"),
            3,
            "empty: there is no frozen round\n    → name a folder that `roundkit prepare`",
        ),
        (("status", "empty/../none"), 3, "/none: there is no such folder\n"),
        (("status", "round", "none"), 3, "the round has no ticket 'none'"),
        (("close", "empty"), 3, "empty: there is no frozen round"),
        (("prune", "round"), 3, "round r01 is not closed"),
        (("audit", "empty"), 1, "empty: 1 check FAILED"),
        (("export", "program", "--out", "frames"), 3, NO_LEDGER + "program"),
        (("export", "empty", "--out", "frames"), 3, NO_LEDGER + "empty"),
        (("export", "round", "--out", "frames"), 0, "frames/rounds.parquet\nframes/lanes.parquet\n"),
        (("leases",), 0, "no device is leased\n"),
        (("pilot", "status", "empty"), 3, "empty holds no frozen pilot"),
    ],
)
def test_a_command_without_anything_to_show_says_so(
    bench: Bench, words: tuple[str, ...], code: int, said: str
) -> None:
    ran = bench.run(*words, expect=code)
    assert said in ran.printed
    assert "None" not in ran.printed
    assert bool(ran.out) == (code != 3)


def test_a_round_without_tickets_closes_and_says_what_is_known_of_its_lanes(bench: Bench) -> None:
    ran = bench.run("close", "round", expect=0)
    assert ran.out.count("nothing was submitted") == 3
    assert "the incumbent stays" in ran.out
    assert "closed already" not in ran.out
    shown = bench.run("status", "round", expect=0).out
    assert shown.startswith("round r01: no ticket\n")
    assert "queue: closed" in shown
    assert re.search(r"^round r01 closed at 20\S+Z: the incumbent stays$", shown, re.MULTILINE)
    assert re.search(r"^evidence /\S+/rounds/r01, index [0-9a-f]{64}$", shown, re.MULTILINE)
    assert "\n  roundkit prune round\n" in shown
    closing = json.loads(bench.run("status", "round", "--json", expect=0).out)["closing"]
    assert (closing["finished"], closing["new_incumbent"]) == (True, None)
    assert closing["index"] in shown
    again = bench.run("close", "round", expect=0).out
    assert again.startswith(
        f"round r01 is closed already, and nothing is measured: closed at {closing['closed_utc']}"
    )
    assert "round r01 was closed at" in bench.run("serve", "round", expect=3).printed


def test_a_person_is_asked_before_a_round_ends_that_nobody_handed_anything_over_in(bench: Bench) -> None:
    terminal = Terminal(argv("close", "round"), cwd=bench.root, environment=bench.environment())
    terminal.wait_for(r"Nothing was ever handed over.*End the\s+round\?")
    terminal.type("n\n")
    assert terminal.end() == 1
    assert "Traceback" not in terminal.printed
    shown = bench.run("status", "round", expect=0).out
    assert "queue: open\n" in shown
    scripted_lane(bench.root / "round/lanes/L1", {"knobs/L1.json": knob(0.3)})
    terminal = Terminal(argv("close", "round"), cwd=bench.root, environment=bench.environment())
    assert terminal.end() == 3
    assert "[tickets-waiting]" in terminal.printed


def test_a_person_who_asks_for_it_is_not_asked(bench: Bench) -> None:
    terminal = Terminal(argv("close", "round", "--yes"), cwd=bench.root, environment=bench.environment())
    assert terminal.end() == 0
    assert "End the" not in terminal.printed
    assert "queue: closed" in bench.run("status", "round", expect=0).out


def test_a_pilot_before_its_first_run_says_so(bench: Bench) -> None:
    bench.run("pilot", "example", "files", expect=0)
    bench.run("pilot", "prepare", "files/pilot.yaml", "--out", "pilot", expect=0)
    ran = bench.run("pilot", "status", "pilot", expect=0)
    assert "0 of 10 runs started\nnext: S.1\nhead: none, no run was started\n" in ran.out
    ran = bench.run("pilot", "audit", "pilot", expect=1)
    assert "nothing is decided yet; none was" in ran.out
    assert "None" not in ran.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("report", "round", "--out", "out.html"), "Nothing is decided: no ticket yet"),
        (
            ("notebook", "explore_ledger", "-p", "places=round", "--out", "out.html"),
            "Gains: nothing to show.",
        ),
    ],
)
def test_a_report_of_a_round_without_tickets_says_so(bench: Bench, words: tuple[str, ...], said: str) -> None:
    bench.run(*words, expect=0)
    assert said in (bench.root / "out.html").read_text()
