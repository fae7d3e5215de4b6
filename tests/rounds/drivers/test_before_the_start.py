"""What keeps an agent from starting at all: no authority, a preflight that fails, a dry run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.agent_rounds import MODEL, AgentRound, agent_round
from support.agent_stubs import seen
from support.killing import run_to_end
from support.synthetic import knob

from roundkit.audit import audit_round
from roundkit.core.clock import format_utc
from roundkit.core.errors import Refused
from roundkit.models.attempts import AttemptRecord
from roundkit.rounds import attempts
from roundkit.rounds.close import close
from roundkit.rounds.drive import dry_run_lanes
from roundkit.rounds.layout import read_plan
from roundkit.rules.authority import authority_problems

from .conftest import Alone

BOTH = pytest.mark.parametrize("harness", ["claude", "codex"])
LATER = format_utc(datetime.now(UTC) + timedelta(hours=1))
STEPS = [{"write": {"knobs/L1.json": knob(0.2)}}, {"submit": True}]


def authorization(**changes: Any) -> dict[str, Any]:
    stands = {"by": "the owner", "micro_usd": 250_000, "until_utc": LATER, "models": [MODEL]}
    return {"authorization": {**stands, **changes}}


def refused(made: AgentRound, code: str, lane: str = "L1") -> str:
    """Check that driving is refused before anything is reserved, and that no agent ran; return the line."""
    driven, lines = made.drive()
    assert lane in driven.refused
    [line] = [line for line in lines if line.startswith(f"{lane} not driven: [{code}]")]
    assert not list(made.folder.homes.glob(f"{lane}/attempt-*"))
    return line


@BOTH
def test_not_authorized_a_model_starts_only_where_the_plan_says_who_pays(alone: Alone, harness: str) -> None:
    made = alone(
        harness, STEPS, agent={"provenance": "model"}, lane={"attempt_worst_case": {"micro_usd": 100}}
    )
    line = refused(made, "not-authorized")
    assert "L1 is blocked" in line
    assert made.book("L1") == ()
    assert not made.folder.homes.exists()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"models": ["another"]}, "not among the authorized"),
        ({"micro_usd": 99}, "would be taken of the 99"),
    ],
)
def test_not_authorized_by_model_or_cap(alone: Alone, changes: dict[str, Any], why: str) -> None:
    made = alone(
        "claude", STEPS, agent={"provenance": "model"}, plan=authorization(**changes),
        lane={"attempt_worst_case": {"micro_usd": 100}},
    )  # fmt: skip
    assert why in refused(made, "not-authorized")


def test_not_authorized_where_an_attempt_may_cost_any_amount(alone: Alone) -> None:
    made = alone("claude", STEPS, agent={"provenance": "model"}, plan=authorization())
    assert "any amount" in refused(made, "not-authorized")


def test_not_authorized_once_the_authorization_has_ended(alone: Alone) -> None:
    ended = format_utc(datetime.now(UTC) - timedelta(seconds=1))
    made = alone(
        "claude", STEPS, agent={"provenance": "model"}, plan=authorization(until_utc=ended),
        lane={"attempt_worst_case": {"micro_usd": 100}},
    )  # fmt: skip
    assert "by the owner ended" in refused(made, "not-authorized")


def test_not_authorized_a_stub_that_reaches_beyond_this_machine(alone: Alone) -> None:
    made = alone("claude", STEPS, agent={"hosts": ["api.example.com"]})
    assert "authorizes nobody to spend money" in refused(made, "not-authorized")
    assert made.book("L1") == ()


def test_a_stub_on_this_machine_needs_no_authority(alone: Alone) -> None:
    made = alone("claude", STEPS, agent={"hosts": ["127.0.0.1:9", "[::1]:9"]})
    made.drive()
    assert made.only("L1").provenance == "stub"


def test_the_cap_of_an_authorization_is_over_all_lanes(open_folder: Path, lease_root: Path) -> None:
    made = agent_round(
        open_folder, {"L1": "claude", "L2": "codex", "L3": "none"}, {},
        agent={"provenance": "model"}, plan=authorization(),
        lane={"attempt_worst_case": {"micro_usd": 200_000}},
    )  # fmt: skip
    made.drive("claude")
    assert made.only("L1").provenance == "model"
    assert "400000 micro-USD would be taken of the 250000" in refused(made, "not-authorized", "L2")
    outcome = close(made.folder, report=lambda line: None)
    report = audit_round(outcome.evidence)
    assert report.passed, report.failures


def test_an_audit_finds_attempts_without_authority(open_folder: Path, lease_root: Path) -> None:
    made = agent_round(
        open_folder, {"L1": "claude"}, {"L1": [STEPS]},
        agent={"provenance": "model"}, lane={"attempt_worst_case": {"micro_usd": 100}}, plan=authorization(),
    )  # fmt: skip
    made.drive()
    plan, records = read_plan(made.folder), list(made.book("L1"))
    assert authority_problems(plan, records) == []
    assert plan.authorization is not None
    smaller = plan.authorization.model_copy(update={"micro_usd": 99})
    for odd in (None, smaller):
        changed = plan.model_copy(update={"authorization": odd})
        assert len(authority_problems(changed, records)) == 1


def test_an_agent_is_killed_when_the_authorization_ends(alone: Alone) -> None:
    ends = datetime.now(UTC) + timedelta(seconds=8)
    made = alone(
        "claude", [{"hang": True}], agent={"provenance": "model"},
        plan=authorization(until_utc=format_utc(ends)),
        lane={"attempt_worst_case": {"micro_usd": 100}},
    )  # fmt: skip
    made.drive()
    record = made.only("L1")
    assert record.run is not None
    assert record.run.end_reason == "deadline"
    assert abs((record.run.ended_utc - ends).total_seconds()) < 3


@BOTH
@pytest.mark.parametrize(
    ("stub", "why"),
    [
        ({"version_exit": 3}, "the question for its version failed: exit code 3"),
        ({"version": {"claude": "", "codex": ""}}, "does not say which version"),
        ({"help": {"claude": "--model", "codex": "--model"}}, "has no --"),
    ],
)
def test_preflight_refuses_a_program_that_is_not_the_one_we_know(
    alone: Alone, harness: str, stub: dict[str, Any], why: str
) -> None:
    made = alone(harness, STEPS, stub=stub)
    assert why in refused(made, "preflight")
    assert made.book("L1") == ()


def test_preflight_refuses_a_lane_whose_wrapper_cannot_run(alone: Alone) -> None:
    made = alone("claude", STEPS)
    (made.folder.clone("L1") / ".roundkit/round").write_text("#!/no/interpreter\n")
    assert "the lane's wrapper failed" in refused(made, "preflight")


def test_a_program_or_a_key_that_is_missing_reserves_nothing(
    alone: Alone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    made = alone("claude", STEPS, agent={"key_variables": ["NO_SUCH_KEY"]})
    assert "NO_SUCH_KEY" in refused(made, "key-missing")
    (made.tools / "claude").unlink()
    refused(made, "program-missing")
    assert made.book("L1") == ()


def test_a_program_that_the_boundary_would_show_with_the_round_is_refused(alone: Alone) -> None:
    made = alone("claude", STEPS, agent={"readable": [str(Path("/tmp").resolve())]})
    assert str(Path("/tmp").resolve()) in refused(made, "lane-grant")
    assert made.book("L1") == ()


def test_an_expired_lane_is_refused_before_its_program_is_asked(alone: Alone) -> None:
    made = alone("claude", STEPS, stub={"version_exit": 3})
    records: tuple[AttemptRecord, ...] = made.book("L1")
    with pytest.raises(Refused, match="lane-expired"):
        attempts.check_room(made.folder, "L1", now=datetime.now(UTC) + timedelta(days=2))
    assert made.book("L1") == records


@BOTH
def test_a_dry_run_shows_command_variables_and_boundary_and_starts_nothing(
    alone: Alone, harness: str, lease_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_KEY", "the-value-of-the-key")
    made = alone(harness, STEPS, agent={"key_variables": ["STUB_KEY"], "hosts": ["127.0.0.1:9"]})
    folder = made.folder
    said = run_to_end(lease_root, "launch", folder.root, "--drive", harness, "--dry-run")
    assert f"L1: {made.tools / harness} " in said
    assert "STUB_KEY" in said
    assert "the-value-of-the-key" not in said
    assert "L1: network 127.0.0.1:9" in said
    assert f"L1: writable {folder.clone('L1')}" in said
    assert f"L1: writable {folder.homes / 'L1'}" in said
    assert f"L1: readable {folder.clone('L1') / '.git'}" in said
    assert str(folder.store) not in said
    assert made.book("L1") == ()
    assert not folder.homes.exists()
    other = "codex" if harness == "claude" else "claude"
    assert dry_run_lanes(folder, other) == ()
    run_to_end(
        lease_root, "launch", folder.root, "--drive", harness, "--dry-run", "--digest", "0" * 64, expect=3
    )


def test_a_lane_without_a_driver_is_a_persons(open_folder: Path, lease_root: Path) -> None:
    made = agent_round(open_folder, {"L1": "none", "L2": "claude"}, {})
    driven, lines = made.drive()
    assert "L1: harness none, filled by hand" in lines
    assert (driven.refused, driven.failed) == ((), ())
    assert seen(made.root, "L2")["argv"][1] == "-p"
    assert made.drive("codex")[1] == ["no lane of this round has harness codex"]
