"""The demo: one whole round on a real program, with lanes of every kind and an expectation for each."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

import jinja2
from pydantic import TypeAdapter

from roundkit.core.clock import format_utc, now_utc
from roundkit.core.errors import refuse
from roundkit.core.files import atomic_write
from roundkit.core.globs import glob_regex
from roundkit.core.progress import SILENT, Progress
from roundkit.core.resources import shipped
from roundkit.core.yamlfile import plain, read_yaml
from roundkit.measure.trees import copy_tree
from roundkit.models.base import Record
from roundkit.models.ledger import CompositionStep, LaneRecord, RoundLedger, TicketRecord
from roundkit.models.round_plan import FrozenLane
from roundkit.rounds.close import CloseOutcome
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.prepare import freeze
from roundkit.rounds.shipped_program import make_program
from roundkit.rounds.straight import run_straight

ROUND_ID = "r01"
_MARK = ".roundkit-demo"
_ROUND_HOURS = 4


class Expected(Record):
    """What a right coordinator makes of a demo lane."""

    verdict: Literal["pass", "fail", "not-measured", "rejected"]
    reason: str | None
    composition: Literal["composed", "one-of-overlap"] | None


class DemoLane(Record):
    """One lane of ``templates/demo/lanes.yaml``."""

    id: str
    entry: str
    target_stage: str
    exposed_share: float
    conditional_headroom: float
    plane: str
    hypothesis: str
    globs: tuple[str, ...]
    patch: str
    forced: bool
    overlaps: str | None
    expected: Expected


@dataclass(frozen=True)
class DemoRow:
    """One lane's result beside what was expected of it.

    Attributes:
        required: Whether the demo fails when this row is not as expected.
        as_expected: Whether it is.
    """

    lane: str
    expected: str
    verdict: str
    reason: str
    gain: float | None
    low: float | None
    high: float | None
    composition: str
    required: bool
    as_expected: bool


@dataclass(frozen=True)
class DemoOutcome:
    """A finished demo round and its table."""

    closed: CloseOutcome
    folder: Path
    rows: tuple[DemoRow, ...]

    @property
    def succeeded(self) -> bool:
        """Whether everything that the demo promises came true."""
        return self.closed.ledger.advanced and all(row.as_expected for row in self.rows if row.required)


def run_demo(out: Path, *, progress: Progress = SILENT, python: str = "auto") -> DemoOutcome:
    """Run the demo round from a fresh program repository to its evidence.

    Args:
        out: Folder to work in; an earlier demo in it is replaced.
        progress: Takes a line for each thing that happens, and shows how far it is.
        python: Interpreter of the program, an absolute path; by default the one that roundkit runs on.

    Raises:
        Refused: ``demo-folder``: the folder holds something else.
    """
    source = shipped("templates") / "demo"
    lanes = read_lanes(source)
    out = out.absolute()
    _clear(out)
    incumbent = make_program(
        source / "program", out / "program",
        what="demo", message="A code-search engine, correct and honestly slow",
    )  # fmt: skip
    campaign, drafted = _write_plans(source, out, lanes, incumbent, python)
    folder = RoundFolder(out / "round")
    plan = freeze(campaign, drafted, folder.root, progress=progress)
    progress.say(f"round {plan.round_id} frozen, digest {plan.digest()}")
    by_id = {lane.id: lane for lane in lanes}
    closed = run_straight(
        folder, progress=progress, as_played=lambda frozen: _as_played(folder, frozen, by_id[frozen.id])
    )
    return DemoOutcome(closed, out, tuple(_row(lane, closed.ledger) for lane in lanes))


def read_lanes(source: Path) -> tuple[DemoLane, ...]:
    """Read the demo's lanes."""
    _, content = read_yaml(source / "lanes.yaml")
    data = json.dumps(plain(content["lanes"])).encode()
    return TypeAdapter(tuple[DemoLane, ...]).validate_json(data)


def _clear(out: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        if not (out / _MARK).exists():
            raise refuse(
                "demo-folder",
                f"{out} holds something that no demo wrote",
                place="--out",
                remedy="name a new or empty folder",
            )
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
    atomic_write(out / _MARK, b"This folder is written by `roundkit demo` and replaced by its next run.\n")


def _write_plans(
    source: Path, out: Path, lanes: Sequence[DemoLane], incumbent: str, python: str
) -> tuple[Path, Path]:
    # The templates are YAML, not HTML: there is nothing to escape for a browser.
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)  # noqa: S701
    folder = out / "campaign"
    folder.mkdir()
    copy_tree(source / "lanes", folder / "lanes")
    values = {
        "lanes": [{**lane.to_json_value(), "patch_path": str(folder / lane.patch)} for lane in lanes],
        "incumbent": incumbent,
        "python": python,
        "round_id": ROUND_ID,
        "core": max(os.sched_getaffinity(0)),
        "deadline": format_utc(now_utc() + timedelta(hours=_ROUND_HOURS)),
    }
    for name in ("campaign.yaml", "round.yaml"):
        template = environment.from_string((source / f"{name}.j2").read_text())
        atomic_write(folder / name, template.render(values).encode())
    return folder / "campaign.yaml", folder / "round.yaml"


def _as_played(folder: RoundFolder, frozen: FrozenLane, lane: DemoLane) -> FrozenLane:
    """Return the lane as its agent plays it; a forced one cheats with its own lane file first."""
    if not lane.forced:
        return frozen
    path = folder.clone(lane.id) / ".roundkit" / "lane.json"
    content = json.loads(path.read_bytes())
    content["globs"], content["globs_regex"] = ["**"], glob_regex("**")
    content["protected_paths"] = []
    atomic_write(path, json.dumps(content).encode())
    return frozen.model_copy(update={"globs": ("**",)})


def _row(lane: DemoLane, ledger: RoundLedger) -> DemoRow:
    record = next(record for record in ledger.lanes if record.lane == lane.id)
    ticket = next((ticket for ticket in ledger.tickets if ticket.lane == lane.id), None)
    step = next((step for step in ledger.composition if step.lane == lane.id), None)
    verdict, reason = _found(ticket)
    composition = _composition(record, step)
    expected = lane.expected
    return DemoRow(
        lane=lane.id,
        expected=" ".join(filter(None, [expected.verdict, expected.reason, expected.composition])),
        verdict=verdict,
        reason=reason,
        gain=ticket.verdict.gain if ticket and ticket.verdict else None,
        low=ticket.verdict.low if ticket and ticket.verdict else None,
        high=ticket.verdict.high if ticket and ticket.verdict else None,
        composition=composition,
        required=expected.verdict in {"pass", "rejected"} or record.outcome == "composed",
        as_expected=_as_expected(lane, ledger, verdict, reason),
    )


def _found(ticket: TicketRecord | None) -> tuple[str, str]:
    if ticket is None:
        return "nothing", "not submitted"
    if ticket.verdict is None:
        return "rejected", ticket.reject_cause or ""
    return ticket.verdict.verdict, ticket.verdict.reason


def _composition(record: LaneRecord, step: CompositionStep | None) -> str:
    if step is None:
        return "-"
    return record.outcome


def _as_expected(lane: DemoLane, ledger: RoundLedger, verdict: str, reason: str) -> bool:
    kept = {record.lane for record in ledger.lanes if record.outcome == "composed"}
    expected = lane.expected
    right = verdict == expected.verdict and (expected.reason is None or reason == expected.reason)
    match expected.composition:
        case "composed":
            return right and lane.id in kept
        case "one-of-overlap":
            return right and len(kept & {lane.id, lane.overlaps}) == 1
        case None:
            return right and lane.id not in kept
    return right
