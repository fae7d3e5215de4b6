"""Cores that nothing is measured on: where builds and agents run meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterable

from roundkit.host.confine import CpuSet
from roundkit.host.tuning import thread_siblings
from roundkit.models.round_plan import DeviceSet


def free_cores(device_sets: Iterable[DeviceSet], *, pinned: bool) -> CpuSet | None:
    """Return the cores for what runs beside measurements, so that it cannot slow one side of them.

    Where there are enough, those that share a processor core with a measured one are left out too.

    Args:
        device_sets: What the round measures on.
        pinned: Whether its trials are pinned to the cores of their device set.

    Returns:
        None where any core will do: trials run on all of them, no core is measured on, or none is left.
    """
    measured = {
        int(device)
        for item in device_sets
        if item.platform == "cpu"
        for device in item.devices
        if device.isascii() and device.isdigit()
    }
    if not pinned or not measured:
        return None
    beside = os.sched_getaffinity(0) - measured
    return frozenset(beside - thread_siblings(measured)) or frozenset(beside) or None
