"""Attempts: a lane's budget and deadline hold whatever is killed, retried, restarted or started twice."""

from __future__ import annotations

import json
import multiprocessing
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from support.processes import ended_with_test
from support.synthetic import CampaignRepo, knob, scripted_lane

from roundkit.agents.replay_room import RoomFailed
from roundkit.audit import audit_round
from roundkit.core.clock import format_utc
from roundkit.core.errors import Refused
from roundkit.models.attempts import AttemptBinding, AttemptRecord, Cost
from roundkit.models.round_plan import LaneBudget
from roundkit.rounds import attempts, control
from roundkit.rounds.close import close
from roundkit.rounds.drive_replay import replay_lane
from roundkit.rounds.intake import take_in
from roundkit.rounds.launch import launch
from roundkit.rounds.layout import RoundFolder, read_plan
from roundkit.rules.identity import attempt_plan_digest
from roundkit.store import open_store
from roundkit.store.schema import MIGRATIONS

from .conftest import intake_of

NOW = datetime.now(UTC)
FROZEN = NOW - timedelta(hours=3)
EXPIRES = NOW - timedelta(hours=1)
BEFORE = EXPIRES - timedelta(minutes=1)
"""A round frozen three hours ago whose lanes ended an hour ago: the real clock is past the deadline."""

RESERVE = """
from roundkit.rounds import attempts
attempts.reserve(folder, attempts.propose(folder, lane, "restarted"))
"""
CLAIM = """
from roundkit.rounds import attempts
attempts.claim(folder, attempts.read_account(folder, lane).records[0].binding)
"""
AGENT = """
import json, subprocess
from roundkit.rounds import attempts
binding = attempts.propose(folder, lane, "agent")
attempts.reserve(folder, binding)
attempts.claim(folder, binding)
clone = folder.clone(lane)
(clone / "knobs/L1.json").write_text(json.dumps({"value": 0.1, "mode": None}))
subprocess.run([sys.executable, clone / ".roundkit/round", "submit"], cwd=clone, check=True)
sys.stdin.read()
"""

Lanes = Callable[..., RoundFolder]


@pytest.fixture
def lanes(three_lanes: CampaignRepo, open_folder: Path, lease_root: Path) -> Lanes:
    """Launch the round after changing its first lane; ``expired`` puts every lane's deadline in the past."""

    def make(*, expired: bool = False, **first: Any) -> RoundFolder:
        three_lanes.edit_round(lambda draft: draft["lanes"][0].update(first))
        if expired:
            for number in range(3):
                three_lanes.edit_round(
                    lambda draft, number=number: draft["lanes"][number].update(  # type: ignore[misc]
                        deadline_utc=format_utc(EXPIRES)
                    )
                )
        folder = RoundFolder(open_folder / "round")
        three_lanes.freeze(folder.root, now=FROZEN)
        launch(folder, now=FROZEN)
        return folder

    return make


def start(folder: RoundFolder, lane: str, script: str) -> subprocess.Popen[bytes]:
    """Run a script in a process of its own, as a coordinator that was started anew."""
    head = (
        "import sys\nfrom pathlib import Path\nfrom roundkit.core.errors import Refused\n"
        "from roundkit.rounds.layout import RoundFolder\n"
        "sys.excepthook = lambda kind, error, trace: print(error, file=sys.stderr)\n"
        "folder, lane = RoundFolder(Path(sys.argv[1])), sys.argv[2]\n"
    )
    return ended_with_test(subprocess.Popen(
        [sys.executable, "-c", head + script, str(folder.root), lane],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ))  # fmt: skip


def refused(folder: RoundFolder, lane: str, script: str) -> str:
    """Run a script that is refused in a process of its own and return the refusal's code."""
    process = start(folder, lane, script)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 1, stderr.decode()
    return stderr.decode().split("]")[0].lstrip("[")


def code(call: Callable[[], object]) -> str:
    with pytest.raises(Refused) as caught:
        call()
    return caught.value.refusals[0].code


def book(folder: RoundFolder, lane: str = "L1") -> tuple[AttemptRecord, ...]:
    return attempts.read_account(folder, lane).records


def phases(folder: RoundFolder, lane: str = "L1") -> list[str]:
    return [record.phase for record in book(folder, lane)]


def claimed(folder: RoundFolder, *, now: datetime | None = None, run: str = "run") -> AttemptBinding:
    binding = attempts.propose(folder, "L1", run)
    attempts.reserve(folder, binding, now=now)
    return attempts.claim(folder, binding, now=now).binding


def commit_of_l1(repo: CampaignRepo, value: float = 0.4) -> str:
    """Make a commit for the first lane to replay, and leave the repository as it was."""
    commit = repo.commit({"knobs/L1.json": knob(value)})
    repo.repository.git("reset", "--quiet", "--hard", repo.incumbent)
    return commit


def test_r11_a_claimed_attempt_times_out_after_a_submit_and_stays_charged(lanes: Lanes) -> None:
    folder = lanes(attempts=3, budget={"micro_usd": 250}, attempt_worst_case={"micro_usd": 100})
    agent = start(folder, "L1", AGENT)
    assert agent.stdout is not None
    first = json.loads(agent.stdout.readline())["ticket"]
    agent.kill()
    agent.wait()
    [lost] = book(folder)
    assert lost.phase == "claimed"
    assert lost.actual is None
    assert code(lambda: attempts.cancel(folder, lost.binding)) == "already-claimed"
    assert code(lambda: attempts.claim(folder, lost.binding)) == "already-claimed"

    retry = claimed(folder, run="retry")
    assert (retry.ordinal, retry.run_id) == (2, "retry/2")
    assert retry.plan_digest != lost.binding.plan_digest
    second = scripted_lane(folder.clone("L1"), {"knobs/L1.json": knob(0.2)})["ticket"]
    assert second != first
    attempts.settle(folder, retry, Cost(turns=3, tokens=50, micro_usd=30, wall_s=9))
    account = attempts.read_account(folder, "L1")
    assert account.charged.micro_usd == 200
    assert account.spent.micro_usd is None
    with open_store(folder.database) as store:
        assert [ticket.ticket for ticket in take_in(intake_of(folder), store)] == [first, second]
    assert code(lambda: claimed(folder, run="third")) == "budget-exhausted"
    assert phases(folder) == ["claimed", "settled"]


def test_r11_a_retry_is_admitted_only_with_an_attempt_left(lanes: Lanes) -> None:
    folder = lanes(attempts=1)
    claimed(folder)
    assert code(lambda: claimed(folder, run="retry")) == "attempts-exhausted"
    assert phases(folder) == ["claimed"]


def test_r11_a_replay_that_is_killed_at_its_time_limit_stays_claimed(
    lanes: Lanes, three_lanes: CampaignRepo
) -> None:
    commit = commit_of_l1(three_lanes)
    folder = lanes(harness="replay", replay=[commit], attempts=2, attempt_worst_case={"wall_s": 0})
    plan, lines = read_plan(folder), []
    for _ in range(2):
        with pytest.raises(RoomFailed, match="was ended: deadline"):
            replay_lane(folder, plan, plan.lane("L1"), report=lines.append)
    assert phases(folder) == ["claimed", "claimed"]
    replay_lane(folder, plan, plan.lane("L1"), report=lines.append)
    assert lines == ["L1: already driven (attempts: claimed, claimed)"]


@pytest.mark.parametrize("dimension", LaneBudget.model_fields)
def test_r12_an_exhausted_budget_refuses_a_reserve_before_any_claim(lanes: Lanes, dimension: str) -> None:
    folder = lanes(attempts=9, budget={dimension: 199}, attempt_worst_case={dimension: 100})
    binding = claimed(folder)
    attempts.settle(folder, binding, Cost(turns=0, tokens=0, micro_usd=0, wall_s=0))
    before = book(folder)
    assert code(lambda: claimed(folder, run="more")) == "budget-exhausted"
    assert refused(folder, "L1", RESERVE) == "budget-exhausted"
    assert book(folder) == before


def test_r12_a_cancelled_attempt_and_a_costly_one_free_no_capacity(lanes: Lanes) -> None:
    folder = lanes(attempts=9, budget={"tokens": 400}, attempt_worst_case={"tokens": 100})
    binding = attempts.propose(folder, "L1", "idle")
    attempts.reserve(folder, binding)
    assert attempts.cancel(folder, binding).phase == "cancelled"
    assert attempts.cancel(folder, binding).phase == "cancelled"
    assert code(lambda: attempts.claim(folder, binding)) == "attempt-cancelled"
    assert attempts.read_account(folder, "L1").charged.tokens == 100
    attempts.settle(folder, claimed(folder), Cost(tokens=250))
    assert refused(folder, "L1", RESERVE) == "budget-exhausted"
    assert attempts.read_account(folder, "L1").charged.tokens == 200


def test_r13_reserved_before_expiry_and_launched_after_is_refused(lanes: Lanes) -> None:
    folder = lanes(expired=True)
    attempts.reserve(folder, attempts.propose(folder, "L1", "early"), now=BEFORE)
    assert refused(folder, "L1", CLAIM) == "lane-expired"
    assert phases(folder) == ["reserved"]


def test_r13_started_before_expiry_a_new_manifest_after_it_is_refused(lanes: Lanes) -> None:
    folder = lanes(expired=True)
    binding = claimed(folder, now=BEFORE)
    lane_file = folder.clone("L1") / ".roundkit/lane.json"
    content = json.loads(lane_file.read_bytes())
    content["deadline_utc"] = "2099-01-01T00:00:00.000000Z"
    lane_file.write_text(json.dumps(content))
    scripted_lane(folder.clone("L1"), {"knobs/L1.json": knob(0.2)})
    with open_store(folder.database) as store:
        assert [ticket.reject_cause for ticket in take_in(intake_of(folder), store)] == ["late"]
    settled = attempts.settle(folder, binding, Cost(micro_usd=5))
    assert settled.phase == "settled"


def test_r13_a_past_deadline_refuses_after_a_restart_whatever_the_budget(lanes: Lanes) -> None:
    folder = lanes(expired=True, attempts=9, budget={"tokens": 900}, attempt_worst_case={"tokens": 100})
    claimed(folder, now=BEFORE)
    assert refused(folder, "L1", RESERVE) == "lane-expired"
    assert phases(folder) == ["claimed"]


def test_r13_the_deadline_itself_is_expired(lanes: Lanes) -> None:
    folder = lanes(expired=True, attempts=2)
    binding = attempts.propose(folder, "L1", "run")
    assert code(lambda: attempts.reserve(folder, binding, now=EXPIRES)) == "lane-expired"
    just_before = EXPIRES - timedelta(microseconds=1)
    attempts.reserve(folder, binding, now=just_before)
    assert code(lambda: attempts.reserve(folder, binding, now=EXPIRES)) == "lane-expired"
    assert code(lambda: attempts.claim(folder, binding, now=EXPIRES)) == "lane-expired"
    assert attempts.claim(folder, binding, now=just_before).phase == "claimed"


def test_a_replay_whose_source_is_not_there_claims_nothing(
    lanes: Lanes, three_lanes: CampaignRepo, open_folder: Path
) -> None:
    commit, patch = commit_of_l1(three_lanes), open_folder / "late.patch"
    folder = lanes(harness="replay", replay=[str(patch)])
    plan, lines = read_plan(folder), []
    assert replay_lane(folder, plan, plan.lane("L1"), report=lines.append) == "refused"
    patch.write_text("a note, and no patch")
    assert replay_lane(folder, plan, plan.lane("L1"), report=lines.append) == "refused"
    for line, said in zip(lines, ("neither a patch file nor a commit", "is no patch: "), strict=True):
        assert line.startswith("L1 not driven: [replay-sources]")
        assert said in line
    assert phases(folder) == []
    patch.write_bytes(three_lanes.repository.git("show", commit).stdout)
    assert replay_lane(folder, plan, plan.lane("L1"), report=lines.append) == "driven"
    assert phases(folder) == ["settled"]
    assert lines[-1].startswith("L1 submitted r01-L1-")


def test_r13_a_driver_does_not_start_in_an_expired_lane(lanes: Lanes, three_lanes: CampaignRepo) -> None:
    folder = lanes(expired=True, harness="replay", replay=[commit_of_l1(three_lanes)])
    plan, lines = read_plan(folder), []
    replay_lane(folder, plan, plan.lane("L1"), report=lines.append)
    assert "[lane-expired]" in lines[0]
    assert list(folder.outbox("L1").iterdir()) == []


def _race(
    root: Path, bindings: list[AttemptBinding], at_once: Barrier, won: multiprocessing.Queue[Any]
) -> None:
    folder = RoundFolder(root)
    for binding in bindings:
        at_once.wait()
        try:
            attempts.claim(folder, binding)
            won.put(binding.ordinal)
        except Refused as error:
            won.put(error.refusals[0].code)


def test_r14_of_two_processes_that_claim_at_once_exactly_one_executes(lanes: Lanes) -> None:
    rounds = 50
    folder = lanes(attempts=rounds)
    bindings = []
    for _ in range(rounds):
        bindings.append(attempts.propose(folder, "L1", "run"))
        attempts.reserve(folder, bindings[-1])
    context = multiprocessing.get_context("spawn")
    at_once, won = context.Barrier(2), context.Queue()
    racers = [context.Process(target=_race, args=(folder.root, bindings, at_once, won)) for _ in range(2)]
    for racer in racers:
        racer.start()
    answers = [won.get(timeout=120) for _ in range(2 * rounds)]
    for racer in racers:
        racer.join(timeout=60)
    assert sorted(answer for answer in answers if isinstance(answer, int)) == list(range(1, rounds + 1))
    assert [answer for answer in answers if isinstance(answer, str)] == ["already-claimed"] * rounds
    assert set(phases(folder)) == {"claimed"}


def test_r14_of_two_runs_that_ask_for_the_last_attempt_one_gets_it(lanes: Lanes) -> None:
    folder = lanes(attempts=1)
    binding = attempts.propose(folder, "L1", "first")
    other = attempts.propose(folder, "L1", "second")
    assert attempts.reserve(folder, binding) == attempts.reserve(folder, binding)
    assert code(lambda: attempts.reserve(folder, other)) == "attempt-bound-differently"
    claimed_first = attempts.claim(folder, binding)
    assert attempts.reserve(folder, binding) == claimed_first
    assert len(book(folder)) == 1


def test_an_attempt_is_bound_to_plan_lane_and_ordinal_and_to_nothing_else(lanes: Lanes) -> None:
    folder = lanes(attempts=4, attempt_worst_case={"tokens": 100}, budget={"tokens": 400})
    digest = read_plan(folder).digest()
    binding = attempts.propose(folder, "L1", "run")
    assert binding.plan_digest == attempt_plan_digest(digest, "L1", 1)
    forged = {
        "ordinal": 2, "plan_digest": attempt_plan_digest(digest, "L1", 2), "round_digest": "0" * 64,
        "worst_case": LaneBudget(tokens=1),
    }  # fmt: skip
    for name, value in forged.items():
        odd = binding.model_copy(update={name: value})
        assert code(lambda odd=odd: attempts.reserve(folder, odd)) == "attempt-binding"  # type: ignore[misc]
    attempts.reserve(folder, binding)
    for name, value in {**forged, "run_id": "other/1"}.items():
        odd = binding.model_copy(update={name: value})
        assert code(lambda odd=odd: attempts.reserve(folder, odd)) == "attempt-bound-differently"  # type: ignore[misc]
    again = attempts.propose(folder, "L1", "run").model_copy(update={"run_id": binding.run_id})
    assert code(lambda: attempts.reserve(folder, again)) == "attempt-bound-differently"
    assert code(lambda: attempts.settle(folder, binding, Cost())) == "attempt-not-claimed"
    assert code(lambda: attempts.claim(folder, attempts.propose(folder, "L1", "run"))) == "attempt-unknown"
    assert attempts.propose(folder, "L2", "run").run_id == "run/1"
    assert phases(folder) == ["reserved"]


def test_settling_twice_is_refused_and_changes_nothing(lanes: Lanes) -> None:
    folder = lanes()
    binding = claimed(folder)
    attempts.settle(folder, binding, Cost(micro_usd=7))
    assert code(lambda: attempts.settle(folder, binding, Cost(micro_usd=1))) == "attempt-not-claimed"
    assert [record.actual for record in book(folder)] == [Cost(micro_usd=7)]


def test_nothing_starts_in_a_stopped_lane_or_in_a_closed_round(lanes: Lanes) -> None:
    folder = lanes(attempts=2)
    binding = attempts.propose(folder, "L1", "run")
    attempts.reserve(folder, binding)
    control.stop_lane(folder, "L2")
    assert code(lambda: attempts.reserve(folder, attempts.propose(folder, "L2", "run"))) == "lane-stopped"
    outcome = close(folder, report=lambda line: None)
    assert code(lambda: attempts.claim(folder, binding)) == "round-closed"
    assert code(lambda: attempts.propose(folder, "L9", "run")) == "unknown-lane"
    assert [record.phase for record in outcome.ledger.attempts] == ["reserved"]
    assert outcome.ledger.lanes[0].cost_micro_usd == 0
    assert outcome.ledger.lanes[1].cost_micro_usd is None
    assert audit_round(outcome.evidence).passed


def test_a_reservation_that_a_dead_driver_left_is_taken_up(lanes: Lanes, three_lanes: CampaignRepo) -> None:
    folder = lanes(harness="replay", replay=[commit_of_l1(three_lanes)])
    attempts.reserve(folder, attempts.propose(folder, "L1", "died"))
    plan, lines = read_plan(folder), []
    for _ in range(2):
        replay_lane(folder, plan, plan.lane("L1"), report=lines.append)
    assert lines[0].startswith("L1 submitted r01-L1-")
    assert lines[1] == "L1: already driven (attempts: settled)"
    [record] = book(folder)
    assert record.binding.run_id == "died/1"
    assert record.provenance == "replay"
    assert record.actual is not None
    assert (record.actual.micro_usd, record.actual.tokens) == (0, 0)
    assert record.actual.wall_s is not None
    assert record.actual.wall_s >= 1


def test_a_lane_is_driven_again_after_a_crash_while_it_has_attempts(
    lanes: Lanes, three_lanes: CampaignRepo
) -> None:
    folder = lanes(harness="replay", replay=[commit_of_l1(three_lanes)], attempts=2)
    claimed(folder, run="died")
    (folder.clone("L1") / "knobs/L1.json").write_text(knob(0.4))
    (folder.clone("L1") / "left over").write_text("")
    plan, lines = read_plan(folder), []
    replay_lane(folder, plan, plan.lane("L1"), report=lines.append)
    assert phases(folder) == ["claimed", "settled"]
    assert "submitted r01-L1-" in lines[0]
    assert not (folder.clone("L1") / "left over").exists()


@pytest.mark.slow
def test_launch_and_drive_run_twice_starts_no_second_agent(lanes: Lanes, three_lanes: CampaignRepo) -> None:
    folder = lanes(harness="replay", replay=[commit_of_l1(three_lanes)], attempts=2)

    def roundkit(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "roundkit", *words], capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    first = roundkit("launch", str(folder.root), "--drive", "replay", "--with-serve")
    assert "L1 submitted r01-L1-" in first
    again = roundkit("launch", str(folder.root), "--drive", "replay", "--with-serve")
    assert "L1: already driven (attempts: settled)" in again
    shown = json.loads(roundkit("status", str(folder.root), "--json"))
    assert [len(row["attempts"]) for row in shown["attempts"]] == [1, 0, 0]
    assert shown["attempts"][0]["spent"]["micro_usd"] == 0
    assert "1 of 2" in roundkit("status", str(folder.root))
    outcome = close(folder, report=lambda line: None)
    assert [lane.attempts for lane in outcome.ledger.lanes] == [1, 0, 0]
    report = audit_round(outcome.evidence)
    assert report.passed, report.failures


def _open(path: Path, at_once: Barrier) -> None:
    at_once.wait()
    open_store(path).close()


def test_two_processes_bring_a_store_of_the_first_schema_to_the_newest(tmp_path: Path) -> None:
    path = tmp_path / "round.sqlite3"
    with sqlite3.connect(path) as connection:
        connection.executescript(f"PRAGMA journal_mode = WAL;{MIGRATIONS[0]}PRAGMA user_version = 1;")
    connection.close()
    context = multiprocessing.get_context("spawn")
    at_once = context.Barrier(2)
    openers = [context.Process(target=_open, args=(path, at_once)) for _ in range(2)]
    for opener in openers:
        opener.start()
    for opener in openers:
        opener.join(timeout=60)
    assert [opener.exitcode for opener in openers] == [0, 0]
    with open_store(path, read_only=True) as store:
        assert store.attempts.all() == []
