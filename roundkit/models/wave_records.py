"""What a wave leaves behind: its draw, its shards, its drafts, and its row in the ledger."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from roundkit.models.base import CommitId, Count, Digest, Identifier, Provenance, Record, UtcTime
from roundkit.models.wave_plan import TargetName
from roundkit.models.wave_traffic import Tag, WaveTraffic, WorkerDecision

Key = tuple[str, str]
"""A target's identity: its group and its name."""


class Target(Record):
    """One small job. Its identity is (group, name): names alone are not unique.

    Attributes:
        group: What one gate call decides together.
        name: Its name within the group.
        size: In the campaign's own unit; bands go by it.
        family: Siblings of one shape share it; null: it has none.
        input: File that the draft agent needs, relative to the tree; it is checked to be there.
        output: Path in the tree that a banked draft becomes.
        data: Whatever else the campaign's commands want to know.
    """

    group: TargetName
    name: TargetName
    size: Count
    family: str | None = None
    input: str
    output: str
    data: dict[str, Any] = Field(default_factory=dict)

    @property
    def key(self) -> Key:
        """Return its identity."""
        return (self.group, self.name)


class TargetKey(Record):
    """A target's identity."""

    group: TargetName
    name: TargetName


class Wave(Record):
    """``wave.json``, written exclusively once a wave is drawn.

    Attributes:
        missing_inputs: Targets left out since their input is not there.
        left_out: How many were left out, by reason: ``banked``; ``drafting`` and ``gating``, in another wave;
            ``excluded-group``; ``other-band``; ``sibling``, where its family has an exemplar in a wave;
            ``group-limit``; ``wave-full``.
        retried: Targets of this wave that an earlier one drew and did not bank.
    """

    format: Literal["roundkit-wave/1"]
    plan_sha256: Digest
    tag: Tag
    drawn_utc: UtcTime
    band: Identifier
    lever_set: Identifier
    targets: tuple[Target, ...]
    missing_inputs: Count
    left_out: dict[str, Count]
    retried: Count


class Slice(Record):
    """One worker's part of a wave, before anybody works on it.

    Attributes:
        pool: Its pool of workers.
    """

    index: Count
    pool: Identifier
    model: str | None
    attempt: Annotated[int, Field(ge=1)]
    targets: tuple[TargetKey, ...]


class Dealt(Record):
    """``dealt.json``, written exclusively once a wave is shared out, before its first shard starts.

    A restarted drafter goes on with it: what has no ``shard.json`` was never started.

    Attributes:
        workers: Draft agents that may run at once.
        slices: One a worker.
    """

    tag: Tag
    dealt_utc: UtcTime
    workers: Annotated[int, Field(ge=1)]
    slices: tuple[Slice, ...]


class Shard(Record):
    """``shard.json``, written exclusively before its agent starts: one worker's slice of a wave.

    Attributes:
        index: From 0, in the order of the starts.
        pool: The pool that its agent belongs to.
        attempt: Which of the independent drafts of its targets these are, from 1.
    """

    tag: Tag
    index: Count
    pool: Identifier
    model: str | None
    attempt: Annotated[int, Field(ge=1)]
    targets: tuple[TargetKey, ...]
    started_utc: UtcTime


class ShardTask(Record):
    """What a draft agent reads: its targets and its caps.

    Attributes:
        turn_tokens: Output tokens that one turn may have.
        turns: Turns a target.
        micro_usd: Cost a target, in micro-USD.
        lessons: What was learned from banked targets.
    """

    tag: Tag
    shard: Count
    attempt: Annotated[int, Field(ge=1)]
    model: str | None
    levers: tuple[str, ...]
    turn_tokens: int
    turns: int
    micro_usd: Count
    lessons: str | None
    targets: tuple[Target, ...]


class ShardEnd(Record):
    """``end.json``: how a shard's agent ended. A slow one's may come after its wave was handed on.

    Attributes:
        end_reason: As of a confined command (``exited``, ``deadline``, ...); ``not-started``, where the
            boundary refused it; ``lost``, where the drafter was killed and it died with it; ``budget``, where
            it told of more turns or a higher cost than its targets may take, and was ended for that.
        exit_code: Null where it did not exit by itself.
        detail: One line more, where there is something to say.
        truncated_turns: Answers that were cut off at their limit; null, like the rest, where its agent told
            of no request.
    """

    tag: Tag
    index: Count
    ended_utc: UtcTime
    end_reason: str
    exit_code: int | None = None
    detail: str = ""
    truncated_turns: Count | None
    turns: Count | None
    micro_usd: Count | None
    tokens: Count | None


class Drafted(Record):
    """``drafted.json``, the marker with which a wave passes from the drafter to the gater.

    Attributes:
        began_utc: When its first shard started.
        handed_utc: When it was handed on.
        shards: Shards in all.
        running: Shards that had not ended; their drafts may still come and are then for ``gate --only``.
    """

    tag: Tag
    began_utc: UtcTime
    handed_utc: UtcTime
    workers: int
    shards: Count
    running: Count


class Draft(Record):
    """One draft whose owner is known.

    Attributes:
        attempt: Number of the independent draft, from 1.
        path: Its file, relative to the wave's folder.
    """

    group: TargetName
    name: TargetName
    shard: Count
    attempt: int
    path: str
    sha256: Digest


class Rejected(Record):
    """One line of ``rejects.jsonl``: a draft that did not bank, with its reason, for a later pass.

    Attributes:
        stage: ``owner`` (it belongs to no target, or to several), ``prefilter``, ``score`` (another attempt
            was better), ``gate``, ``parked``.
    """

    tag: Tag
    at_utc: UtcTime
    stage: Literal["owner", "prefilter", "score", "gate", "parked"]
    group: TargetName | None
    name: TargetName | None
    path: str
    sha256: Digest | None
    reason: str
    detail: dict[str, Any] = Field(default_factory=dict)


class DrafterState(Record):
    """``drafter.json``: what the drafter is at, for whoever watches, and for the gater.

    Attributes:
        state: ``ended`` means for good, unless somebody starts it again.
        reason: Why it waits or ended.
        credit_usd: At the last draw.
    """

    at_utc: UtcTime
    state: Literal["drafting", "waiting", "ended"]
    reason: str
    credit_usd: float | None
    credit_reason: str | None


class LedgerRow(Record):
    """One line of ``ledger.jsonl``: one finished wave, or one later gate of its stragglers.

    Attributes:
        mode: ``wave``, or ``gate-only`` for drafts that came later or were recovered, or ``parked``.
        began_utc: When it was drawn.
        gated_utc: When its gate was done.
        wall_s: From the first shard's start to this row.
        gate_s: Of the gate alone, prefilter and commit included.
        truncated_turns: Turns that were cut off at their limit.
        unresolved: Drafts without exactly one owner.
        prefilter: Drafts by status.
        gated: Drafts that came before a gate.
        banked: Targets that it banked.
        commit: The commit that holds them; null where nothing was banked.
        credit_usd: Credit that was left, in US dollars; null where nobody knows.
        harvest: ``done``, ``failed`` or ``none``.
    """

    format: Literal["roundkit-wave-row/1"]
    plan_sha256: Digest
    tag: Tag
    mode: Literal["wave", "gate-only", "parked"]
    provenance: Provenance
    began_utc: UtcTime | None
    gated_utc: UtcTime
    wall_s: float | None
    gate_s: float
    workers: int | None
    band: Identifier
    lever_set: Identifier
    targets: Count
    drafts: Count
    truncated_turns: Count | None
    unresolved: Count
    prefilter: dict[str, Count]
    gated: Count
    banked: Count
    commit: CommitId | None
    credit_usd: float | None
    credit_reason: str | None
    harvest: Literal["done", "failed", "none"]
    traffic: WaveTraffic | None
    decision: WorkerDecision | None
