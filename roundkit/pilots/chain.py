"""Going on with a chain of attempts: only where it is whole, since a part that is gone would be hidden."""

from __future__ import annotations

from roundkit.core.errors import Refusal, Refused
from roundkit.rules.pilot_chain import Chain


def head_of(chain: Chain) -> str | None:
    """Return the digest that the next start names; null for the first one.

    Raises:
        Refused: ``chain-broken``, with every place: an attempt was removed, changed or added by hand.
    """
    if chain.problems:
        raise Refused(
            [
                Refusal(
                    "chain-broken",
                    f"{problem.where} {problem.detail}",
                    problem.where,
                    "restore the folder from a copy: nothing of a pilot is removed or run again",
                )
                for problem in chain.problems
            ]
        )
    return chain.head
