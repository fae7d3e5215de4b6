"""The search plan of a campaign: directions worth trying, what came of them, and where the search stands."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from roundkit.models.base import CommitId, Fraction, Glob, Identifier, Record, UtcTime

EntryStatus = Literal["planned", "kept", "rejected"]


class SearchPlanEntry(Record):
    """One direction worth trying.

    Attributes:
        target_stage: Stage of the program that it attacks.
        exposed_share: Part of end-to-end time that the stage holds alone.
        conditional_headroom: Part of end-to-end time that could go if the hypothesis holds.
        plane: Exactly one kind of change.
        hypothesis: What it expects, in a sentence.
        scope: Proposed globs, if somebody has looked.
        status: Whether it is still to be tried.
        evidence: Ledger of the round that decided; null before.
    """

    id: Identifier
    target_stage: str
    exposed_share: Fraction
    conditional_headroom: Fraction
    plane: str | tuple[str, ...]
    hypothesis: str
    scope: tuple[Glob, ...] = ()
    status: EntryStatus
    evidence: str | None = None


class SearchPlanRevision(Record):
    """One change of an entry's status; rows are only ever appended.

    Attributes:
        time: When.
        round: The round that decided.
        from_status: Status before.
        to_status: Status after.
        reason: Why, in a sentence.
        evidence: Ledger of the round; null without.
        changed_condition: What changed since it last failed; null where nothing had to.
    """

    time: UtcTime
    round: Identifier
    entry: Identifier
    from_status: EntryStatus = Field(alias="from")
    to_status: EntryStatus = Field(alias="to")
    reason: str
    evidence: str | None = None
    changed_condition: str | None = None


class NegativeMemory(Record):
    """What failed, and under which conditions.

    Attributes:
        round: The round in which it failed.
        conditions: Under which conditions.
        reason: How, in a sentence.
        evidence: Ledger of the round; null without.
    """

    entry: Identifier
    round: Identifier
    conditions: str
    reason: str
    evidence: str | None = None


class SearchState(Record):
    """Where the campaign stands.

    Attributes:
        incumbent_revision: Commit that the next round starts from.
        incumbent_evidence: Ledger of the round that made it the incumbent; null for the first.
        next_candidate_parent: The same, or null: lanes start from the incumbent.
        isolation: How lanes are kept apart: a note for readers, which changes nothing.
        import_path: Where the program is imported from: a note for readers, which changes nothing.
        last_round_ledger: Ledger of the round before; null for the first.
    """

    incumbent_revision: CommitId
    incumbent_evidence: str | None = None
    next_candidate_parent: CommitId | None = None
    isolation: str = "lane-clone"
    import_path: str | None = None
    last_round_ledger: str | None = None
