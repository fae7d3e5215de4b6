"""In which batches one group's drafts come before its gate, and what of an answer is decided.

One call takes a cheap group whole, and its answer decides every draft. Of an expensive group at most
``chunk`` drafts come at once, and what an answer leaves open is halved and asked again, so that one bad draft
costs about two calls for each halving instead of its whole batch. A call without any answer is halved in
either case: one draft may be what made it fail.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field

NOT_NAMED = "the gate did not name it"


@dataclass(frozen=True)
class Batch:
    """What one call gets.

    Attributes:
        names: To be decided.
        settled: Banked by earlier calls; they are staged too, so that what is committed was gated together.
    """

    names: tuple[str, ...]
    settled: tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """What one call said.

    Attributes:
        banked: Names that are right.
        rejected: Names that are not, with reasons.
        failure: Why there was no answer; null where there was one.
    """

    banked: frozenset[str] = frozenset()
    rejected: Mapping[str, str] = field(default_factory=dict)
    failure: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of every name.

    Attributes:
        banked: Names that are right, in the order in which they were asked about.
        rejected: Names that the gate refused, with reasons.
        failed: Names that the gate gave no answer for, not even alone, with reasons.
        calls: How many calls it took.
    """

    banked: tuple[str, ...]
    rejected: Mapping[str, str]
    failed: Mapping[str, str]
    calls: int


def batches(names: Sequence[str], chunk: int | None) -> Generator[Batch, Answer, Outcome]:
    """Yield batches one after the other, and take each one's answer.

    Args:
        names: All drafts of the group, by name.
        chunk: Most names in one call of an expensive group; null for a group that is not.
    """
    size = len(names) if chunk is None else chunk
    waiting = [tuple(names[at : at + size]) for at in range(0, len(names), max(1, size))]
    banked: list[str] = []
    rejected: dict[str, str] = {}
    failed: dict[str, str] = {}
    calls = 0
    while waiting:
        asked = waiting.pop(0)
        answer = yield Batch(asked, tuple(banked))
        calls += 1
        # What it says of names that were not asked about counts for nothing; who is refused is not banked.
        refused = {name: answer.rejected[name] for name in asked if name in answer.rejected}
        right = [name for name in asked if name in answer.banked and name not in refused]
        banked += right
        rejected |= refused
        left = tuple(name for name in asked if name not in refused and name not in right)
        halved = answer.failure is not None or chunk is not None
        if left and halved and len(asked) > 1:
            waiting[:0] = _halves(left) if len(left) > 1 else [left]
        elif answer.failure is not None:
            failed |= dict.fromkeys(left, answer.failure)
        else:
            rejected |= dict.fromkeys(left, NOT_NAMED)
    return Outcome(tuple(banked), rejected, failed, calls)


def _halves(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    middle = (len(names) + 1) // 2
    return [names[:middle], names[middle:]]
