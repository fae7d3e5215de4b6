"""Which instruments there are, what each gives, and which of them any trial gives beside its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import get_args

from roundkit.measure.trial import PEAK_MEMORY_METRIC
from roundkit.models.instruments import UNITS, Instrument
from roundkit.models.measurement import TrialResources

_MS_IN_S = 1000.0

METRICS: Mapping[Instrument, tuple[str, str]] = {
    "wall": ("wall_ms", "ms"),
    "cpu": ("cpu_ms", "ms"),
    "instructions": ("instructions", UNITS["instructions"]),
    "peak-memory": (PEAK_MEMORY_METRIC, UNITS["peak-memory"]),
}
"""Name and unit of the metric of each instrument of the coordinator's own; of each, less is better."""

BESIDE: Mapping[Instrument, Callable[[TrialResources], float | None]] = {
    "wall": lambda read: None if read.wall_s is None else read.wall_s * _MS_IN_S,
    "cpu": lambda read: None if read.cpu_s is None else read.cpu_s * _MS_IN_S,
    "peak-memory": lambda read: read.peak_memory_bytes,
}
"""What the coordinator reads of every trial, whatever decides, in the unit of :data:`METRICS`."""


def instruments() -> tuple[Instrument, ...]:
    """Return every instrument, the benchmark's own first."""
    return get_args(Instrument)
