"""What this machine is, by its hardware: never its host name, which people change."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

import psutil

_GIB = 1 << 30


def machine_identity() -> str:
    """Return the machine's hardware as one line: processor, number of cores, memory in whole GiB."""
    cores = os.cpu_count() or 0
    memory_gib = round(psutil.virtual_memory().total / _GIB)
    return f"{processor_name()}, {cores} cores, {memory_gib} GiB"


@cache
def processor_name() -> str:
    """Return the processor's model as the kernel names it, else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == "model name" and value.strip():
            return " ".join(value.split())
    return platform.machine() or "unknown processor"
