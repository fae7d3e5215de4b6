"""Which submissions nobody has looked at yet."""

from __future__ import annotations

from roundkit.models.round_plan import RoundPlan
from roundkit.rounds.lane_doors import outbox_entries, printable_name
from roundkit.rounds.layout import RoundFolder
from roundkit.store import RoundStore

ENTRIES_AT_ONCE = 1000


def unseen_submissions(folder: RoundFolder, plan: RoundPlan, store: RoundStore) -> list[tuple[str, str]]:
    """Return lane and outbox entry of everything that has not been taken in, lane by lane."""
    found = []
    for lane in plan.lanes:
        entries = {
            printable_name(entry): entry for entry in outbox_entries(folder.clone(lane.id), ENTRIES_AT_ONCE)
        }
        found += [(lane.id, entries[name]) for name in store.tickets.unseen(lane.id, list(entries))]
    return found
