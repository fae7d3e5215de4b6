"""What a machine offers to a cluster: the file that says it, and whether that is what a plan names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pydantic

from roundkit.core.errors import Refused, refuse
from roundkit.core.yamlfile import plain, read_yaml, schema_refusals
from roundkit.host.devices import lease_names
from roundkit.models.cluster import OfferedSet, WorkerSets, WorkerState
from roundkit.models.round_plan import DeviceSet


def read_sets(path: Path) -> tuple[DeviceSet, ...]:
    """Read what a machine offers.

    Raises:
        Refused: ``missing-file``, ``malformed-yaml``, ``unknown-key``, ``missing-key``, ``wrong-value``: it
            is no list of device sets; ``device-twice``: two of them share a name or a device.
    """
    _, content = read_yaml(path)
    try:
        sets = WorkerSets.model_validate(plain(content)).device_sets
    except pydantic.ValidationError as error:
        raise Refused(schema_refusals(error.errors(), content, path.name)) from error
    names = [one.id for one in sets]
    devices = [name for one in sets for name in lease_names(one.platform, one.devices)]
    for name, times in Counter(names + devices).items():
        if times > 1:
            raise refuse(
                "device-twice",
                f"{name} stands in it {times} times",
                place=path.name,
                remedy="give each set a name of its own, and let each device be in one set",
            )
    return sets


def shared_names(workers: Iterable[WorkerState]) -> frozenset[str]:
    """Return the names of machines that several machines go by."""
    machines: dict[str, set[str | None]] = {}
    for state in workers:
        for one in state.sets:
            if one.device_set.machine is not None and state.machine_sha256 is not None:
                machines.setdefault(one.device_set.machine, set()).add(state.machine_sha256)
    return frozenset(name for name, found in machines.items() if len(found) > 1)


def set_problem(own: DeviceSet, offered: OfferedSet, shared: frozenset[str]) -> str | None:
    """Say why a worker's device set is not measured on; None where it may be.

    Args:
        own: The set of that name, as the plan has it.
        offered: The worker's.
        shared: Names that several machines go by, so that nobody can tell their devices apart.
    """
    theirs = offered.device_set
    differ = [
        f"{name} {_shown(getattr(theirs, name))} and not {_shown(getattr(own, name))} as in the plan"
        for name in ("platform", "devices", "device_class", "machine")
        if getattr(theirs, name) != getattr(own, name)
    ]
    if differ:
        return "it has " + ", ".join(differ)
    if own.machine in shared:
        return f"several machines call themselves {own.machine}"
    return offered.problem


def _shown(value: object) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value) if value is not None else "none"
