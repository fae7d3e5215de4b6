"""What a proxied command asked for: one row a destination and outcome, in bounded number."""

from __future__ import annotations

from dataclasses import dataclass, field

from roundkit.host.confine.proxy.destinations import HostPort
from roundkit.host.confine.types import Destination, DestinationOutcome

_MOST_ROWS = 256


@dataclass
class Row:
    """The counts of one destination and outcome."""

    connections: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0


@dataclass
class DestinationBook:
    """Counts requests by destination and outcome.

    A command can name any number of destinations: those beyond the first 256 share one row without a name
    for each outcome.
    """

    _rows: dict[tuple[HostPort | None, DestinationOutcome], Row] = field(default_factory=dict)

    def enter(self, destination: HostPort | None, outcome: DestinationOutcome) -> Row:
        """Count one request and return its row, whose bytes the caller adds up."""
        key = (destination, outcome)
        if key not in self._rows and len(self._rows) >= _MOST_ROWS:
            key = (None, outcome)
        row = self._rows.setdefault(key, Row())
        row.connections += 1
        return row

    def records(self) -> tuple[Destination, ...]:
        """Return the rows in the order in which they were first met."""
        return tuple(
            Destination(
                host=None if destination is None else destination.host,
                port=None if destination is None else destination.port,
                outcome=outcome,
                connections=row.connections,
                sent_bytes=row.sent_bytes,
                received_bytes=row.received_bytes,
            )
            for (destination, outcome), row in self._rows.items()
        )
