"""What a kind of device has to answer, whichever platform it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from roundkit.host.confine import CpuSet, Mount

if TYPE_CHECKING:
    from roundkit.host.devices.limits import DeviceLimits

Reading = float | str | None


@dataclass(frozen=True)
class DeviceState:
    """What a device says now.

    Attributes:
        device: Its name within the platform, e.g. ``3`` for a core.
        identity: What it is, stable over reboots and renamed hosts.
        readings: Named readings with their unit in the name; null where the host does not tell.
        problem: Why no measurement may run on it; null when it qualifies.
    """

    device: str
    identity: str
    readings: Mapping[str, Reading]
    problem: str | None = None


@dataclass(frozen=True)
class Binding:
    """What a trial needs to reach the devices.

    Attributes:
        cpus: Cores to pin to, where the devices are cores or come with some.
        nodes: Device files that the trial may use.
        readable: Driver files to show inside the boundary.
        env: Variables that name the devices.
    """

    cpus: CpuSet | None = None
    nodes: tuple[Path, ...] = ()
    readable: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


class DevicePlatform(Protocol):
    """One kind of device. A new platform is one module that implements this."""

    name: str

    def inspect(self, device: str) -> DeviceState:
        """Read a device without judging it; a device that does not exist has a problem all the same."""
        ...

    def list(self) -> tuple[str, ...]:
        """Return the devices of this kind that this machine has, as plans name them."""
        ...

    def qualify(
        self, device: str, earlier: DeviceState | None = None, limits: DeviceLimits = ...
    ) -> DeviceState:
        """Read a device and say in ``problem`` why it may not be measured on, if anything.

        Args:
            device: The device.
            earlier: What it said before the experiment; what moved since then is a problem too.
            limits: What the plan says of its readings.
        """
        ...

    def bind(self, devices: Sequence[str]) -> Binding:
        """Say what a trial on these devices, qualified before, is given."""
        ...
