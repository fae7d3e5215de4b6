"""A keep/discard ``results.tsv``, as agents of the autoresearch kind write it, as tickets.

The file has a header and one line an experiment, split by tabs: ``commit``, then the metric, then whatever
else, with ``status`` (``keep``, ``discard`` or ``crash``) and ``description``. Each is one run against the
best kept before it, without a repetition: nothing there says whether a difference is larger than noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from roundkit.analysis.importers.tickets import NOT_COMPARED, Frames, gain_of, ticket_frames
from roundkit.core.errors import refuse
from roundkit.core.inputs import read_input
from roundkit.models.campaign import Direction

_STATUS = {"keep": "kept", "discard": "discarded", "crash": "crashed"}
_REMEDY = "give a file with a header and the columns commit, a metric, status and description, between tabs"


def read_results_tsv(
    path: Path,
    *,
    metric: str | None = None,
    direction: Direction = "lower",
    campaign: str | None = None,
    name: str | None = None,
) -> Frames:
    """Return the frames ``rounds``, ``lanes`` and ``tickets`` of a results file.

    A gain is that over the best value kept before, in the file's own order. The verdict of every line is
    ``not-measured``; ``reason`` holds the tool's decision, and ``selected`` says that it was kept.

    Args:
        path: The file.
        metric: Name of the metric's column; the second one when not given.
        direction: Which way of the metric is better.
        campaign: What to call the campaign; ``results-tsv`` when not given.
        name: What to call the round; the file's name when not given.

    Raises:
        Refused: ``missing-file``, ``import-key`` or ``import-value``, with the file and the line.
    """
    header, lines = _read(path)
    wanted = metric or (header[1] if len(header) > 1 else "")
    for column in ("commit", wanted, "status", "description"):
        if column not in header:
            raise refuse(
                "import-key", f"the column {column!r} is missing", place=f"{path.name}:1", remedy=_REMEDY
            )
    return ticket_frames(
        list(_rows(lines, wanted, direction, path.name)),
        campaign=campaign or "results-tsv",
        name=name or path.stem,
        source=path.name,
        metric=wanted,
        direction=direction,
    )


def _read(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    try:
        text = read_input(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise refuse("import-value", "this is no UTF-8 text", place=path.name, remedy=_REMEDY) from error
    # Lines end at line feeds alone: other characters that some call line ends stand in descriptions.
    split = [(number, line.split("\t")) for number, line in enumerate(text.split("\n"), 1)]
    rows = [(number, row) for number, row in split if any(cell.strip() for cell in row)]
    if not rows:
        raise refuse("import-key", "the file is empty", place=path.name, remedy=_REMEDY)
    header = [cell.strip() for cell in rows[0][1]]
    if twice := sorted({column for column in header if header.count(column) > 1}):
        raise refuse(
            "import-key",
            f"the column {twice[0]!r} stands there twice",
            place=f"{path.name}:1",
            remedy=_REMEDY,
        )
    lines = []
    for number, row in rows[1:]:
        if len(row) != len(header):
            raise refuse(
                "import-value",
                f"{len(row)} columns where the header has {len(header)}",
                place=f"{path.name}:{number}",
                remedy=_REMEDY,
            )
        lines.append((number, dict(zip(header, (cell.strip() for cell in row), strict=True))))
    return header, lines


def _rows(
    lines: list[tuple[int, dict[str, str]]], metric: str, direction: Direction, file: str
) -> Iterator[dict[str, Any]]:
    best: float | None = None
    for sequence, (number, line) in enumerate(lines, start=1):
        place = f"{file}:{number}"
        status = _STATUS.get(line["status"].lower())
        if status is None:
            raise refuse(
                "import-value",
                f"{line['status']!r} is no status: keep, discard or crash",
                place=place,
                remedy=_REMEDY,
            )
        # A crash has no value; what stands in its column is a filler.
        value = None if status == "crashed" else _number(line[metric], place)
        gain = gain_of(best, value, direction)
        yield {
            "lane": "main",
            "ticket": f"{sequence:04d}-{line['commit'] or 'uncommitted'}",
            "sequence": sequence,
            "state": "measured",
            "verdict": "fail" if status == "crashed" else NOT_COMPARED,
            "reason": status,
            "sentence": line["description"],
            "gain": gain,
            "missing": None if gain is not None else _why_none(status, best),
            "baseline_median": best,
            "candidate_median": value,
            "selected": status == "kept",
            "candidate_commit": line["commit"] or None,
        }
        if status == "kept":
            best = value


def _why_none(status: str, best: float | None) -> str:
    if status == "crashed":
        return "crashed"
    return "nothing was kept before it" if best is None else "a ratio of these values has no meaning"


def _number(text: str, place: str) -> float:
    try:
        # Python reads 1_000 as a number, and no tool writes one so.
        value = math.nan if "_" in text else float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise refuse("import-value", f"{text!r} is no number", place=place, remedy=_REMEDY)
    return value
