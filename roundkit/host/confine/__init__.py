"""The boundary around every line of candidate code.

What records hold (:mod:`roundkit.host.confine.types`) is imported at once and needs nothing of the operating
system. What makes a boundary is loaded when it is first asked for, so that evidence can be read anywhere.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from roundkit.host.confine.types import (
    Boundary,
    CpuSet,
    Destination,
    EndReason,
    Execution,
    LimitRecord,
    Limits,
    Mount,
    MountRecord,
    Network,
    Overlay,
)
from roundkit.host.confine.unavailable import ConfinementUnavailable

if TYPE_CHECKING:
    from roundkit.host.confine.cgroup import sweep
    from roundkit.host.confine.primitive import confined_execute
    from roundkit.host.confine.reader import HostileOutput, read_output

__all__ = [
    "Boundary",
    "ConfinementUnavailable",
    "CpuSet",
    "Destination",
    "EndReason",
    "Execution",
    "HostileOutput",
    "LimitRecord",
    "Limits",
    "Mount",
    "MountRecord",
    "Network",
    "Overlay",
    "confined_execute",
    "read_output",
    "sweep",
]

_ON_LINUX = {
    "HostileOutput": "reader",
    "confined_execute": "primitive",
    "read_output": "reader",
    "sweep": "cgroup",
}


def __getattr__(name: str) -> Any:
    if name not in _ON_LINUX:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_ON_LINUX[name]}"), name)
    globals()[name] = found
    return found
