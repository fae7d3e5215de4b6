"""The chain of a pilot's attempts: each start names the record before it, so that none can be taken out.

Nothing can be said of the last ones that way, and a chain can be made anew as a whole. What tells of that is
its head, the digest of the last record, where somebody posted it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from roundkit.rules.disagreement import Disagreement


@dataclass(frozen=True)
class Link:
    """One attempt, or one run.

    Attributes:
        name: Its folder.
        started: Whether there is a start that can be read.
        previous: Digest of the record that its start names; null for the pilot's first one.
        record: Digest of its own record; null while it has none.
    """

    name: str
    started: bool
    previous: str | None
    record: str | None


@dataclass(frozen=True)
class Chain:
    """What links make together.

    Attributes:
        order: Names in the order in which they were started, as far as they hang together.
        records: Digests of their records in that order; null for one that has none.
        problems: Where they do not hang together.
    """

    order: tuple[str, ...]
    records: tuple[str | None, ...]
    problems: tuple[Disagreement, ...]

    @property
    def head(self) -> str | None:
        """Digest of the last record; null where there is none, or where that attempt has none yet."""
        return self.records[-1] if self.records and not self.problems else None


def chain_of(links: Sequence[Link]) -> Chain:
    """Return the chain that links make, with everything that breaks it."""
    after: dict[str | None, list[Link]] = defaultdict(list)
    for link in links:
        if link.started:
            after[link.previous].append(link)
    order: dict[str, str | None] = {}
    at: str | None = None
    while len(following := after.get(at, [])) == 1 and following[0].name not in order:
        at = order[following[0].name] = following[0].record
        if at is None:
            break
    return Chain(tuple(order), tuple(order.values()), tuple(_problems(links, order, after)))


def head_line(chain: Chain, what: str) -> str:
    """Say which head to post, so that nobody can make anew what was run until now; or why there is none.

    Args:
        chain: The pilot's chain.
        what: What its links are called: ``attempt`` or ``run``.
    """
    if chain.head is not None:
        return f"head {chain.head}"
    if chain.problems:
        return "head: none, the chain is broken"
    return f"head: none, {f'the last {what} has no record yet' if chain.order else f'no {what} was started'}"


def head_problems(chain: Chain, posted: str) -> list[Disagreement]:
    """Return how a chain is not the one whose head somebody posted; what came later is no problem."""
    if posted in chain.records:
        return []
    said = f"head {chain.head}, and no record of the chain has the posted digest {posted}"
    return [Disagreement("chain", said)]


def head_sentence(chain: Chain, posted: str) -> str:
    """Say where in a chain a posted head is found."""
    later = len(chain.records) - 1 - chain.records.index(posted)
    where = f"the one {later} before the last" if later else "the last one"
    return f"the posted head {posted} is {where} of {len(chain.records)}"


def _problems(
    links: Sequence[Link], order: Collection[str], after: Mapping[str | None, Sequence[Link]]
) -> Iterator[Disagreement]:
    records = {link.record for link in links if link.record is not None}
    held = {*order, *_behind_gaps(links, records, after)}
    for link in links:
        following = after.get(link.previous, ())
        if not link.started:
            yield Disagreement(link.name, "has no start that can be read: nothing says what was before it")
        elif len(following) > 1:
            others = ", ".join(each.name for each in following if each is not link)
            said = "says that nothing was before" if link.previous is None else "follows the same record"
            yield Disagreement(link.name, f"{said}, as {others}")
        elif link.previous is not None and link.previous not in records:
            yield Disagreement(link.name, f"names the record {link.previous} before it, which is not here")
        elif link.name not in held:
            yield Disagreement(link.name, "does not hang together with the first one")


def _behind_gaps(
    links: Sequence[Link], records: Collection[str], after: Mapping[str | None, Sequence[Link]]
) -> set[str]:
    """Return the links that hang together with one that is told of by itself."""
    pending = [
        link
        for link in links
        if not link.started or link.previous not in records or len(after.get(link.previous, ())) > 1
    ]
    found: set[str] = set()
    while pending:
        link = pending.pop()
        if link.name not in found:
            found.add(link.name)
            pending += after.get(link.record, ()) if link.record is not None else ()
    return found
