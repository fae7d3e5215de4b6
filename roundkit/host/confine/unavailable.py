"""The refusal to run anything when the boundary cannot be built."""

from __future__ import annotations

from roundkit.core.errors import RoundkitError


class ConfinementUnavailable(RoundkitError):
    """The host cannot confine a command, so nothing was run.

    Attributes:
        reason: Stable code, e.g. ``bwrap-missing`` or ``userns-limit``.
        detail: What was found.
        remedy: What a person can do about it.
    """

    exit_code = 3

    def __init__(self, reason: str, detail: str, remedy: str = "") -> None:
        self.reason = reason
        self.detail = detail
        self.remedy = remedy
        text = f"[{reason}] confinement is unavailable: {detail}"
        super().__init__(f"{text}\n    → {remedy}" if remedy else text)
