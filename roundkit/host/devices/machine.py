"""What this machine is, by its hardware: never its host name, which people change."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

from roundkit.core.canonical import digest_json

_GIB = 1 << 30
_BOARD = Path("/sys/class/dmi/id/product_uuid")
_CARDS = Path("/sys/class/net")


def machine_identity() -> str:
    """Return the machine's hardware as one line: processor, number of cores, memory in whole GiB."""
    # Models name devices, and what reads evidence on another system has no such counters.
    import psutil

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


@cache
def machine_sha256() -> str | None:
    """Return a digest of what the hardware calls itself: the same after a reboot or under another name.

    The addresses burnt into its network cards, else the board's own number, which only root may read. A
    digest, because records are published and serial numbers need not be.

    Returns:
        None where the hardware tells neither, as in many containers.
    """
    identity = _card_addresses() or _board_identity()
    return digest_json(["machine", identity]) if identity else None


def _board_identity() -> list[str]:
    try:
        number = _BOARD.read_text().strip().lower()
    except OSError:
        return []
    return [number] if number.strip("0-") else []


def _card_addresses() -> list[str]:
    found = []
    for card in sorted(_CARDS.glob("*")):
        try:
            burnt_in = (card / "addr_assign_type").read_text().strip() == "0"
            address = (card / "address").read_text().strip()
        except OSError:
            continue
        # Cards that the kernel made up have no device behind them.
        if burnt_in and (card / "device").exists() and address.strip("0:"):
            found.append(address)
    return sorted(found)
