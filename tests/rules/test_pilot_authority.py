"""Who may spend in a pilot, as a table."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from support.pilots import example

from roundkit.core.errors import Refusal
from roundkit.models.agent_run import AgentRun, LogDigest, Usage
from roundkit.models.lane_agent import Authorization
from roundkit.models.pilot_plan import PairedPlan
from roundkit.models.pilot_trial import TrialRecord
from roundkit.models.round_plan import LaneBudget
from roundkit.rules.pilot_authority import pilot_refusal

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2027, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> PairedPlan:
    return example(tmp_path_factory.mktemp("pilot")).freeze()[1]


def place(refusal: Refusal | None) -> str | None:
    """Return what stands against a pilot's start: the key of its plan."""
    return None if refusal is None else refusal.place


def paid(plan: PairedPlan, *, worst: int | None = 100, allowed: int = 1000, **agent: Any) -> PairedPlan:
    """Return the plan with a model in the agent's place."""
    told = plan.model.agent.model_copy(update={"provenance": "model", **agent})
    return plan.model_copy(
        update={
            "model": plan.model.model_copy(update={"agent": told, "model": "m"}),
            "policy": plan.policy.model_copy(update={"caps": LaneBudget(micro_usd=worst)}),
            "authorization": Authorization(by="Ada", micro_usd=allowed, until_utc=LATER, models=("m",)),
        }
    )


def cost(plan: PairedPlan, micro_usd: int | None) -> TrialRecord:
    log = LogDigest(sha256="0" * 64, bytes=0, kept_bytes=0)
    run = AgentRun(
        argv_sha256="0" * 64, cli_version=None, started_utc=NOW, ended_utc=NOW, exit_code=0,
        end_reason="exited", detail="", usage=Usage(micro_usd=micro_usd), denied=None, stdout=log, stderr=log,
    )  # fmt: skip
    return TrialRecord(
        format="roundkit-pilot-trial/1", plan_sha256=plan.digest(), tuple_id="a.b.1", order=1,
        attempt="001-a.b.1", provenance="model", started_utc=NOW, ended_utc=NOW, process="completed",
        detail="", agent=run, calls=0, failed_calls=0, wall_ms=0, validation_ms=0, acceptance=None,
        truncated=(), files=(),
    )  # fmt: skip


def test_scripts_and_stubs_on_the_loopback_need_nobodys_word(scripted: PairedPlan) -> None:
    assert pilot_refusal(scripted, [], NOW) is None
    stub = paid(scripted, provenance="stub", hosts=("127.0.0.1:1",)).model_copy(
        update={"authorization": None}
    )
    assert pilot_refusal(stub, [], NOW) is None
    outside = paid(scripted, provenance="stub", hosts=("example.org",)).model_copy(
        update={"authorization": None}
    )
    assert place(pilot_refusal(outside, [], NOW)) == "plan.json: authorization"


@pytest.mark.parametrize(
    ("costs", "worst", "refused"),
    [
        ([], 100, False),
        ([50] * 9, 100, False),
        ([50] * 10, 100, True),
        ([901], 100, True),
        ([900], 100, False),
        ([None] * 10, 100, True),
        ([], 1001, True),
        ([], None, True),
    ],
)
def test_every_attempt_counts_at_its_worst_or_at_what_it_cost_where_that_was_more(
    scripted: PairedPlan, costs: list[int | None], worst: int | None, refused: bool
) -> None:
    plan = paid(scripted, worst=worst)
    refusal = pilot_refusal(plan, [cost(plan, amount) for amount in costs], NOW)
    assert (refusal is not None) == refused
    assert refusal is None or refusal.code == "not-authorized"


def test_an_attempt_without_a_record_counts_too(scripted: PairedPlan) -> None:
    plan = paid(scripted, worst=500)
    assert pilot_refusal(plan, [None], NOW) is None
    refusal = pilot_refusal(plan, [None, None], NOW)
    assert refusal is not None
    assert "1000 of 1000 authorized micro-USD are taken" in refusal.message


def test_an_authorization_ends_and_is_for_its_models(scripted: PairedPlan) -> None:
    plan = paid(scripted)
    assert place(pilot_refusal(plan, [], LATER)) == "plan.json: authorization.until_utc"
    other = plan.model_copy(update={"model": plan.model.model_copy(update={"model": "another"})})
    assert place(pilot_refusal(other, [], NOW)) == "plan.json: authorization.models"
