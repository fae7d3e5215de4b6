"""What a wave is drawn from, which turn of the rotation it is, and when nothing more is drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from math import lcm
from typing import Literal, get_args

from roundkit.core.clock import is_expired
from roundkit.core.relpath import path_problem
from roundkit.models.wave_plan import Band, LeverSet, WaveDraft
from roundkit.models.wave_records import Key, Target, Wave

NoDraw = Literal["stop", "waves", "deadline", "credit", "authorization", "queue"]
"""Why nothing is drawn now; ``queue`` alone passes by itself."""

DRAW_FAILED = "draw-failed"
NO_AGENTS = "no-agent-started"
"""The boundary refused every agent of a wave: the next waves would come to nothing as well."""

ENDINGS = frozenset({*get_args(NoDraw), "exhausted", DRAW_FAILED, NO_AGENTS}) - {"queue"}
"""Why a drafter ended."""

LeftOut = Literal[
    "banked", "gating", "drafting", "excluded-group", "other-band", "wave-full", "group-limit", "sibling"
]
"""Why a target that ``draw`` named is not in the wave."""


@dataclass(frozen=True)
class Known:
    """What is known about targets when a wave is drawn; everything comes from the disk.

    Attributes:
        banked: Those that the tree's commits bank.
        drafting: Those of waves that are drawn and not yet handed on.
        gating: Those of waves that wait for the gate or are in it, and those whose drafts are parked.
        drawn: Those of every wave so far.
        missing: Those whose input is not there.
        families: Families of what is in ``drafting`` and ``gating``.
    """

    banked: AbstractSet[Key] = frozenset()
    drafting: AbstractSet[Key] = frozenset()
    gating: AbstractSet[Key] = frozenset()
    drawn: AbstractSet[Key] = frozenset()
    missing: AbstractSet[Key] = frozenset()
    families: AbstractSet[str] = frozenset()


@dataclass(frozen=True)
class Choice:
    """What of an answer becomes a wave.

    Attributes:
        targets: In the order of the answer.
        left_out: How many were left out, by reason.
        missing: How many have no input.
        retried: How many an earlier wave drew already.
    """

    targets: tuple[Target, ...]
    left_out: dict[str, int]
    missing: int
    retried: int


@dataclass(frozen=True)
class Standing:
    """How a campaign stands before a draw.

    Attributes:
        drawn: Waves that were drawn.
        waiting: Waves that were handed on and have no row in the ledger.
        credit_usd: Credit that is left; null is unknown, and no reason to end.
        now: The time.
        stop: Whether somebody asked for the end.
        committed_micro_usd: What the waves so far may have cost at worst.
    """

    drawn: int
    waiting: int
    credit_usd: float | None
    now: datetime
    stop: bool = False
    committed_micro_usd: int = 0


def next_tag(tags: Iterable[str]) -> str:
    """Return the tag that comes after every one that is there."""
    return f"{max(map(int, tags), default=0) + 1:04d}"


def rotation(plan: WaveDraft, waves: Iterable[Wave]) -> list[tuple[Band, LeverSet]]:
    """Return every pair of a band and a lever set, the one whose turn it is first.

    The pair that was drawn least often is next; a restart changes nothing about that. Both change from wave
    to wave, and every pair has its turn, also where their numbers have a factor in common.
    """
    bands, levers = plan.bands, plan.lever_sets
    before_all = lcm(len(bands), len(levers))
    order = [
        (bands[(turn + turn // before_all) % len(bands)], levers[turn % len(levers)])
        for turn in range(len(bands) * len(levers))
    ]
    drawn = Counter((wave.band, wave.lever_set) for wave in waves)
    return sorted(order, key=lambda pair: drawn[pair[0].id, pair[1].id])


def choose(plan: WaveDraft, band: Band, answer: Sequence[Target], known: Known) -> Choice:
    """Choose the targets of a wave among those that ``draw`` named, in its order."""
    chosen = _Chosen(families=set(known.families))
    left_out: Counter[str] = Counter()
    missing = 0
    for target in answer:
        reason = _reason(plan, band, target, known) or chosen.reason(plan, target)
        if reason is None and target.key in known.missing:
            missing += 1
        elif reason is not None:
            left_out[reason] += 1
        else:
            chosen.take(target)
    targets = tuple(chosen.targets)
    retried = sum(target.key in known.drawn for target in targets)
    return Choice(targets, dict(sorted(left_out.items())), missing, retried)


def answer_problem(answer: Sequence[Target]) -> str | None:
    """Say why no wave can be drawn from an answer; None when it can."""
    keys = Counter(target.key for target in answer)
    outputs = Counter(target.output for target in answer)
    twice = [f"{group}/{name}" for (group, name), times in keys.items() if times > 1]
    if twice:
        return f"a target is there more than once: {twice[0]}"
    if shared := [path for path, times in outputs.items() if times > 1]:
        return f"two targets have the same output: {shared[0]}"
    for target in answer:
        for what, path in (("input", target.input), ("output", target.output)):
            if problem := path_problem(path):
                return f"the {what} of {target.group}/{target.name} {problem}: {path!r}"
    return None


def no_draw(plan: WaveDraft, standing: Standing) -> NoDraw | None:
    """Return why nothing is drawn now; None when something may be.

    Drafting a wave that is drawn is never held up here: what is drawn and not drafted is stranded work.
    """
    if standing.stop:
        return "stop"
    if plan.waves is not None and standing.drawn >= plan.waves:
        return "waves"
    if plan.deadline_utc is not None and is_expired(plan.deadline_utc, standing.now):
        return "deadline"
    if standing.credit_usd is not None and standing.credit_usd < plan.credit_floor_usd:
        return "credit"
    authorization = plan.authorization
    if authorization is not None and (
        is_expired(authorization.until_utc, standing.now)
        or standing.committed_micro_usd + worst_wave_micro_usd(plan) > authorization.micro_usd
    ):
        return "authorization"
    return "queue" if standing.waiting >= plan.queue_depth else None


def worst_wave_micro_usd(plan: WaveDraft) -> int:
    """Return what a whole wave may cost at worst, in micro-USD."""
    return plan.targets * plan.draft.attempts * max(_micro_usd(plan, lever) for lever in plan.lever_sets)


def wave_micro_usd(plan: WaveDraft, wave: Wave) -> int:
    """Return what a wave that was drawn may cost at worst, in micro-USD."""
    lever = next((one for one in plan.lever_sets if one.id == wave.lever_set), plan.lever_sets[0])
    return len(wave.targets) * plan.draft.attempts * _micro_usd(plan, lever)


def _micro_usd(plan: WaveDraft, lever: LeverSet) -> int:
    return plan.draft.micro_usd if lever.micro_usd is None else lever.micro_usd


def _reason(plan: WaveDraft, band: Band, target: Target, known: Known) -> LeftOut | None:
    if target.key in known.banked:
        return "banked"
    if target.key in known.gating:
        return "gating"
    if target.key in known.drafting:
        return "drafting"
    if target.group in plan.excluded_groups:
        return "excluded-group"
    return None if band.holds(target.size) else "other-band"


@dataclass
class _Chosen:
    """The wave as it grows."""

    families: set[str]
    targets: list[Target] = field(default_factory=list)
    groups: set[str] = field(default_factory=set)

    def reason(self, plan: WaveDraft, target: Target) -> LeftOut | None:
        if len(self.targets) >= plan.targets:
            return "wave-full"
        if target.group not in self.groups and len(self.groups) >= plan.most_groups:
            return "group-limit"
        if plan.one_per_family and target.family in self.families:
            return "sibling"
        return None

    def take(self, target: Target) -> None:
        self.targets.append(target)
        self.groups.add(target.group)
        if target.family is not None:
            self.families.add(target.family)
