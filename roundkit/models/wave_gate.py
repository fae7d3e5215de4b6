"""What one gate's run of a wave leaves in its folder: one record a step, each written once."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from roundkit.models.base import CommitId, Count, Digest, Record, UtcTime
from roundkit.models.wave_calls import PrefilterResult
from roundkit.models.wave_plan import TargetName
from roundkit.models.wave_records import Draft, Rejected, Target
from roundkit.models.wave_traffic import Tag

RunMode = Literal["wave", "gate-only", "parked"]


class GateRun(Record):
    """``run.json``: one pass over drafts, from their owners to a ledger row.

    Attributes:
        number: Which run of this wave it is, from 1.
        mode: ``wave``, ``gate-only`` for drafts that came later or were recovered, or ``parked``.
    """

    format: Literal["roundkit-gate-run/1"]
    plan_sha256: Digest
    tag: Tag
    number: Annotated[int, Field(ge=1)]
    mode: RunMode
    started_utc: UtcTime


class OwnersStep(Record):
    """``owners.json``: the drafts that belong to exactly one target, copied; and those that do not.

    Attributes:
        drafts: Each with its owner, best known first: by attempt, then by shard.
        targets: Targets of these drafts.
        refused: Drafts without one owner, and drafts of targets that are banked already.
        unresolved: How many had no one owner.
    """

    drafts: tuple[Draft, ...]
    targets: tuple[Target, ...]
    refused: tuple[Rejected, ...]
    unresolved: Count
    took_s: float


class PrefilterStep(Record):
    """``prefilter.json``: one result a draft, in the order of the drafts.

    Attributes:
        failure: Why the command gave no answer; null where it did.
    """

    results: tuple[PrefilterResult, ...]
    failure: str | None
    took_s: float


class PickStep(Record):
    """``pick.json``: the one draft of each target that goes to the gate.

    Attributes:
        chosen: For the gate, now.
        parked: For a gate of their group's own, later.
        refused: What did not pass, and the attempts that another one was better than.
    """

    chosen: tuple[Draft, ...]
    parked: tuple[Draft, ...]
    refused: tuple[Rejected, ...]
    took_s: float


class GateReject(Record):
    """One draft that its gate did not bank.

    Attributes:
        draft: The draft.
        decided: Whether the gate said so; false where it gave no answer, so that a later pass may try again.
    """

    draft: Draft
    reason: str
    decided: bool


class GroupResult(Record):
    """``groups/….json``: what the gate of one group came to.

    Attributes:
        head: HEAD of the tree that it was gated on; for another one the answer does not hold.
        banked: Drafts that are right.
        calls: Calls of the gate that it took.
    """

    group: TargetName
    head: CommitId
    banked: tuple[Draft, ...]
    rejected: tuple[GateReject, ...]
    calls: Count
    took_s: float


class GateStep(Record):
    """``gate.json``: every group's result, and what was done to the tree before.

    Attributes:
        groups: One result a group.
        found: What was found in the tree that was not ours.
        restored: Paths that were put back before.
    """

    groups: tuple[GroupResult, ...]
    found: CommitId | None
    restored: tuple[str, ...]
    took_s: float


class CommitStep(Record):
    """``commit.json``.

    Attributes:
        commit: What holds the banked drafts; null where there is none.
        found: The commit of what lay changed in the tree before it; null where nothing did.
        restored: Watched files that had collapsed.
        banked: What the commit holds.
        refused: Drafts that their gate banked and that cannot be laid into the tree.
    """

    commit: CommitId | None
    found: CommitId | None
    restored: tuple[str, ...]
    banked: tuple[Draft, ...]
    refused: tuple[Rejected, ...]
    took_s: float


class HarvestStep(Record):
    """``harvest.json``: whether lessons were taken, and why not.

    Attributes:
        failure: What broke; null where nothing did.
    """

    state: Literal["done", "failed", "none"]
    failure: str | None
    took_s: float


class RejectRows(Record):
    """``rejects.json``: a run's lines of the campaign's rejects, before they are added there.

    Attributes:
        rows: The lines.
    """

    rows: tuple[Rejected, ...]


class RunEnd(Record):
    """``end.json``: nothing of the run is left to do."""

    ended_utc: UtcTime


class ParkedDraft(Record):
    """A draft that waits for the gate of its group's own; its bytes lie beside it, under their digest.

    Attributes:
        target: Its target.
        draft: The draft.
    """

    tag: Tag
    parked_utc: UtcTime
    target: Target
    draft: Draft
