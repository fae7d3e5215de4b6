"""D05 with the real engine: rendered scripts load, lanes are filled by it, and its retries are charged."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from clis.install import DEFAULT
from support import swarm_fixtures
from support.killing import plain_repo
from support.synthetic import knob

from roundkit.agents.lane_boundary import LaneFacts, bound_lane, lane_grant
from roundkit.agents.swarmflow.lint import lint_script
from roundkit.agents.swarmflow.reports import Reports, sort_reports
from roundkit.core.clock import Deadline, now_utc
from roundkit.core.errors import Refused
from roundkit.models.attempts import Cost
from roundkit.models.round_plan import FrozenLane
from roundkit.rounds import attempts
from roundkit.rounds.drive import drive_lanes
from roundkit.rounds.drive_swarmflow import WorkerEnd, drive_swarmflow
from roundkit.rounds.locks import hold_lock
from roundkit.rounds.swarmflow import SwarmRound, hand_over, render_round, swarm_round
from roundkit.rules.attempts import remaining_s

pytestmark = [pytest.mark.clis, pytest.mark.usefixtures("engine")]

ENGINE = DEFAULT / "engine"
AGENT = "/bin/sh"
SCRIPTED = {"harness": "swarmflow", "agent": {"provenance": "scripted"}}


@dataclass
class Team:
    """A launched SwarmFlow round whose workers are shell scripts in the lanes' own boundaries.

    Attributes:
        scripts: What the next attempts of each lane run, one after the other; the last one again and again.
    """

    swarm: SwarmRound
    scripts: dict[str, list[str]]
    said: list[str] = field(default_factory=list)
    started: list[str] = field(default_factory=list)

    def drive(self) -> Reports:
        script = render_round(self.swarm)
        return drive_swarmflow(self.swarm, script, engine=ENGINE, worker=self.work, report=self.said.append)

    def work(self, lane: FrozenLane) -> WorkerEnd:
        folder = self.swarm.folder
        binding = attempts.claim_next(folder, lane.id, "team")
        self.started.append(lane.id)
        scripts = self.scripts[lane.id]
        script = scripts[min(binding.ordinal, len(scripts)) - 1]
        facts = LaneFacts(
            clone=folder.clone(lane.id),
            home=folder.root / f"home-{lane.id}",
            hidden=(folder.store,),
            environment={"PATH": "/usr/bin:/bin"},
        )
        done = bound_lane(
            [AGENT, "-ec", script],
            lane_grant(facts),
            deadline=Deadline.after(remaining_s(lane, now_utc())),
            limits=self.swarm.plan.campaign.limits,
        )
        if (done.end_reason, done.exit_code) != ("exited", 0):
            return WorkerEnd(f"ended: {done.end_reason}")
        attempts.settle(folder, binding, Cost(wall_s=1))
        return WorkerEnd()

    def phases(self, lane: str) -> list[str]:
        return [record.phase for record in attempts.read_account(self.swarm.folder, lane).records]


def submitting(lane: str, value: float) -> str:
    return f"echo '{knob(value)}' > knobs/{lane}.json; .roundkit/round submit"


@pytest.fixture
def swarm(open_folder: Path) -> Callable[..., SwarmRound]:
    """Make a launched SwarmFlow round."""

    def make(*lanes: str, **keys: Any) -> SwarmRound:
        repo = plain_repo(open_folder, lanes)
        given = {
            "harness": "swarmflow",
            "attempts": 3,
            "attempt_worst_case": {"wall_s": 120},
            **SCRIPTED,
            **keys,
        }
        repo.edit_round(lambda draft: [entry.update(given) for entry in draft["lanes"]])
        folder, _ = repo.launched(open_folder / "round")
        return swarm_round(folder)

    return make


def by_fixtures(swarm: SwarmRound, script: str, lanes: dict[str, float]) -> Any:
    """Run a script by the engine's own mock backend, in a process of its own."""
    file = swarm.folder.root / "by-hand.py"
    file.write_text(script)
    places = map(str, (swarm_fixtures.__file__, ENGINE, file, swarm.folder.launch_file))
    argv = [sys.executable, *places, json.dumps(lanes)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_d05_a_rendered_script_loads_in_strict_mode_and_its_fixtures_perform_lanes(
    swarm: Callable[..., SwarmRound],
) -> None:
    made = swarm("L1", "L2")
    told = by_fixtures(made, render_round(made), {"L1": 0.3, "L2": 0.2})
    reports = sort_reports(told["result"], ["L1", "L2"])
    assert (sorted(reports.by_lane), reports.missing, reports.strange) == (["L1", "L2"], (), ())
    assert all(row.tickets[0].startswith(f"r01-{lane}-") for lane, row in reports.by_lane.items())


def test_d05_a_lane_whose_fixture_is_missing_is_reported(swarm: Callable[..., SwarmRound]) -> None:
    """The engine's mock invents a report for it, which names no lane of the plan."""
    made = swarm("L1", "L2")
    told = by_fixtures(made, render_round(made), {"L1": 0.3})
    assert len(told["result"]["reports"]) == 2
    reports = sort_reports(told["result"], ["L1", "L2"])
    assert (list(reports.by_lane), reports.missing) == (["L1"], ("L2",))
    assert len(reports.strange) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import json\n", "import json, time\nSTARTED = time.monotonic()\n"),
        ("import json\n", "import json\nimport random\nCOIN = random.random()\n"),
        ("[lambda lane=lane: fill(lane, clones) for", "[lambda: agent(lane['prompt']) for"),
    ],
)
def test_d05_what_the_engine_refuses_the_lint_catches_before(
    swarm: Callable[..., SwarmRound], old: str, new: str
) -> None:
    made = swarm("L1")
    broken = render_round(made).replace(old, new, 1)
    assert lint_script(broken)
    assert "LintError" in by_fixtures(made, broken, {"L1": 0.1})["refused"]


def test_d05_meta_that_the_engine_cannot_read_the_lint_catches_before(
    swarm: Callable[..., SwarmRound],
) -> None:
    made = swarm("L1")
    broken = render_round(made).replace("'phases': ['lanes']", "'workflow_token_limit': 2 * 10**6", 1)
    assert lint_script(broken)
    assert "MetaError" in by_fixtures(made, broken, {"L1": 0.1})["refused"]


def test_d05_r11_a_worker_that_times_out_is_tried_again_as_a_new_attempt(
    swarm: Callable[..., SwarmRound],
) -> None:
    team = Team(
        swarm("L1", "L2", budget={"wall_s": 20}, attempt_worst_case={"wall_s": 8}),
        {
            "L1": [f"{submitting('L1', 0.1)}; sleep 600", submitting("L1", 0.3)],
            "L2": [submitting("L2", 0.2)],
        },
    )
    reports = team.drive()
    assert (sorted(reports.by_lane), reports.missing) == (["L1", "L2"], ()), team.said
    assert len(reports.by_lane["L1"].tickets) == 2
    assert team.phases("L1") == ["claimed", "settled"]
    assert team.phases("L2") == ["settled"]
    assert attempts.read_account(team.swarm.folder, "L1").charged.wall_s == 16


def test_d05_r12_a_retry_without_room_is_refused_and_the_lane_reported(
    swarm: Callable[..., SwarmRound],
) -> None:
    team = Team(
        swarm("L1", "L2", budget={"wall_s": 30}, attempt_worst_case={"wall_s": 20}),
        {"L1": ["exit 3"], "L2": [submitting("L2", 0.2)]},
    )
    reports = team.drive()
    assert (list(reports.by_lane), reports.missing) == (["L2"], ("L1",))
    assert team.started.count("L1") == 1
    assert "L1: no report of its worker" in team.said


def test_d05_every_call_of_the_engine_is_one_attempt(swarm: Callable[..., SwarmRound]) -> None:
    team = Team(swarm("L1"), {"L1": ["exit 3"]})
    assert team.drive().missing == ("L1",)
    assert team.phases("L1") == ["claimed"] * 3


def test_d05_a_replay_from_the_journal_starts_nobody_again(swarm: Callable[..., SwarmRound]) -> None:
    team = Team(
        swarm("L1", "L2", attempts=2),
        {"L1": [submitting("L1", 0.3)], "L2": ["exit 3", "exit 3", submitting("L2", 0.2)]},
    )
    first = team.drive()
    assert (list(first.by_lane), first.missing) == (["L1"], ("L2",))
    team.started.clear()
    again = team.drive()
    assert again.by_lane == first.by_lane
    assert "L1" not in team.started
    assert team.phases("L1") == ["settled"]


def test_d05_the_engine_sees_nothing_of_the_round(swarm: Callable[..., SwarmRound]) -> None:
    made = swarm("L1")
    team = Team(made, {"L1": [submitting("L1", 0.3)]})
    places = [str(made.folder.store), str(made.folder.clone("L1")), str(made.folder.plan_file)]
    looking = render_round(made).replace(
        "    phase(",
        f"    import os\n    if any(map(os.path.exists, {places!r})):\n        raise ValueError\n    phase(",
        1,
    )
    drive_swarmflow(made, looking, engine=ENGINE, worker=team.work, report=team.said.append)
    journal = (made.work / "journal").iterdir()
    assert {path.suffix for path in journal} <= {".jsonl", ".wal"}
    assert team.said[-1].startswith("L1: its worker reported r01-L1-")
    assert team.phases("L1") == ["settled"]


def test_d05_a_script_that_somebody_else_runs_is_charged_at_its_tries(
    swarm: Callable[..., SwarmRound],
) -> None:
    made = swarm("L1", "L2", attempts=1, budget={"wall_s": 360, "tokens": 900}, attempt_worst_case={
        "wall_s": 120, "tokens": 300,
    })  # fmt: skip
    claimed = hand_over(made, made.folder.root / "script.py")
    assert [(binding.lane, binding.tries) for binding in claimed] == [("L1", 3), ("L2", 3)]
    for lane in ("L1", "L2"):
        charged = attempts.read_account(made.folder, lane).charged
        assert (charged.wall_s, charged.tokens) == (360, 900)
        assert [record.phase for record in attempts.read_account(made.folder, lane).records] == ["claimed"]
    told = by_fixtures(made, (made.folder.root / "script.py").read_text(), {"L1": 0.3, "L2": 0.2})
    assert sort_reports(told["result"], ["L1", "L2"]).missing == ()
    with pytest.raises(Refused, match="out-exists"):
        hand_over(made, made.folder.root / "script.py")
    with pytest.raises(Refused, match="attempts-exhausted"):
        hand_over(made, made.folder.root / "another.py")


def test_d05_a_script_whose_tries_do_not_fit_the_budget_is_not_handed_over(
    swarm: Callable[..., SwarmRound],
) -> None:
    made = swarm("L1", budget={"wall_s": 359}, attempt_worst_case={"wall_s": 120})
    with pytest.raises(Refused, match="budget-exhausted"):
        hand_over(made, made.folder.root / "script.py")
    assert not (made.folder.root / "script.py").exists()
    assert attempts.read_account(made.folder, "L1").records == ()


def test_d05_launch_fills_the_lanes_by_the_engine(open_folder: Path) -> None:
    """The whole way: the plan's own command for each worker, in each lane's own boundary."""
    repo = plain_repo(open_folder, ("L1", "L2"))

    def edit(draft: Any) -> None:
        for entry in draft["lanes"]:
            lane = entry["id"]
            words = f"cat > .roundkit/scratch/prompt; {submitting(lane, 0.3)}"
            command = {"program": "env", "argv": ["sh", "-ec", words], "version": None}
            agent = {"provenance": "scripted", "command": command}
            entry.update(harness="swarmflow", attempts=3, attempt_worst_case={"wall_s": 60}, agent=agent)

    repo.edit_round(edit)
    folder, _ = repo.launched(open_folder / "round")
    said: list[str] = []
    with hold_lock(folder.serve_lock, code="serve-running", what="serve"):
        driven = drive_lanes(folder, with_serve=False, report=said.append, engine=ENGINE)
    assert (driven.refused, driven.failed) == ((), ()), said
    for lane in ("L1", "L2"):
        [record] = attempts.read_account(folder, lane).records
        assert (record.phase, record.provenance) == ("settled", "scripted")
        assert any(line.startswith(f"{lane}: its worker reported r01-{lane}-") for line in said)
        assert "# Lane" in (folder.clone(lane) / ".roundkit" / "scratch" / "prompt").read_text()


def test_d05_without_the_engine_nothing_is_started(open_folder: Path) -> None:
    repo = plain_repo(open_folder, ("L1",))
    repo.edit_round(lambda draft: draft["lanes"][0].update(harness="swarmflow"))
    folder, _ = repo.launched(open_folder / "round")
    said: list[str] = []
    with hold_lock(folder.serve_lock, code="serve-running", what="serve"):
        driven = drive_lanes(folder, with_serve=False, report=said.append, engine=open_folder)
    assert driven.refused == ("L1",)
    assert "engine-missing" in said[0]
    assert attempts.read_account(folder, "L1").records == ()
