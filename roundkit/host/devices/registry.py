"""Which platforms there are."""

from __future__ import annotations

from roundkit.core.errors import refuse
from roundkit.host.devices.base import DevicePlatform
from roundkit.host.devices.cpu import CpuPlatform
from roundkit.host.devices.cuda import CudaPlatform
from roundkit.host.devices.fixture import FixturePlatform

_PLATFORMS: dict[str, DevicePlatform] = {
    platform.name: platform for platform in (CpuPlatform(), CudaPlatform(), FixturePlatform())
}


def platforms() -> tuple[DevicePlatform, ...]:
    """Return every platform, in a fixed order."""
    return tuple(_PLATFORMS.values())


def platform_named(name: str) -> DevicePlatform:
    """Return the platform of that name.

    Raises:
        Refused: ``unknown-platform``.
    """
    if name not in _PLATFORMS:
        raise refuse(
            "unknown-platform",
            f"there is no device platform {name!r}",
            place="device_sets[].platform",
            remedy=f"use one of: {', '.join(sorted(_PLATFORMS))}",
        )
    return _PLATFORMS[name]


def lease_names(platform: str, devices: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names under which devices are leased on the whole host, e.g. ``cpu:3``.

    A core leases by its number, however a plan spells it (``03`` is ``3``).
    """
    numbered = platform == "cpu"
    return tuple(f"{platform}:{_number(device) if numbered else device}" for device in devices)


def _number(device: str) -> str:
    return str(int(device)) if device.isascii() and device.isdigit() else device
