"""Which instruments there are, what each gives, and which of them any trial gives beside its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from roundkit.models.instruments import UNITS, Instrument
from roundkit.models.readings import PEAK_MEMORY_METRIC

METRICS: Mapping[Instrument, tuple[str, str]] = {
    "wall": ("wall_ms", "ms"),
    "cpu": ("cpu_ms", "ms"),
    "instructions": ("instructions", UNITS["instructions"]),
    "peak-memory": (PEAK_MEMORY_METRIC, UNITS["peak-memory"]),
}
"""Name and unit of the metric of each instrument of the coordinator's own; of each, less is better."""

BESIDE: frozenset[Instrument] = frozenset({"wall", "cpu"})
"""What the coordinator reads of every trial, whatever decides."""


def instruments() -> tuple[Instrument, ...]:
    """Return every instrument, the benchmark's own first."""
    return get_args(Instrument)
