"""Files of ``hyperfine --export-json`` as a frame of samples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from roundkit.analysis.importers.samples import numbers, read_document, samples_frame, take
from roundkit.core.errors import refuse

_TOOL = "hyperfine"


def read_hyperfine(path: Path) -> pl.DataFrame:
    """Return every timed run of every command; hyperfine keeps no warm-ups.

    Args:
        path: A file that ``hyperfine --export-json`` wrote.

    Returns:
        The frame that :data:`roundkit.analysis.importers.SAMPLES` declares; each timed run is a run of its
        own, in seconds.

    Raises:
        Refused: ``missing-file``, ``malformed``, ``import-key`` or ``import-value``, with the file and the
            key.
    """
    results = take(read_document(path, _TOOL), "results", list, path.name, _TOOL)
    return samples_frame(
        [
            row
            for number, result in enumerate(results)
            for row in _rows(result, path, f"{path.name}.results[{number}]")
        ]
    )


def _rows(result: Any, path: Path, place: str) -> Iterator[dict[str, Any]]:
    own = result if isinstance(result, dict) else {}
    command = take(own, "command", str, place, _TOOL)
    times = numbers(take(own, "times", list, place, _TOOL), f"{place}.times", _TOOL)
    codes = _exit_codes(own, len(times), place)
    for run, (value, code) in enumerate(zip(times, codes, strict=True)):
        yield {
            "source": path.name,
            "tool": _TOOL,
            "benchmark": command,
            "unit": "second",
            "run": run,
            "position": 0,
            "warmup": False,
            "value": value,
            "exit_code": code,
        }


def _exit_codes(result: dict[str, Any], count: int, place: str) -> list[int | None]:
    """Return one exit code a run; null for all of them where an older version wrote none."""
    if "exit_codes" not in result:
        return [None] * count
    codes = take(result, "exit_codes", list, place, _TOOL)
    if len(codes) != count or not all(code is None or _is_code(code) for code in codes):
        raise refuse(
            "import-value",
            f"here belong {count} exit codes, one for each of the times",
            place=f"{place}.exit_codes",
            remedy="give a file that hyperfine wrote",
        )
    return list(codes)


def _is_code(code: object) -> bool:
    # What a process can end with, in the C types of every system.
    return type(code) is int and -(2**31) <= code < 2**32
