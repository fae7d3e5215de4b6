"""Which submissions nobody has looked at yet, however much a lane puts around them."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator

from roundkit.models.ledger import BEYOND_THE_CAP, TicketRecord
from roundkit.models.round_plan import RoundPlan
from roundkit.rounds.lane_doors import OutboxScan, outbox_entries, printable_name
from roundkit.rounds.layout import RoundFolder
from roundkit.store import RoundStore

FLOOD = "*"
"""Recorded in place of all further entries of a lane that use up none of its submissions."""

_NAMES_AT_ONCE = 5000
_READ_AT_ONCE = 50
_RECORDED_A_LANE = 1000
_RECORDED_BYTES_A_LANE = 16 << 20
_KEY = re.compile(r"[0-9a-f]{64}")


class LaneOutbox:
    """What one lane's outbox holds that has not been decided, a bounded piece at each call.

    Names that were decided are remembered, as hashes, so that a flood costs memory and time once.

    Args:
        scan: Reads the folder.
    """

    def __init__(self, scan: OutboxScan) -> None:
        self._scan = scan
        self._decided: set[int] = set()
        self._recorded = 0
        self._recorded_bytes = 0
        self._pending: dict[str, int] = {}

    @property
    def flooded(self) -> bool:
        """Whether so much beyond its submissions is on record that further entries are not, one by one."""
        return self._recorded >= _RECORDED_A_LANE or self._recorded_bytes >= _RECORDED_BYTES_A_LANE

    @property
    def caught_up(self) -> bool:
        """Whether the whole folder has been read, and nothing of it waits."""
        return self._scan.at_end and not self._pending

    def next_entries(self) -> list[str]:
        """Return some undecided entries, in the order in which they were handed over, as far as it was read.

        The caller decides each and says so.
        """
        if len(self._pending) < _READ_AT_ONCE:
            self._pending |= dict.fromkeys(self._new_names(), 0)
            self._pending |= self._scan.handed_over_ns(
                [name for name, handed_ns in self._pending.items() if not handed_ns]
            )
        batch = heapq.nsmallest(
            _READ_AT_ONCE, self._pending, key=lambda name: (self._pending[name], printable_name(name))
        )
        for name in batch:
            del self._pending[name]
        return batch

    def _new_names(self) -> Iterator[str]:
        for name in self._scan.read(_NAMES_AT_ONCE):
            if hash(printable_name(name)) in self._decided or name in self._pending:
                continue
            if self.flooded and _KEY.fullmatch(name) is None:
                self.decided(name)  # cannot be a submission, whatever it holds
            else:
                yield name

    def decided(self, name: str) -> None:
        """Remember that an entry was decided."""
        self._decided.add(hash(printable_name(name)))

    def decided_beyond(self, name: str, size_bytes: int = 0) -> None:
        """Remember an entry that used up none of the lane's submissions, and how large its record is."""
        self.decided(name)
        self._recorded += 1
        self._recorded_bytes += size_bytes

    def decided_ticket(self, ticket: TicketRecord) -> None:
        """Remember an entry that became a ticket, be it one that came too late or over the cap."""
        if ticket.reject_cause in BEYOND_THE_CAP:
            self.decided_beyond(ticket.key, len(ticket.manifest.to_bytes()))
        else:
            self.decided(ticket.key)


class Outboxes:
    """The outboxes of all lanes, as one process reads them again and again."""

    def __init__(self, folder: RoundFolder, plan: RoundPlan, store: RoundStore) -> None:
        self.lanes = {lane.id: LaneOutbox(OutboxScan(folder.clone(lane.id))) for lane in plan.lanes}
        for ticket in store.tickets.all():
            self.lanes[ticket.lane].decided_ticket(ticket)
        for submission in store.tickets.rejected_submissions():
            self.lanes[submission.lane].decided_beyond(submission.entry)
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


def unseen_submissions(
    folder: RoundFolder, plan: RoundPlan, store: RoundStore | None
) -> list[tuple[str, str]]:
    """Return lane and outbox entry of what may be a submission and has not been taken in, lane by lane.

    Args:
        folder: The round.
        plan: Its plan.
        store: Its store; null where nobody has served it yet.
    """
    rejected = [] if store is None else store.tickets.rejected_submissions()
    known = {(one.lane, one.entry) for one in rejected}
    return [
        (lane.id, entry)
        for lane in plan.lanes
        if (lane.id, FLOOD) not in known
        for entry in outbox_entries(folder.clone(lane.id), _KEY.fullmatch)
        if (lane.id, entry) not in known and not (store is not None and store.tickets.has(entry))
    ]
