"""What is said about the cost of a lane's agents, and what an audit finds wrong with the record of a run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from support.sample.plan import EPOCH
from support.sample_evidence import sample_round

from roundkit.models.agent_run import AgentRun, LogDigest, TokenCounts, Usage
from roundkit.models.attempts import AttemptRecord, Cost
from roundkit.models.lane_agent import LaneAgent, ListPrice
from roundkit.rules.agent_cost import cost_line
from roundkit.rules.attempts import LaneAccount, account, ledger_problems, next_binding

DIGEST = "a" * 64
PRICES = ListPrice(input=2_000_000, cached_input=0, cache_write=0, output=0)
LANE = (
    sample_round()
    .plan.lanes[0]
    .model_copy(update={"harness": "codex", "model": "m", "attempts": 9, "agent": LaneAgent(prices=PRICES)})
)
LOG = LogDigest(sha256="b" * 64, bytes=0, kept_bytes=0)


def run(end: Any = "exited", **usage: Any) -> AgentRun:
    return AgentRun(
        argv_sha256="c" * 64, cli_version="1", started_utc=EPOCH, ended_utc=EPOCH + timedelta(seconds=3),
        exit_code=0, end_reason=end, detail="", usage=Usage(**usage), denied=None, stdout=LOG, stderr=LOG,
    )  # fmt: skip


def counted(tokens: int, **usage: Any) -> dict[str, Any]:
    return {"turns": 1, "tokens": TokenCounts(input=tokens), "model": "m-1", **usage}


def book(*runs: AgentRun | None, **changes: Any) -> LaneAccount:
    """Return an account with one attempt a run; without one, its driver died."""
    records: list[AttemptRecord] = []
    for one in runs:
        settled = one is not None and one.end_reason not in {"deadline", "killed"}
        usage = one.usage if one is not None else Usage()
        cost = Cost(turns=usage.turns, tokens=usage.tokens.total, micro_usd=usage.micro_usd, wall_s=3)
        record = AttemptRecord(
            binding=next_binding(DIGEST, account(LANE, records), "run"), provenance="stub",
            phase="settled" if settled else "claimed", reserved_utc=EPOCH, claimed_utc=EPOCH,
            ended_utc=EPOCH + timedelta(seconds=4) if settled else None,
            actual=cost if settled else None, run=one,
        )  # fmt: skip
        records.append(record.model_copy(update=changes))
    return account(LANE, records)


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ([], ""),
        (
            [None],
            "codex, model not reported (asked for: m): "
            "unknown turns; unknown tokens; unknown cost; ended: unknown",
        ),
        (
            [run(**counted(5, micro_usd=10, basis="list-price"))],
            "codex, model m-1: 1 turns; 5 tokens; 0.000010 USD by list price; ended: exited",
        ),
        (
            [run("budget", **counted(5, partial=True))],
            "codex, model m-1: at least 1 turns; at least 5 tokens; unknown cost; ended: budget",
        ),
        (
            [run("deadline", **counted(5, partial=True)), run(**counted(7))],
            "codex, model m-1: at least 2 turns; at least 12 tokens; unknown cost; ended: deadline, exited",
        ),
    ],
)
def test_d06_a_cost_line_says_what_is_known_and_what_is_not(runs: list[AgentRun | None], said: str) -> None:
    assert cost_line(book(*runs)) == said


@pytest.mark.parametrize(
    ("one", "changes", "problem"),
    [
        (run(**counted(5)), {}, None),
        (run(**counted(5, micro_usd=10, basis="list-price")), {}, None),
        (run("deadline", **counted(5)), {}, None),
        (run(**counted(5, micro_usd=9, basis="list-price")), {}, "by list price"),
        (run(**counted(5)), {"actual": Cost(turns=1, tokens=4, wall_s=3)}, "its tool counted 5"),
        (run("killed"), {"phase": "settled", "actual": Cost(), "ended_utc": EPOCH}, "its run ended: killed"),
        (run(), {"claimed_utc": EPOCH + timedelta(seconds=1)}, "started after the claim"),
    ],
)
def test_an_audit_holds_a_run_against_its_attempt(
    one: AgentRun, changes: dict[str, Any], problem: str | None
) -> None:
    problems = list(ledger_problems(DIGEST, book(one, **changes)))
    assert problems == [] if problem is None else any(problem in found for found in problems), problems
