"""Which drafts go to the gate: those that the prefilter agrees with, and each target's best attempt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from roundkit.models.wave_calls import PrefilterAnswer, PrefilterResult
from roundkit.models.wave_records import Draft, Key, Target

_NO_SCORE = float("inf")
_TAKEN = " was taken"


def in_order(drafts: Iterable[Draft]) -> list[Draft]:
    """Return drafts as they are preferred where nothing else decides: by attempt, shard and path."""
    return sorted(drafts, key=lambda draft: (draft.attempt, draft.shard, draft.path))


def without_repeats(drafts: Iterable[Draft]) -> list[Draft]:
    """Return drafts without those that say the same of the same target as an earlier one."""
    seen: dict[tuple[str, str, str], Draft] = {}
    for draft in drafts:
        seen.setdefault((draft.group, draft.name, draft.sha256), draft)
    return list(seen.values())


def judged(drafts: Sequence[Draft], answer: PrefilterAnswer | None, failure: str) -> list[PrefilterResult]:
    """Return one result a draft, in their order; whatever was not asked about counts for nothing.

    Args:
        drafts: What was asked about.
        answer: What the prefilter said; null where it failed.
        failure: Why it failed.
    """
    said: dict[tuple[str, str, str], list[PrefilterResult]] = {}
    for result in answer.results if answer is not None else ():
        said.setdefault((result.group, result.name, result.sha256), []).append(result)
    return [_one(draft, said.get((draft.group, draft.name, draft.sha256), []), failure) for draft in drafts]


def _one(draft: Draft, said: list[PrefilterResult], failure: str) -> PrefilterResult:
    if len({result.status for result in said}) == 1:
        return said[0]
    reason = "the prefilter said several things of it" if said else failure or "the prefilter said nothing"
    return PrefilterResult(
        group=draft.group, name=draft.name, sha256=draft.sha256, status="error", reason=reason
    )


def counts(results: Iterable[PrefilterResult]) -> dict[str, int]:
    """Return how many drafts had which status."""
    return dict(sorted(Counter(result.status for result in results).items()))


def by_target(drafts: Iterable[Draft]) -> dict[Key, list[Draft]]:
    """Return the drafts of each target, in the order given."""
    found: dict[Key, list[Draft]] = {}
    for draft in drafts:
        found.setdefault((draft.group, draft.name), []).append(draft)
    return found


def best(attempts: Sequence[Draft], scores: Mapping[str, float] | None) -> Draft:
    """Return the attempt to gate: the smallest score, the first one on a tie or without any score.

    Args:
        attempts: At least one, in their order.
        scores: Score by digest, smaller is better; null where the scorer failed or there is none.
    """
    if scores is None:
        return attempts[0]
    return min(attempts, key=lambda draft: scores.get(draft.sha256, _NO_SCORE))


def taken_before(draft: Draft) -> str:
    """Return the reason of an attempt that the scorer left: the path of the one that it took."""
    return f"{draft.path}{_TAKEN}"


def path_taken(reason: str) -> str | None:
    """Return the path that such a reason names; null where it is none."""
    return reason.removesuffix(_TAKEN) if reason.endswith(_TAKEN) else None


def shared_outputs(targets: Iterable[Target]) -> dict[Key, str]:
    """Return the targets whose output some other target has as well, with that path."""
    owners: dict[str, set[Key]] = {}
    for target in targets:
        owners.setdefault(target.output, set()).add(target.key)
    return {key: path for path, keys in owners.items() if len(keys) > 1 for key in keys}
