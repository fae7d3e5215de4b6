"""How a measurement says that it could not be made, for reasons that are not a candidate's."""

from __future__ import annotations

import os
from pathlib import Path

from roundkit.core.errors import NO_SPACE as NO_SPACE
from roundkit.core.errors import RoundkitError


class MeasurementBroke(RoundkitError):
    """The infrastructure failed: no result for or against anything.

    Attributes:
        reason: Stable code, e.g. ``disk-full``.
        detail: What was found.
    """

    def __init__(self, reason: str, detail: str) -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(f"[{reason}] {detail}")


def host_reason(error: OSError) -> str:
    """Return the stable code of an error of the host."""
    return "disk-full" if error.errno in NO_SPACE else "host-error"


def is_full(folder: Path) -> bool:
    """Say whether an ordinary user can write nothing more to a folder's disk."""
    return os.statvfs(folder).f_bavail == 0


class DeviceBusy(RoundkitError):
    """No device set is free now; nothing was started and nothing is lost by trying again."""
