"""A checkpoint of OpenEvolve as tickets: one program a ticket, one island a lane."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from roundkit.analysis.importers import values as foreign
from roundkit.analysis.importers.samples import read_document, take
from roundkit.analysis.importers.tickets import NOT_COMPARED, Frames, gain_of, ticket_frames
from roundkit.core.errors import refuse

_TOOL = "OpenEvolve"
_METRIC = "combined_score"


def read_openevolve(
    path: Path, *, metric: str = _METRIC, campaign: str | None = None, name: str | None = None
) -> Frames:
    """Return the frames ``rounds``, ``lanes`` and ``tickets`` of a checkpoint.

    A gain is that of a program's score over its parent's, where higher is better and both are above zero.
    The verdict of every program is ``not-measured``: an evaluator scored it, and nothing says how noisily.

    Args:
        path: A folder ``checkpoint_N`` that OpenEvolve wrote.
        metric: The metric that decides, among each program's metrics.
        campaign: What to call the campaign; ``openevolve`` when not given.
        name: What to call the round; the folder's name when not given.

    Raises:
        Refused: ``missing-file``, ``malformed``, ``import-key`` or ``import-value``, with file and key.
    """
    about = read_document(path / "metadata.json", _TOOL)
    best = about.get("best_program_id")
    programs = [_program(file) for file in sorted((path / "programs").glob("*.json"))]
    if not programs:
        raise refuse(
            "missing-file", "the checkpoint has no program", place=f"{path.name}/programs",
            remedy=f"give a folder checkpoint_N that {_TOOL} wrote",
        )  # fmt: skip
    programs.sort(key=lambda program: (program["iteration_found"], program["timestamp"], program["id"]))
    scores = {program["id"]: _score(program, metric) for program in programs}
    rows = [_row(number, program, scores, best) for number, program in enumerate(programs, start=1)]
    return ticket_frames(
        rows,
        campaign=campaign or "openevolve",
        name=name or path.resolve().name,
        source=path.resolve().name,
        metric=metric,
        direction="higher",
    )


def _program(file: Path) -> dict[str, Any]:
    # An evaluator may give NaN or an infinity, and OpenEvolve writes them as they are.
    document = read_document(file, _TOOL, constants=True)
    place = f"programs/{file.name}"
    metadata = document.get("metadata") or {}
    return {
        "id": take(document, "id", str, place, _TOOL),
        "parent_id": document.get("parent_id"),
        "iteration_found": take(document, "iteration_found", int, place, _TOOL),
        "timestamp": take(document, "timestamp", float, place, _TOOL),
        "intake_utc": _moment(document["timestamp"], f"{place}.timestamp"),
        "metrics": take(document, "metrics", dict, place, _TOOL),
        "island": metadata.get("island") if isinstance(metadata, dict) else None,
        "changes": metadata.get("changes") if isinstance(metadata, dict) else None,
    }


def _moment(timestamp: object, place: str) -> datetime:
    try:
        return foreign.moment(timestamp)
    except ValueError as error:
        raise refuse(
            "import-value", str(error), place=place, remedy=f"give a file that {_TOOL} wrote"
        ) from error


def _score(program: Mapping[str, Any], metric: str) -> float | None:
    try:
        return foreign.real(program["metrics"].get(metric))
    except ValueError:
        return None


def _row(
    number: int, program: Mapping[str, Any], scores: Mapping[str, float | None], best: object
) -> dict[str, Any]:
    parent, score = program["parent_id"], scores[program["id"]]
    before = scores.get(parent) if isinstance(parent, str) else None
    gain = gain_of(before, score, "higher")
    island = program["island"]
    return {
        "lane": f"island-{island}" if isinstance(island, int) else "island",
        "ticket": program["id"],
        "sequence": number,
        "state": "measured",
        "verdict": NOT_COMPARED,
        "reason": "best" if program["id"] == best else "evaluated",
        "sentence": foreign.text(program["changes"]) if isinstance(program["changes"], str) else None,
        "gain": gain,
        "missing": None if gain is not None else _why_none(parent, before, score),
        "baseline_median": before,
        "candidate_median": score,
        "selected": program["id"] == best,
        "intake_utc": program["intake_utc"],
    }


def _why_none(parent: object, before: float | None, score: float | None) -> str:
    if parent is None:
        return "it has no parent"
    if score is None:
        return "no finite score"
    return "its parent has no score here" if before is None else "a ratio of scores at or below zero"
