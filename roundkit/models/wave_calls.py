"""What a campaign's own commands read and write: the contract that their authors program against."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from roundkit.models.base import Count, Digest, Identifier, Record
from roundkit.models.wave_plan import TargetName
from roundkit.models.wave_records import Draft, Target
from roundkit.models.wave_traffic import Tag


class DrawRequest(Record):
    """What ``draw`` reads.

    Attributes:
        targets: How many the wave has room for.
        at_least: Smallest size of the band.
        under: First size beyond the band; null: no bound.
        levers: What the lever set tells a draft agent.
    """

    tag: Tag
    targets: int
    band: Identifier
    at_least: Count
    under: Count | None
    lever_set: Identifier
    levers: tuple[str, ...]


class DrawAnswer(Record):
    """What ``draw`` writes: every open target that it knows of in this band, best first.

    roundkit itself leaves out what is banked, being gated, excluded or without its input, collapses families
    and cuts to the wave's size; a command need not know of any of that.

    Attributes:
        targets: Open targets, best first.
    """

    targets: tuple[Target, ...]


class PrefilterRequest(Record):
    """What ``prefilter`` reads, and ``score`` for the attempts at one target.

    Attributes:
        drafts: Each one's file is ``folder`` and its ``path``.
        targets: Whose drafts they are.
        folder: Absolute, inside the command's boundary.
    """

    tag: Tag
    drafts: tuple[Draft, ...]
    targets: tuple[Target, ...]
    folder: str


class PrefilterResult(Record):
    """One draft's status: ``agree`` passes; anything else does not, ``nothing-to-check`` neither.

    Attributes:
        name: The target's name within the group.
        status: ``agree`` passes, nothing else does.
        reason: Why not, in a few words.
        detail: Whatever else the command wants on record.
    """

    group: TargetName
    name: TargetName
    sha256: Digest
    status: Literal["agree", "mismatch", "nothing-to-check", "error"]
    reason: str = ""
    detail: dict[str, Any] = Field(default_factory=dict)


class PrefilterAnswer(Record):
    """What ``prefilter`` writes.

    Attributes:
        results: One a draft.
    """

    results: tuple[PrefilterResult, ...]


class ScoreAnswer(Record):
    """What ``score`` writes: a rank for each attempt's digest, smaller is better.

    Attributes:
        scores: A rank for each draft's SHA-256; smaller is better.
    """

    scores: dict[Digest, float]


class GateRequest(Record):
    """What a group's gate reads. The drafts lie in its staging folder, under their targets' outputs."""

    tag: Tag
    group: TargetName
    targets: tuple[Target, ...]


class GateAnswer(Record):
    """What a gate writes: the names that are right. Whatever it does not name is not banked.

    Attributes:
        banked: Names of the targets that are right.
        rejected: Names of others with the reason, where there is something to say.
    """

    banked: tuple[TargetName, ...]
    rejected: dict[TargetName, str] = Field(default_factory=dict)


class HarvestRequest(Record):
    """What ``harvest`` reads: banked targets only; a draft's file is ``folder`` and its path.

    Attributes:
        folder: Absolute, inside the command's boundary.
    """

    tag: Tag
    targets: tuple[Target, ...]
    drafts: tuple[Draft, ...]
    folder: str


class HarvestAnswer(Record):
    """What ``harvest`` writes: lessons for the draft agents of later waves, as text.

    Attributes:
        lessons: Text that later draft agents are given.
    """

    lessons: str


class CreditRequest(Record):
    """What ``credit`` reads."""

    campaign_id: Identifier


class CreditAnswer(Record):
    """What ``credit`` writes: the credit that is left, null with a reason where it cannot be told.

    Attributes:
        usd: Credit that is left, in US dollars; null where it cannot be told.
        reason: Why it cannot; null where it can.
    """

    usd: float | None
    reason: str | None = None
