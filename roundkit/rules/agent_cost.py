"""What a lane's agents cost, in one line: harness, model, how they ended, and what their tools counted."""

from __future__ import annotations

from dataclasses import dataclass

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

    Where something was not counted to its end, the line says "at least", and "unknown" where nothing was.
    """
    started = [record for record in book.records if record.claimed_utc is not None]
    runs = [record.run for record in started if record.run is not None]
    if not runs and (not started or book.lane.harness in {"none", "replay"}):
        return ""
    parts = [
        _counted(_known(book, runs, "turns"), "turns"),
        _counted(_known(book, runs, "tokens"), "tokens"),
        _dollars(_known(book, runs, "micro_usd"), {run.usage.basis for run in runs}),
        f"ended: {', '.join(_end(record) for record in started)}",
    ]
    return f"{book.lane.harness}, {_models(book, runs)}: {'; '.join(parts)}"


@dataclass(frozen=True)
class _Known:
    """What is known of an amount; null where nothing is."""

    amount: int | None
    at_least: bool

    def words(self, amount: str) -> str:
        return f"at least {amount}" if self.at_least else amount


def _known(book: LaneAccount, runs: list[AgentRun], name: str) -> _Known:
    spent: int | None = getattr(book.spent, name)
    if spent is not None:
        return _Known(spent, any(run.usage.partial for run in runs))
    counted = [getattr(cost_of(run, 0), name) for run in runs]
    known = [amount for amount in counted if amount is not None]
    return _Known(sum(known) if known else None, at_least=bool(known))


def _models(book: LaneAccount, runs: list[AgentRun]) -> str:
    reported = sorted({run.usage.model for run in runs if run.usage.model})
    asked = book.lane.model or "the tool's own choice"
    return f"model {', '.join(reported)}" if reported else f"model not reported (asked for: {asked})"


def _counted(known: _Known, noun: str) -> str:
    return f"unknown {noun}" if known.amount is None else f"{known.words(str(known.amount))} {noun}"


def _dollars(known: _Known, bases: set[UsdBasis]) -> str:
    if known.amount is None:
        return "unknown cost"
    words = " and ".join(_BASIS[basis] for basis in sorted(bases - {"none"}))
    return f"{known.words(f'{known.amount / _MILLION:.6f}')} USD" + (f" {words}" if words else "")


def _end(record: AttemptRecord) -> str:
    return record.run.end_reason if record.run is not None else "unknown"
