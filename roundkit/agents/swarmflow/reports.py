"""What workers report, held against the plan: a worker that never ran reports too, if its team made it up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from roundkit.models.base import Record


class WorkerReport(Record):
    """What one worker says when it stops. It is kept as narrative and decides nothing.

    Attributes:
        lane: The lane that it worked on.
        tickets: The tickets that it made.
        notes: A few lines.
    """

    lane: str
    tickets: tuple[str, ...]
    notes: str


@dataclass(frozen=True)
class Reports:
    """A team's reports, sorted out.

    Attributes:
        by_lane: One report a lane of the plan.
        missing: Lanes of the plan that nobody reported.
        strange: What was reported and belongs to no lane, one line each.
    """

    by_lane: dict[str, WorkerReport]
    missing: tuple[str, ...]
    strange: tuple[str, ...]


def sort_reports(result: Any, lanes: Sequence[str]) -> Reports:
    """Compare what a script returned with the lanes that it had to fill.

    Args:
        result: What the script returned, from the engine or from whoever ran it.
        lanes: The lanes of the plan that it fills.
    """
    rows = result.get("reports") if isinstance(result, dict) else None
    by_lane: dict[str, WorkerReport] = {}
    strange: list[str] = []
    for row in rows if isinstance(rows, list) else []:
        try:
            report = WorkerReport.model_validate(row)
        except ValidationError:
            strange.append(f"no report: {str(row)[:200]}")
            continue
        if report.lane not in lanes:
            strange.append(f"the round has no lane {report.lane[:100]!r}")
        elif report.lane in by_lane:
            strange.append(f"lane {report.lane} was reported twice")
        else:
            by_lane[report.lane] = report
    return Reports(by_lane, tuple(lane for lane in lanes if lane not in by_lane), tuple(strange))
