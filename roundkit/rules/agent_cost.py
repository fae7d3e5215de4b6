"""What a lane's agents cost, in one line: harness, model, how they ended, and what their tools counted."""

from __future__ import annotations

from roundkit.models.agent_run import AgentRun, UsdBasis
from roundkit.models.attempts import AttemptRecord, Cost
from roundkit.rules.attempts import LaneAccount

_MILLION = 1_000_000
_BASIS: dict[UsdBasis, str] = {
    "reported": "as its tool reports it",
    "list-price": "by list price",
    "none": "unknown",
}


def cost_of(run: AgentRun, wall_s: int) -> Cost:
    """Return what a run cost as far as its tool counted; unknown is null.

    Args:
        run: The run.
        wall_s: Seconds that it took, on the coordinator's clock.
    """
    usage = run.usage
    return Cost(turns=usage.turns, tokens=usage.tokens.total, micro_usd=usage.micro_usd, wall_s=wall_s)


def cost_line(book: LaneAccount) -> str:
    """Return a lane's cost line; empty where no agent of it ran.

    A line adds up only what is known, and says when something is not.
    """
    started = [record for record in book.records if record.claimed_utc is not None]
    runs = [record.run for record in started if record.run is not None]
    if not runs and (not started or book.lane.harness in {"none", "replay"}):
        return ""
    spent = book.spent
    parts = [
        _counted(spent.turns, "turns"),
        _counted(spent.tokens, "tokens"),
        _dollars(spent.micro_usd, {run.usage.basis for run in runs}),
        f"ended: {', '.join(_end(record) for record in started)}",
    ]
    if any(record.binding.tries > 1 for record in started):
        parts.append(
            "its script was handed over: no boundary of roundkit's held, and others may have written"
        )
    return f"{book.lane.harness}, {_models(book, runs)}: {'; '.join(parts)}"


def _models(book: LaneAccount, runs: list[AgentRun]) -> str:
    reported = sorted({run.usage.model for run in runs if run.usage.model})
    asked = book.lane.model or "the tool's own choice"
    return f"model {', '.join(reported)}" if reported else f"model not reported (asked for: {asked})"


def _counted(amount: int | None, noun: str) -> str:
    return f"unknown {noun}" if amount is None else f"{amount} {noun}"


def _dollars(micro_usd: int | None, bases: set[UsdBasis]) -> str:
    if micro_usd is None:
        return "unknown cost"
    words = " and ".join(_BASIS[basis] for basis in sorted(bases - {"none"}))
    return f"{micro_usd / _MILLION:.6f} USD" + (f" {words}" if words else "")


def _end(record: AttemptRecord) -> str:
    return record.run.end_reason if record.run is not None else "unknown"
