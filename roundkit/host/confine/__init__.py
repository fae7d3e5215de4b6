"""The boundary around every line of candidate code."""

from __future__ import annotations

from roundkit.host.confine.cgroup import sweep
from roundkit.host.confine.primitive import confined_execute
from roundkit.host.confine.reader import HostileOutput, read_output
from roundkit.host.confine.types import (
    Boundary,
    CpuSet,
    EndReason,
    Execution,
    LimitRecord,
    Limits,
    Mount,
    MountRecord,
    Network,
)
from roundkit.host.confine.unavailable import ConfinementUnavailable

__all__ = [
    "Boundary",
    "ConfinementUnavailable",
    "CpuSet",
    "EndReason",
    "Execution",
    "HostileOutput",
    "LimitRecord",
    "Limits",
    "Mount",
    "MountRecord",
    "Network",
    "confined_execute",
    "read_output",
    "sweep",
]
