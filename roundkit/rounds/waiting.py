"""Which submissions nobody has looked at yet, however much a lane puts around them."""

from __future__ import annotations

import itertools
import re

from roundkit.models.round_plan import RoundPlan
from roundkit.rounds.lane_doors import OutboxScan, outbox_entries, printable_name
from roundkit.rounds.layout import RoundFolder
from roundkit.store import RoundStore

FLOOD = "*"
"""Recorded in place of all further entries of a lane that are no submissions."""

_NAMES_AT_ONCE = 5000
_READ_AT_ONCE = 50
_RECORDED_A_LANE = 1000
_KEY = re.compile(r"[0-9a-f]{64}")


class LaneOutbox:
    """What one lane's outbox holds that has not been decided, a bounded piece at each call.

    Names that were decided are remembered, as hashes, so that a flood costs memory and time once.

    Args:
        scan: Reads the folder.
        decided: Names that were decided before, printable.
        recorded: How many of them were rejected without becoming a ticket.
    """

    def __init__(self, scan: OutboxScan, decided: set[str], recorded: int) -> None:
        self._scan = scan
        self._decided = {hash(name) for name in decided}
        self._recorded = recorded
        self._pending: dict[str, None] = {}

    @property
    def flooded(self) -> bool:
        """Whether so much was rejected that further entries are not recorded one by one."""
        return self._recorded >= _RECORDED_A_LANE

    @property
    def caught_up(self) -> bool:
        """Whether the whole folder has been read, and nothing of it waits."""
        return self._scan.at_end and not self._pending

    def next_entries(self) -> list[str]:
        """Return some undecided entries; the caller decides each and says so."""
        if len(self._pending) < _READ_AT_ONCE:
            for name in self._scan.read(_NAMES_AT_ONCE):
                if hash(printable_name(name)) in self._decided or name in self._pending:
                    continue
                if self.flooded and _KEY.fullmatch(name) is None:
                    self.decided(name)  # cannot be a submission, whatever it holds
                else:
                    self._pending[name] = None
        batch = sorted(itertools.islice(self._pending, _READ_AT_ONCE))
        for name in batch:
            del self._pending[name]
        return batch

    def decided(self, name: str, *, rejected: bool = False) -> None:
        """Remember that an entry was decided, and whether it became no ticket."""
        self._decided.add(hash(printable_name(name)))
        self._recorded += rejected


class Outboxes:
    """The outboxes of all lanes, as one process reads them again and again."""

    def __init__(self, folder: RoundFolder, plan: RoundPlan, store: RoundStore) -> None:
        decided: dict[str, set[str]] = {lane.id: set() for lane in plan.lanes}
        for ticket in store.tickets.all():
            decided[ticket.lane].add(ticket.key)
        rejected = {lane.id: 0 for lane in plan.lanes}
        for submission in store.tickets.rejected_submissions():
            decided[submission.lane].add(submission.entry)
            rejected[submission.lane] += 1
        self.lanes = {
            lane.id: LaneOutbox(OutboxScan(folder.clone(lane.id)), decided[lane.id], rejected[lane.id])
            for lane in plan.lanes
        }
        self._settled: set[str] = set()

    @property
    def caught_up(self) -> bool:
        """Whether every outbox was read to its end since the last one that held something new."""
        return len(self._settled) == len(self.lanes)

    def note_progress(self, *, found: bool) -> None:
        """Take note of one round through all lanes."""
        if found:
            self._settled.clear()
        self._settled |= {lane for lane, outbox in self.lanes.items() if outbox.caught_up}


def unseen_submissions(folder: RoundFolder, plan: RoundPlan, store: RoundStore) -> list[tuple[str, str]]:
    """Return lane and outbox entry of what may be a submission and has not been taken in, lane by lane."""
    known = {(rejected.lane, rejected.entry) for rejected in store.tickets.rejected_submissions()}
    return [
        (lane.id, entry)
        for lane in plan.lanes
        if (lane.id, FLOOD) not in known
        for entry in outbox_entries(folder.clone(lane.id), _KEY.fullmatch)
        if (lane.id, entry) not in known and not store.tickets.has(entry)
    ]
