"""Between which readings a device may measure, as a plan says it; without a limit nothing is judged."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from roundkit.host.devices.base import DeviceState


class DeviceLimits(BaseModel):
    """Limits of a device set's readings, checked before and after each experiment; null is no limit.

    A reading that the device does not give breaks its limit: what cannot be checked is not within it.

    Attributes:
        max_temperature_c: Highest temperature.
        min_clock_mhz: Lowest clock; for clocks that are locked, since an idle device lowers its own.
        max_memory_used_mib: Most memory that may be in use while nothing is measured.
        max_ecc_uncorrected: Most memory errors since the driver was loaded that could not be corrected.
        max_load_1min: Highest load of the machine.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    max_temperature_c: float | None = None
    min_clock_mhz: Annotated[float, Field(gt=0)] | None = None
    max_memory_used_mib: Annotated[float, Field(ge=0)] | None = None
    max_ecc_uncorrected: Annotated[float, Field(ge=0)] | None = None
    max_load_1min: Annotated[float, Field(gt=0)] | None = None


NO_LIMITS = DeviceLimits()


def within_limits(state: DeviceState, limits: DeviceLimits) -> DeviceState:
    """Return a state with the first limit that it breaks as its problem, unless it has a problem already."""
    problem = state.problem or limit_problem(state, limits)
    return DeviceState(state.device, state.identity, state.readings, problem)


def limit_problem(state: DeviceState, limits: DeviceLimits) -> str | None:
    """Say which limit a reading breaks first; None where all are kept."""
    for name, limit in limits.model_dump().items():
        if limit is None:
            continue
        bound, _, reading = name.partition("_")
        reading = {"clock_mhz": _clock_of(state)}.get(reading, reading)
        value = state.readings.get(reading)
        if not isinstance(value, float | int):
            return f"{state.device} does not give its {reading}, which the plan limits"
        if (value > limit) if bound == "max" else (value < limit):
            return f"{reading} of {state.device} is {value:g}, the plan's limit {limit:g}"
    return None


def _clock_of(state: DeviceState) -> str:
    """Return under which name a device gives its clock."""
    return "clock_mhz" if "clock_mhz" in state.readings else "frequency_mhz"
