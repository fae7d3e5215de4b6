"""Alerts."""

from notify import send


def disk_full(host: str) -> str:
    """Tell the operators that a disk is full."""
    return send("operators", f"disk full on {host}")


def power_lost(room: str) -> str:
    """Tell the operators that a room has no power."""
    return send("operators", f"no power in {room}")
