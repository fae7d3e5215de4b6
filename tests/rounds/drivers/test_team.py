"""A SwarmFlow round with a stub of the engine: its workers are agents like any other."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from support.agent_rounds import STUB, TEMPLATE, AgentRound
from support.agent_stubs import Script, seen, stub_folder
from support.killing import plain_repo, run_to_end
from support.stub_engine import stub_engine
from support.synthetic import knob

from roundkit.agents.swarmflow.engine import EngineOrder, EngineOutcome, Perform, WorkerCall, run_engine
from roundkit.agents.swarmflow.reports import WorkerReport
from roundkit.core.clock import Deadline
from roundkit.rounds.drive import Driven, drive_lanes
from roundkit.rounds.locks import hold_lock
from roundkit.rounds.prepare_runtime import find_runtime
from roundkit.rounds.template_files import checked_campaign, template


def team(root: Path, script: Script, **lane: Any) -> AgentRound:
    """Launch a round whose lanes are filled by one team."""
    tools = stub_folder(root, script)
    repo = plain_repo(root, list(script))
    agent = {**STUB, "executable": str(tools / "command"), "readable": [str(tools)], "command": TEMPLATE}
    repo.edit_round(
        lambda draft: [entry.update(harness="swarmflow", agent=agent, **lane) for entry in draft["lanes"]]
    )
    folder, _ = repo.launched(root / "round")
    return AgentRound(root, repo, folder, tools)


def drive(made: AgentRound, engine: Path) -> tuple[Driven, list[str]]:
    lines: list[str] = []
    with hold_lock(made.folder.serve_lock, code="serve-running", what="serve"):
        return drive_lanes(made.folder, with_serve=False, report=lines.append, engine=engine), lines


def submitting(lane: str) -> list[dict[str, Any]]:
    return [{"write": {f"knobs/{lane}.json": knob(0.2)}}, {"submit": True}]


TAKE_AWAY = {"python": "os.system('rm -rf .roundkit/outbox'); open('.roundkit/outbox', 'w').close()"}
LOOK = """
for place in PLACES:
    try:
        told.append([place, os.listdir(place) if os.path.isdir(place) else open(place).read()])
    except OSError as error:
        told.append([place, type(error).__name__])
"""


def test_a_worker_that_takes_its_outbox_away_does_not_hold_up_the_team(
    open_folder: Path, lease_root: Path
) -> None:
    made = team(open_folder, {"L1": [[*submitting("L1"), TAKE_AWAY]], "L2": [submitting("L2")]})
    driven, lines = drive(made, stub_engine(open_folder))
    assert (driven.refused, driven.failed) == ((), ()), lines
    assert "L1: its worker reported no ticket" in lines
    assert any(line.startswith("L2: its worker reported r01-L2-") for line in lines)


def test_d03_a_worker_of_a_team_sees_its_own_lane_alone(open_folder: Path, lease_root: Path) -> None:
    places = [
        str(open_folder / name)
        for name in ("round/lanes/L2", "round/store", "round/homes/L2", "round/launch.json", "engine")
    ]
    script = {"L1": [[{"python": LOOK.replace("PLACES", repr(places))}]], "L2": [submitting("L2")]}
    made = team(open_folder, script)
    drive(made, stub_engine(open_folder))
    told = json.loads((made.folder.homes / "L1/told-1.json").read_bytes())
    assert told == [[place, "FileNotFoundError"] for place in places]
    assert seen(made.root, "L1")["cwd"] == str(made.folder.clone("L1"))


def test_d05_r11_a_retry_by_the_engine_is_an_attempt_of_its_own(open_folder: Path, lease_root: Path) -> None:
    script = {"L1": [[{"hang": True}], submitting("L1")]}
    made = team(open_folder, script, attempts=3, attempt_worst_case={"wall_s": 4})
    driven, lines = drive(made, stub_engine(open_folder))
    assert driven.failed == (), lines
    assert [record.phase for record in made.book("L1")] == ["claimed", "settled"]


@pytest.mark.parametrize(
    "before",
    [
        "raise SystemExit(3)",
        "raise ValueError('no')",
        'import os; [os.write(fd, b\'{"call": "x", "lane": []}\\n[[[\\n\\xff\\n{"cancel": null}\\n\') '
        "for fd in range(3, 10) if os.path.exists('/proc/self/fd/%d' % fd)]; raise SystemExit",
        "import os; os.kill(os.getpid(), 9)",
    ],
)
def test_an_engine_that_breaks_fails_its_lanes_and_claims_nothing(
    open_folder: Path, lease_root: Path, before: str
) -> None:
    made = team(open_folder, {"L1": [submitting("L1")]})
    driven, lines = drive(made, stub_engine(open_folder, before=before))
    assert driven.failed == ("L1",), lines
    assert any(line.startswith("the engine: ") for line in lines)
    assert made.book("L1") == ()


def ordered(root: Path, lanes: list[str], perform: Perform, **manifest: Any) -> EngineOutcome:
    """Run the stub of the engine for lanes without a round; return what came of it."""
    limits = checked_campaign(template("campaign.yaml"), "the template").limits
    runtime, _ = find_runtime("auto", "test")
    assert runtime is not None
    work = root / "work"
    work.mkdir()
    (work / "script.py").touch()
    filled = [{"id": lane, "harness": "swarmflow"} for lane in lanes]
    order = EngineOrder(
        folder=stub_engine(root),
        python=runtime.python,
        readable=tuple(map(Path, runtime.readable)),
        work=work,
        args=json.dumps({"lanes": filled, **manifest}),
        run_id="alone",
        workers=len(lanes),
    )
    return run_engine(order, perform, deadline=Deadline.after(120), limits=limits)


def test_every_worker_of_a_large_team_is_started_at_once(open_folder: Path) -> None:
    lanes = [f"L{number}" for number in range(1, 41)]
    together = threading.Barrier(len(lanes))

    def perform(call: WorkerCall) -> WorkerReport:
        together.wait(timeout=30)
        return WorkerReport(lane=call.lane, tickets=(), notes="")

    outcome = ordered(open_folder, lanes, perform)
    assert (outcome.error, [row["lane"] for row in outcome.result["reports"]]) == (None, lanes)


def test_a_manifest_that_no_pipe_holds_reaches_the_engine(open_folder: Path) -> None:
    outcomes: list[EngineOutcome] = []

    def perform(call: WorkerCall) -> WorkerReport:
        return WorkerReport(lane=call.lane, tickets=(), notes="")

    def run() -> None:
        outcomes.append(ordered(open_folder, ["L1"], perform, globs=["x" * 1000] * 200))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert [outcome.error for outcome in outcomes] == [None]


def test_a_team_is_launched_by_the_command_line(open_folder: Path, lease_root: Path) -> None:
    made = team(open_folder, {"L1": [submitting("L1")]})
    words = ("launch", made.folder.root, "--drive", "swarmflow", "--engine", stub_engine(open_folder))
    said = run_to_end(lease_root, *words, "--with-serve")
    assert "L1: its worker reported r01-L1-" in said
