"""Usage by a rule over rows of JSON: nothing, the last row that matches, or all of them added up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from roundkit.agents.drivers.common import added, count, larger, micro_usd, most, text, total
from roundkit.models.agent_run import TokenCounts, Usage
from roundkit.models.lane_agent import ListPrice
from roundkit.models.lane_command import UsageRule


class RowUsage:
    """Takes rows as they come and says what is known of the usage by then.

    Args:
        rule: Which rows count, and where in them.
        prices: List prices, for rows without dollars; null leaves the cost unknown.
    """

    def __init__(self, rule: UsageRule, prices: ListPrice | None = None) -> None:
        self._rule = rule
        self._prices = prices
        self._tokens = TokenCounts()
        self._dollars: int | None = None
        self._turns: int | None = None
        self._session: str | None = None
        self._model: str | None = None
        self.failed = False

    def take(self, row: Mapping[str, Any]) -> None:
        """Take one row; one that does not match counts nothing."""
        rule = self._rule
        self._session = text(_at(row, rule.session)) or self._session
        self._model = text(_at(row, rule.model)) or self._model
        if rule.failed and _matches(row, rule.failed):
            self.failed = True
        if rule.take == "none" or not _matches(row, rule.rows):
            return
        tokens, dollars = _tokens(rule, row), micro_usd(_at(row, rule.usd))
        turns = count(_at(row, rule.turns))
        if rule.take == "last":
            # Totals never shrink: whatever a later row says, that much was used before.
            self._tokens = larger(self._tokens, tokens)
            self._dollars, self._turns = most(self._dollars, dollars), most(self._turns, turns)
            return
        self._tokens = added(self._tokens, tokens)
        self._dollars = total(self._dollars, dollars)
        self._turns = total(self._turns, turns if rule.turns is not None else 1)

    def keep(self, before: RowUsage) -> None:
        """Count no less than an earlier reading: what files once told stays told."""
        self._tokens = larger(self._tokens, before._tokens)
        self._dollars, self._turns = most(self._dollars, before._dollars), most(self._turns, before._turns)
        self._session, self._model = self._session or before._session, self._model or before._model

    def usage(self, *, partial: bool) -> Usage:
        """Return what is known so far.

        Args:
            partial: Whether the last answers may be missing.
        """
        dollars = self._dollars
        listed = None if self._prices is None else self._prices.micro_usd(self._tokens)
        return Usage(
            turns=self._turns,
            tokens=self._tokens,
            micro_usd=dollars if dollars is not None else listed,
            basis="reported" if dollars is not None else "list-price" if listed is not None else "none",
            session_id=self._session,
            model=self._model,
            partial=partial,
        )


def _tokens(rule: UsageRule, row: Mapping[str, Any]) -> TokenCounts:
    read, cached = count(_at(row, rule.input)), count(_at(row, rule.cached_input))
    if rule.input_has_cached and read is not None:
        read = max(0, read - (cached or 0))
    return TokenCounts(
        input=read,
        cached_input=cached,
        cache_write=count(_at(row, rule.cache_write)),
        output=total(count(_at(row, rule.output)), count(_at(row, rule.reasoning))),
    )


def _matches(row: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    return all(_word(_at(row, path)) == value for path, value in wanted.items())


def _word(value: Any) -> Any:
    """Return a value as a rule would write it: true, false and null are words of JSON."""
    return json.dumps(value) if value is None or isinstance(value, bool) else value


def _at(row: Any, path: str | None) -> Any:
    """Return what stands at a dotted path; None where nothing does."""
    if path is None:
        return None
    value = row
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
