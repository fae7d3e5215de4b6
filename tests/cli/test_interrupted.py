"""Ctrl-C ends every command with a sentence, and leaves neither processes nor anything half-written."""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path

import pytest
from support.agent_rounds import agent_round
from support.checkouts import METRIC, PYTHON, Bench, argv
from support.cluster import free_port
from support.killing import wait_for
from support.pilots import MEND, small
from support.synthetic import CampaignRepo, commit_all, knob, scripted_lane
from support.terminals import Terminal

from roundkit.core.git import Repository
from roundkit.host.lease import acquire_set, holders

EVIDENCE = Path(__file__).resolve().parents[2] / "evidence"
ROUND = str(EVIDENCE / "code-search/rounds/r01")
POLICY = str(EVIDENCE / "knobs/pilots/p-versus-s")
BENCHMARK = ("--benchmark", f"{PYTHON} bench.py", *METRIC)
STOPPED = "nothing was kept, no command runs any more and every core is free"
AGAIN = "interrupted: nothing half-written is left; run it again"


@pytest.fixture
def bench(open_folder: Path) -> Bench:
    """A repository ``mine`` with a program and a benchmark."""
    made = Bench(open_folder)
    repository = Repository(made.add("mine"))
    repository.git("init", "-q", "-b", "main")
    commit_all(repository, ["."], "A program")
    return made


def started(bench: Bench, *words: str | Path) -> Terminal:
    return Terminal(argv(*words), cwd=bench.root, environment=bench.environment())


@pytest.mark.parametrize(
    ("words", "shown", "said"),
    [
        (("init", "mine", *BENCHMARK, "--validator", "true"), "trials", STOPPED),
        (("measure", "mine@HEAD", "mine", *BENCHMARK, "--json", "out.json"), "trials", STOPPED),
        (("noise", "mine", *BENCHMARK, "--json", "out.json"), "trials", STOPPED),
        (("report", ROUND, "--out", "out.html"), "cells", AGAIN),
        (("notebook", "audit_evidence", "-p", f"evidence={ROUND}", "--out", "out.ipynb"), "cells", AGAIN),
        (("pilot", "simulate", "p/pilot.yaml", "--pilots", "100000", "--out", "out"), "pilots", AGAIN),
        (("pilot", "report", POLICY, "--out", "out.html"), "cells", AGAIN),
        (("doctor",), "looking at this machine", AGAIN),
    ],
)  # fmt: skip
def test_ctrl_c_leaves_a_sentence_and_nothing_else(
    bench: Bench, words: tuple[str, ...], shown: str, said: str
) -> None:
    if "simulate" in words:
        bench.run("pilot", "example", "p", expect=0)
    before = {path.relative_to(bench.root) for path in bench.root.rglob("*")}
    terminal = started(bench, *words)
    terminal.wait_for(shown)
    terminal.interrupt()
    assert terminal.end() == 1
    assert "Traceback" not in terminal.printed
    assert terminal.printed.rstrip().splitlines()[-1].startswith("roundkit: ")
    assert said in " ".join(terminal.printed.split())
    after = {path.relative_to(bench.root) for path in bench.root.rglob("*")}
    assert {path for path in after - before if path.parts[0] not in ("tmp", "leases")} == set()
    assert list(bench.temporary.glob("roundkit-*")) == []
    assert terminal.left_behind() == []


def test_ctrl_c_ends_a_watch_and_leaves_the_round_alone(three_lanes: CampaignRepo, bench: Bench) -> None:
    folder, _ = three_lanes.launched(bench.root / "round")
    terminal = started(bench, "status", folder.root, "--watch")
    terminal.wait_for("round ")
    terminal.interrupt()
    assert terminal.end() == 1
    assert "interrupted: the round goes on as it was" in terminal.printed


def test_ctrl_c_drains_serve_and_says_how_to_go_on(three_lanes: CampaignRepo, bench: Bench) -> None:
    folder, _ = three_lanes.launched(bench.root / "round")
    ticket = scripted_lane(folder.clone("L1"), {"knobs/L1.json": knob(0.5)})["ticket"]
    terminal = started(bench, "serve", folder.root)
    terminal.wait_for("measuring")
    terminal.interrupt()
    assert terminal.end() == 0
    assert "draining: the running trials end" in terminal.printed
    assert "what waits stays queued; the same command goes on with it" in terminal.printed
    assert "paused" not in terminal.printed
    assert terminal.left_behind() == []
    ran = bench.run("serve", folder.root, "--until-idle", expect=0)
    assert f"{ticket} pass" in ran.out


@pytest.mark.slow
def test_ctrl_c_leaves_a_replayed_round_that_goes_on(bench: Bench) -> None:
    repository = Repository(bench.root / "mine")
    (bench.root / "mine/prog.py").write_text((bench.root / "mine/prog.py").read_text() + "# faster\n")
    commit_all(repository, ["prog.py"], "Faster")
    words = ("replay", "HEAD~1..HEAD", "--repository", "mine", "--out", "out", *BENCHMARK, "--pairs", "6")
    terminal = started(bench, *words)
    terminal.wait_for("measuring")
    terminal.interrupt()
    assert terminal.end() == 1
    said = " ".join(terminal.printed.split())
    assert "stopped by hand; the round stays at " in said
    assert terminal.left_behind() == []
    bench.run("serve", "out/round", "--until-idle", expect=0)
    bench.run("close", "out/round", expect=0)


def test_ctrl_c_leaves_no_half_of_a_round_that_is_prepared(three_lanes: CampaignRepo, bench: Bench) -> None:
    plans = ("--campaign", three_lanes.campaign_file, "--round", three_lanes.round_file)
    terminal = started(bench, "prepare", *plans, "--out", "out")
    terminal.wait_for("steps")
    terminal.interrupt()
    assert terminal.end() == 1
    assert AGAIN in " ".join(terminal.printed.split())
    assert terminal.left_behind() == []
    assert not [path.name for path in bench.root.iterdir() if "out" in path.name]
    bench.run("prepare", *plans, "--out", "out", expect=0)


def test_ctrl_c_ends_a_replay_of_a_pilot_that_can_be_had_again(bench: Bench) -> None:
    folder, _ = small(bench.root, MEND).freeze()
    bench.run("pilot", "run", folder.root, expect=0)
    terminal = started(bench, "pilot", "replay", folder.root)
    terminal.wait_for("tuples")
    terminal.interrupt()
    assert terminal.end() == 1
    assert AGAIN in " ".join(terminal.printed.split())
    assert terminal.left_behind() == []
    assert bench.run("pilot", "replay", folder.root, expect=0).out.count("agrees") == 2


@pytest.mark.slow
def test_ctrl_c_stops_a_close_that_goes_on_where_it_was(three_lanes: CampaignRepo, bench: Bench) -> None:
    folder, _ = three_lanes.launched(bench.root / "round")
    scripted_lane(folder.clone("L1"), {"knobs/L1.json": knob(0.5)})
    bench.run("serve", "round", "--until-idle", expect=0)
    terminal = started(bench, "close", "round")
    terminal.wait_for("trials")
    terminal.interrupt()
    assert terminal.end() == 1
    said = " ".join(terminal.printed.split())
    assert "nothing is lost: `roundkit close ROUND_DIR` goes on where it was" in said
    assert terminal.left_behind() == []
    assert holders(bench.leases) == []
    assert "git merge roundkit/r01" in bench.run("close", "round", expect=0).out


def test_ctrl_c_ends_agents_and_their_serve_and_a_launch_goes_on(open_folder: Path) -> None:
    bench = Bench(open_folder)
    steps = [[{"touch": "here"}, {"hang": True}], [{"touch": "again"}]]
    made = agent_round(open_folder, {"L1": "command"}, {"L1": steps}, lane={"attempts": 2})
    words = ("launch", "round", "--drive", "command", "--with-serve")
    terminal = started(bench, *words)
    wait_for((made.folder.clone("L1") / ".roundkit/scratch/here").exists, "the agent")
    terminal.interrupt()
    assert terminal.end() == 1
    said = " ".join(terminal.printed.split())
    assert "L1 ended: killed" in said
    assert said.endswith("with the lanes that have attempts left, and with what waits")
    assert terminal.left_behind() == []
    assert holders(bench.leases) == []
    assert "attempt 2 started" in bench.run(*words, expect=0).out


def test_ctrl_c_again_and_again_leaves_no_serve_of_a_launch(open_folder: Path) -> None:
    bench = Bench(open_folder)
    steps = [[{"touch": "here"}, {"hang": True}]]
    made = agent_round(open_folder, {"L1": "command"}, {"L1": steps})
    terminal = started(bench, "launch", "round", "--drive", "command", "--with-serve")
    wait_for((made.folder.clone("L1") / ".roundkit/scratch/here").exists, "the agent")
    while terminal.process.poll() is None:
        terminal.interrupt()
        with contextlib.suppress(subprocess.TimeoutExpired):
            terminal.process.wait(0.05)
    assert terminal.end() == 1
    assert "Traceback" not in terminal.printed
    wait_for(lambda: not terminal.left_behind(), "the end of its serve and of its agent")
    assert holders(bench.leases) == []


@pytest.mark.slow
def test_ctrl_c_ends_the_wait_for_what_agents_submitted(open_folder: Path) -> None:
    bench = Bench(open_folder)
    steps = [[{"write": {"knobs/L1.json": knob(0.2)}}, {"submit": True}]]
    agent_round(open_folder, {"L1": "command"}, {"L1": steps})
    words = ("launch", "round", "--drive", "command", "--with-serve")
    bench.leases.mkdir()
    # Somebody else has the core, so that nothing is measured before Ctrl-C.
    other = acquire_set(["cpu:0"], root=bench.leases, purpose="the test")
    assert other is not None
    terminal = started(bench, *words)
    terminal.wait_for("L1 ended: exited")
    terminal.interrupt()
    assert terminal.end() == 1
    other.release()
    assert "serve ended (drained); of the round's tickets 0 have a verdict" in terminal.printed
    assert "interrupted: no agent runs any more" in " ".join(terminal.printed.split())
    assert terminal.left_behind() == []
    assert holders(bench.leases) == []
    assert "tickets 1 have a verdict, 0 are rejected" in bench.run(*words, expect=0).printed


def test_ctrl_c_ends_a_worker_whose_scheduler_is_not_there(bench: Bench) -> None:
    sets = {
        "format": "roundkit-device-sets/1",
        "device_sets": [{"id": "a", "platform": "cpu", "devices": ["0"]}],
    }
    (bench.root / "sets.yaml").write_text(json.dumps(sets))
    address = f"tcp://127.0.0.1:{free_port()}"
    words = ("--scheduler", address, "--device-sets", "sets.yaml", "--home", "home")
    terminal = started(bench, "worker", *words)
    terminal.wait_for("tried again and again")
    terminal.interrupt()
    assert terminal.end() == 0
    assert terminal.printed.rstrip().endswith("stopping: nothing is being measured")
    assert terminal.left_behind() == []
    assert holders(bench.leases) == []
