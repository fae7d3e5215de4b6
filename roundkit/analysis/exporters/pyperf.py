"""Comparisons as pyperf JSON, which ``pyperf stats`` and ``pyperf compare_to`` read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from roundkit.core.errors import refuse
from roundkit.core.files import atomic_write
from roundkit.models.campaign import Direction
from roundkit.models.comparison import Comparison
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.trial import Side, Trial

PyperfUnit = Literal["second", "byte", "integer"]

SIDE_IN_NAME = "{side}"
_SECONDS: Mapping[str, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
_BYTES: Mapping[str, float] = {"B": 1.0, "bytes": 1.0}
_COUNTS = frozenset({"instructions"})
_VERSION = "1.0"
_SINGLE_LOOP = 1


def pyperf_unit(unit: str, direction: Direction) -> tuple[PyperfUnit, float]:
    """Return pyperf's unit for a metric's, and what its values are multiplied with.

    Raises:
        Refused: ``pyperf-unit``: pyperf knows times, bytes and counts only, of which less is better.
    """
    if direction == "lower" and unit in _SECONDS:
        return "second", _SECONDS[unit]
    if direction == "lower" and unit in _BYTES:
        return "byte", _BYTES[unit]
    if direction == "lower" and unit in _COUNTS:
        return "integer", 1.0
    raise refuse(
        "pyperf-unit",
        f"pyperf has no place for a metric in {unit!r} of which {direction} is better",
        place="--pyperf",
        remedy=f"it takes {', '.join([*_SECONDS, *_BYTES, *sorted(_COUNTS)])}, of which lower is better",
    )


def write_pyperf(comparison: Comparison, path: Path) -> tuple[Path, ...]:
    """Write both sides as two benchmarks of one file, or as one benchmark in each of two files.

    ``pyperf compare_to`` compares benchmarks of the same name in two files: with ``{side}`` in the path there
    are two, and both hold the same name.

    Args:
        comparison: What was measured.
        path: The file.

    Returns:
        The files written.

    Raises:
        Refused: ``pyperf-unit``; ``nothing-measured`` where no trial is valid.
    """
    record, name = comparison.experiment, comparison.run_spec.metric.name
    values = [] if record is None else [trial for trial in record.trials if _counts(trial)]
    if record is None or {trial.planned.side for trial in values} != set(get_args(Side)):
        raise refuse(
            "nothing-measured",
            "there is no valid pair to write",
            place="--pyperf",
            remedy="the verdict says what broke",
        )
    if SIDE_IN_NAME in path.name:
        written = tuple(path.with_name(path.name.replace(SIDE_IN_NAME, side)) for side in get_args(Side))
        for target, side in zip(written, get_args(Side), strict=True):
            _write(target, [_benchmark(comparison, record, side, name)])
        return written
    _write(path, [_benchmark(comparison, record, side, f"{side}: {name}") for side in get_args(Side)])
    return (path,)


def _write(path: Path, benchmarks: list[dict[str, Any]]) -> None:
    suite = {"version": _VERSION, "benchmarks": benchmarks}
    atomic_write(path, (json.dumps(suite, indent=1, sort_keys=True) + "\n").encode())


def _benchmark(comparison: Comparison, record: ExperimentRecord, side: Side, name: str) -> dict[str, Any]:
    metric = comparison.run_spec.metric
    unit, factor = pyperf_unit(metric.unit, metric.direction)
    trials = [trial for trial in record.trials if trial.planned.side == side and trial.problem is None]
    warm_ups = [_scaled(trial, metric.name, factor) for trial in trials if trial.planned.pair is None]
    runs = [
        {
            "metadata": {
                "date": f"{trial.started_utc:%Y-%m-%d %H:%M:%S.%f}",
                "duration": (trial.ended_utc - trial.started_utc).total_seconds(),
            },
            # The discarded warm-up of the side stands before its first run.
            "warmups": [[_SINGLE_LOOP, value] for warm_up in warm_ups for value in warm_up]
            if position == 0
            else [],
            "values": _scaled(trial, metric.name, factor),
        }
        for position, trial in enumerate(trial for trial in trials if _counts(trial))
    ]
    for run in runs:
        if not run["warmups"]:
            del run["warmups"]
    known = comparison.plan.baseline if side == "baseline" else comparison.plan.candidate
    metadata = {
        "name": name,
        "unit": unit,
        "loops": _SINGLE_LOOP,
        "cpu_model_name": record.machine,
        "description": f"{known.kind} {known.commit}, {comparison.run_spec.benchmark.instrument}",
        "roundkit_version": comparison.environment.roundkit,
    }
    return {"metadata": metadata, "runs": runs}


def _counts(trial: Trial) -> bool:
    return trial.planned.pair is not None and trial.problem is None and trial.value is not None


def _scaled(trial: Trial, metric: str, factor: float) -> list[float]:
    return [value * factor for value in trial.metrics[metric]]
