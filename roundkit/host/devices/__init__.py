"""Devices that measurements run on: what they are, whether they qualify, how a trial reaches them."""

from roundkit.host.devices.base import Binding, DevicePlatform, DeviceState
from roundkit.host.devices.limits import NO_LIMITS, DeviceLimits
from roundkit.host.devices.machine import machine_identity, machine_sha256
from roundkit.host.devices.registry import lease_names, platform_named, platforms

__all__ = [
    "NO_LIMITS",
    "Binding",
    "DeviceLimits",
    "DevicePlatform",
    "DeviceState",
    "lease_names",
    "machine_identity",
    "machine_sha256",
    "platform_named",
    "platforms",
]
