"""The order of a gate's run, and which waves and drafts wait for one."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal, get_args

from roundkit.models.wave_gate import GateStep, OwnersStep, PickStep, PrefilterStep
from roundkit.models.wave_records import LedgerRow

Step = Literal["owners", "prefilter", "pick", "gate", "commit", "harvest", "row"]
STEPS: tuple[Step, ...] = get_args(Step)
"""Each leaves one record, written once; what a killed gater did not finish is done anew."""

Identity = tuple[str, str, str]
"""Group, name and digest of a draft."""


def next_step(done: Collection[str]) -> Step | None:
    """Return the first step that has left no record; None once the row is written."""
    return next((step for step in STEPS if step not in done), None)


def waiting_waves(drafted: Iterable[str], ledger: Iterable[LedgerRow]) -> list[str]:
    """Return the tags of drafted waves that have no row yet, in their order."""
    finished = {row.tag for row in ledger if row.mode == "wave"}
    return sorted((tag for tag in drafted if tag not in finished), key=lambda tag: (len(tag), tag))


def decided(
    owners: OwnersStep, prefilter: PrefilterStep, pick: PickStep, gate: GateStep
) -> frozenset[Identity]:
    """Return the drafts of a finished run that no later run of the same wave looks at again.

    Left open are drafts that the prefilter or the gate gave no answer for, and attempts that another one
    was taken before.
    """
    closed = {
        (result.group, result.name, result.sha256)
        for result in prefilter.results
        if result.status not in {"agree", "error"}
    }
    closed |= {(draft.group, draft.name, draft.sha256) for draft in pick.parked}
    for group in gate.groups:
        closed |= {(draft.group, draft.name, draft.sha256) for draft in group.banked}
        closed |= {
            (reject.draft.group, reject.draft.name, reject.draft.sha256)
            for reject in group.rejected
            if reject.decided
        }
    known = {(draft.group, draft.name, draft.sha256) for draft in owners.drafts}
    return frozenset(closed & known)
