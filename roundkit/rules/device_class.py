"""Which device sets may measure what a ticket went into, where the plan wants one class for all of it."""

from __future__ import annotations

from collections.abc import Sequence

from roundkit.models.experiment import ExperimentRecord
from roundkit.models.round_plan import DeviceSet


def class_of(device_sets: Sequence[DeviceSet], record: ExperimentRecord) -> str | None:
    """Return the class of the device set that an experiment was measured on; None where it has none."""
    name = None if record.lease is None else record.lease.device_set
    return next((one.device_class for one in device_sets if one.id == name), None)


def sets_of_class(device_sets: Sequence[DeviceSet], record: ExperimentRecord) -> tuple[DeviceSet, ...]:
    """Return the device sets of the class that an experiment was measured on.

    Args:
        device_sets: The plan's sets.
        record: The ticket's experiment.
    """
    wanted = class_of(device_sets, record)
    return tuple(one for one in device_sets if one.device_class == wanted)
