"""The file in which a machine says what it offers to a cluster."""

from __future__ import annotations

from pathlib import Path

import pydantic

from roundkit.core.errors import refuse
from roundkit.core.yamlfile import plain, read_yaml
from roundkit.models.cluster import WorkerSets
from roundkit.models.round_plan import DeviceSet


def read_sets(path: Path) -> tuple[DeviceSet, ...]:
    """Read what a machine offers.

    Raises:
        Refused: ``missing-file``, ``malformed-yaml``, ``malformed``: it is no list of device sets, or two of
            them share a name or a device.
    """
    _, content = read_yaml(path)
    try:
        sets = WorkerSets.model_validate(plain(content)).device_sets
    except pydantic.ValidationError as error:
        raise refuse(
            "malformed",
            f"it is no list of device sets: {error}",
            place=path.name,
            remedy="write `format: roundkit-device-sets/1` and `device_sets:` with id, platform and devices",
        ) from error
    seen: set[object] = set()
    for device_set in sets:
        for name in (device_set.id, *((device_set.platform, device) for device in device_set.devices)):
            if name in seen:
                raise refuse(
                    "malformed",
                    f"{name} stands in it twice",
                    place=path.name,
                    remedy="let each device be in one set",
                )
            seen.add(name)
    return sets
