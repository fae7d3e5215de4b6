"""What a test needs of the machine beside Python and git; CI installs it, so that there the tests fail."""

from __future__ import annotations

import os

import pytest

from roundkit.host.confine.cgroup import Cgroup
from roundkit.host.probes import PROBE_LIMITS
from roundkit.measure.instruments.tools import find_tool


def _needs(tool: str) -> pytest.MarkDecorator:
    absent = find_tool(tool) is None and "ROUNDKIT_CI" not in os.environ
    return pytest.mark.skipif(absent, reason=f"{tool} is not installed")


needs_fish = _needs("fish")
needs_zsh = _needs("zsh")
needs_perf = _needs("perf")
needs_valgrind = _needs("valgrind")


def _counts_peaks() -> bool:
    group = Cgroup(PROBE_LIMITS, peak_memory=True)
    try:
        return group.peak_memory_bytes() is not None
    finally:
        group.close()


needs_peak_memory = pytest.mark.skipif(
    "ROUNDKIT_CI" not in os.environ and not _counts_peaks(),
    reason="no cgroup here, that this user may write, counts the peak of a run",
)


def _counts_cpu() -> bool:
    group = Cgroup(PROBE_LIMITS)
    try:
        return "cpu" in group.enforced
    finally:
        group.close()


needs_cpu_time = pytest.mark.skipif(
    "ROUNDKIT_CI" not in os.environ and not _counts_cpu(),
    reason="no cgroup here, that this user may write, counts the CPU time of a run",
)
