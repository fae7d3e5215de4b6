"""Processor cores: do they exist, how are they clocked, how warm are they."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from roundkit.host.devices.base import Binding, DeviceState, Reading
from roundkit.host.devices.limits import NO_LIMITS, DeviceLimits, within_limits
from roundkit.host.devices.machine import processor_name

_CORES = Path("/sys/devices/system/cpu")
_KHZ_IN_MHZ = 1000.0


class CpuPlatform:
    """Cores by number, as the kernel counts them."""

    name = "cpu"

    def inspect(self, device: str) -> DeviceState:
        """Read one core: governor, frequency, temperature, and the load of the machine."""
        number = _number(device)
        allowed = os.sched_getaffinity(0)
        if number is None or number not in allowed:
            listed = ", ".join(map(str, sorted(allowed)))
            return DeviceState(device, "no such core", {}, f"core {device} is not among the cores {listed}")
        folder = _CORES / f"cpu{number}" / "cpufreq"
        readings: dict[str, Reading] = {
            "governor": _text(folder / "scaling_governor"),
            "frequency_mhz": _frequency_mhz(folder),
            "temperature_c": _temperature_c(),
            "load_1min": os.getloadavg()[0],
        }
        return DeviceState(device, f"{processor_name()}, core {number}", readings)

    def list(self) -> tuple[str, ...]:
        """Return the cores that this process may run on."""
        return tuple(map(str, sorted(os.sched_getaffinity(0))))

    def qualify(
        self, device: str, earlier: DeviceState | None = None, limits: DeviceLimits = NO_LIMITS
    ) -> DeviceState:
        """Refuse a core that this process may not use, beyond its limits, or with another governor."""
        state = within_limits(self.inspect(device), limits)
        if state.problem is not None or earlier is None:
            return state
        for what, before, now in (
            ("identity", earlier.identity, state.identity),
            ("governor", earlier.readings.get("governor"), state.readings.get("governor")),
        ):
            if before != now:
                problem = f"the {what} of core {device} went from {before} to {now}"
                return DeviceState(device, state.identity, state.readings, problem)
        return state

    def bind(self, devices: Sequence[str]) -> Binding:
        """Pin to exactly these cores."""
        return Binding(cpus=frozenset(map(int, devices)))


def _number(device: str) -> int | None:
    return int(device) if device.isascii() and device.isdigit() else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except OSError:
        return None


def _frequency_mhz(folder: Path) -> float | None:
    khz = _text(folder / "scaling_cur_freq")
    return int(khz) / _KHZ_IN_MHZ if khz is not None and khz.isdigit() else None


def _temperature_c() -> float | None:
    """Return the hottest sensor of the processor package, where the machine shows any."""
    # Models name devices, and what reads evidence on another system has no such counters.
    import psutil

    try:
        sensors = psutil.sensors_temperatures()
    except (AttributeError, OSError):
        return None
    found = [
        reading.current
        for name in ("coretemp", "k10temp", "zenpower", "cpu_thermal")
        for reading in sensors.get(name, [])
        if reading.current is not None
    ]
    return max(found, default=None)
