"""Devices that are declared by files, so that tests can make them busy, drift or vanish.

Each device is a file ``<name>.json`` in the folder that ``ROUNDKIT_FIXTURE_DEVICES`` names::

    {"identity": "fixture A", "readings": {"temperature_c": 40.0}, "problem": null,
     "problem_after": null, "cpus": [0]}

``problem`` disqualifies the device at once, ``problem_after`` only after an experiment.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roundkit.core.canonical import parse_json
from roundkit.core.errors import Refused
from roundkit.host.devices.base import Binding, DeviceState
from roundkit.host.devices.limits import NO_LIMITS, DeviceLimits, within_limits

FIXTURE_VARIABLE = "ROUNDKIT_FIXTURE_DEVICES"


class FixturePlatform:
    """Declared devices; nothing of the machine is behind them."""

    name = "fixture"

    def inspect(self, device: str) -> DeviceState:
        """Read the device's file."""
        declared = _declared(device)
        if isinstance(declared, str):
            return DeviceState(device, "no such device", {}, declared)
        return DeviceState(
            device,
            str(declared.get("identity", device)),
            declared.get("readings", {}),
            declared.get("problem"),
        )

    def list(self) -> tuple[str, ...]:
        """Return the devices that the folder declares."""
        folder = os.environ.get(FIXTURE_VARIABLE)
        return tuple(sorted(path.stem for path in Path(folder).glob("*.json"))) if folder else ()

    def qualify(
        self, device: str, earlier: DeviceState | None = None, limits: DeviceLimits = NO_LIMITS
    ) -> DeviceState:
        """Take the problem from the device's file."""
        state = within_limits(self.inspect(device), limits)
        declared = _declared(device)
        if state.problem is None and earlier is not None and isinstance(declared, dict):
            return DeviceState(device, state.identity, state.readings, declared.get("problem_after"))
        return state

    def bind(self, devices: Sequence[str]) -> Binding:
        """Pin to the cores that the devices' files name, if any does."""
        cpus: set[int] = set()
        for device in devices:
            declared = _declared(device)
            cpus.update(declared.get("cpus", ()) if isinstance(declared, dict) else ())
        return Binding(cpus=frozenset(cpus) or None)


def _declared(device: str) -> dict[str, Any] | str:
    """Return what the device's file says, or what is wrong with it."""
    folder = os.environ.get(FIXTURE_VARIABLE)
    if not folder:
        return f"{FIXTURE_VARIABLE} names no folder of devices"
    if device != Path(device).name:
        return f"{device!r} is no plain name"
    try:
        declared = parse_json((Path(folder) / f"{device}.json").read_bytes(), place=device)
    except OSError:
        return f"there is no fixture device {device!r}"
    except Refused as error:
        return str(error)
    return declared if isinstance(declared, dict) else f"the file of {device!r} holds no object"
