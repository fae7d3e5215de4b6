"""How a measurement says that it could not be made, for reasons that are not a candidate's."""

from __future__ import annotations

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


class DeviceBusy(RoundkitError):
    """No device set is free now; nothing was started and nothing is lost by trying again."""
