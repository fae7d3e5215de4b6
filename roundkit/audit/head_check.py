"""The head of a pilot's chain against the one that somebody posted: what tells of a chain made anew."""

from __future__ import annotations

from collections.abc import Mapping

from roundkit.audit.findings import Check, Disagreement, conclude
from roundkit.rules.pilot_chain import Chain, head_problems, head_sentence


def posted_head(
    chain: Chain | None, posted: str | None, ledgers: Mapping[str, str] | None = None
) -> list[Check]:
    """Check that a posted head is a record of the chain, or a ledger that stands in a trial's.

    Args:
        chain: The chain; null where a cohort that others published has none.
        posted: The head; null where none was given.
        ledgers: Where each digest that may have been posted of a ledger is found, in words.
    """
    if posted is None:
        return []
    if chain is None:
        return conclude("head", [Disagreement("", "published records have no chain")], "")
    if ledgers is not None and posted in ledgers:
        return conclude("head", [], f"the posted digest {posted} is {ledgers[posted]}")
    if found := head_problems(chain, posted):
        return conclude("head", found, "")
    return conclude("head", [], head_sentence(chain, posted))
