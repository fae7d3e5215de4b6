"""Readings of the devices that an experiment ran on, held against the plan's limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from roundkit.host.devices import DeviceState
from roundkit.host.devices.limits import limit_problem
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.round_plan import DeviceSet
from roundkit.rules.disagreement import Disagreement


def limit_problems(record: ExperimentRecord, device_sets: Sequence[DeviceSet]) -> Iterator[Disagreement]:
    """Yield devices that are said to have qualified, and whose readings break the limits of their set."""
    limits = {item.id: item.limits for item in device_sets}
    held = None if record.lease is None else limits.get(record.lease.device_set)
    if held is None or record.outcome != "complete":
        return
    for when, readings in (("before", record.devices_before), ("after", record.devices_after)):
        for reading in readings:
            state = DeviceState(reading.device, reading.identity, reading.readings)
            if (broken := limit_problem(state, held)) is not None:
                yield Disagreement(record.experiment_id, f"complete, though {when} it {broken}")
