"""pyperf's JSON (format version 1.0) as a frame of samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from roundkit.analysis.importers.samples import numbers, read_document, samples_frame, take
from roundkit.core.errors import refuse

_TOOL = "pyperf"
_UNIT = "second"
"""What pyperf means where it names no unit."""


def read_pyperf(path: Path) -> pl.DataFrame:
    """Return every value of every benchmark in a pyperf file, warm-ups marked; calibration runs left out.

    Args:
        path: A file that pyperf, or ``roundkit measure --pyperf``, wrote.

    Returns:
        The frame that :data:`roundkit.analysis.importers.SAMPLES` declares.

    Raises:
        Refused: ``missing-file``, ``malformed``, ``import-version``, ``import-key`` or ``import-value``, with
            the file and the key.
    """
    document = read_document(path, _TOOL)
    version = take(document, "version", str, path.name, _TOOL)
    if version.partition(".")[0] != "1":
        raise refuse(
            "import-version",
            f"pyperf's format {version!r} is not known here",
            place=f"{path.name}.version",
            remedy="`pyperf convert` with pyperf 1.2 or newer writes format 1.0",
        )
    # Metadata that all benchmarks share stands once, at the top.
    shared = _metadata(document, path.name)
    benchmarks = take(document, "benchmarks", list, path.name, _TOOL)
    return samples_frame(
        [
            row
            for number, benchmark in enumerate(benchmarks)
            for row in _rows(benchmark, shared, path, f"{path.name}.benchmarks[{number}]")
        ]
    )


def _rows(benchmark: Any, shared: Mapping[str, Any], path: Path, place: str) -> Iterator[dict[str, Any]]:
    own = benchmark if isinstance(benchmark, dict) else {}
    metadata = {**shared, **_metadata(own, place)}
    name = take(metadata, "name", str, f"{place}.metadata", _TOOL)
    unit = take({"unit": _UNIT, **metadata}, "unit", str, f"{place}.metadata", _TOOL)
    runs = take(own, "runs", list, place, _TOOL)
    measured = [(number, run) for number, run in enumerate(runs) if isinstance(run, dict) and "values" in run]
    for run_number, (number, run) in enumerate(measured):
        here = f"{place}.runs[{number}]"
        plain = numbers(take(run, "values", list, here, _TOOL), f"{here}.values", _TOOL)
        values = [*((True, value) for value in _warm_ups(run, here)), *((False, value) for value in plain)]
        for position, (warm_up, value) in enumerate(values):
            yield {
                "source": path.name,
                "tool": _TOOL,
                "benchmark": name,
                "unit": unit,
                "run": run_number,
                "position": position,
                "warmup": warm_up,
                "value": value,
                "exit_code": None,
            }


def _metadata(row: Mapping[str, Any], place: str) -> dict[str, Any]:
    return take(row, "metadata", dict, place, _TOOL) if "metadata" in row else {}


def _warm_ups(run: Mapping[str, Any], place: str) -> list[float]:
    """Return the values of a run's warm-ups; each stands behind its number of loops."""
    rows = take(run, "warmups", list, place, _TOOL) if "warmups" in run else []
    pairs = [row if isinstance(row, list) else [row] for row in rows]
    return [value for pair in pairs for value in numbers(pair, f"{place}.warmups", _TOOL)[1:]]
