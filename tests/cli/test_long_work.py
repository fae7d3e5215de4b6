"""Long work shows progress: whichever command may take more than some seconds, and whatever audits."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from support.pilots import small

from roundkit.audit import audit_evidence
from roundkit.cli.manual import ManualCommand
from roundkit.core.progress import Progress, Standing, Task

from .test_help import ALL, COMMANDS

EVIDENCE = Path(__file__).resolve().parents[2] / "evidence"
WITH_LINES = {"trial", "waves run", "worker"}
"""Each says a line as each thing happens: one trial, both halves' own progress, every experiment."""
SHORT = {
    "cluster cert", "cluster job-script", "devices", "drain", "explain", "leases", "notebook copy",
    "notebook list", "pause", "pilot example", "pilot intervene", "pilot review finish",
    "pilot review pause", "pilot review record", "pilot review resume", "pilot review start",
    "pilot status", "resume", "schema", "status", "stop-lane", "swarmflow", "waves status", "waves stop",
}  # fmt: skip
"""A second or two, whatever they are given."""


def shows_progress(command: ManualCommand) -> bool:
    assert command.callback is not None
    return "shown_progress(" in inspect.getsource(inspect.unwrap(command.callback))


def test_every_command_shows_progress_or_is_short() -> None:
    silent = {path for path in COMMANDS if not shows_progress(ALL[path])}
    assert silent == WITH_LINES | SHORT


class Ended(Progress):
    """Keeps how each piece of work stood when it ended."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: list[Standing] = []

    def _show(self, task: Task) -> None:
        if task not in self._tasks:
            self.ended.append(task.standing())


@pytest.mark.parametrize(
    "kind", ["code-search/rounds/r01", "knobs/pilots/p-versus-s", "c-functions", "paired"]
)
def test_an_audit_counts_its_checks_to_the_last(kind: str, tmp_path: Path) -> None:
    shown = Ended()
    folder = small(tmp_path).freeze()[0].root if kind == "paired" else EVIDENCE / kind
    audit_evidence(folder, progress=shown)
    [audit] = shown.ended
    assert audit.name.startswith("audit of ")
    assert audit.done == audit.total
    assert audit.unit == "kinds of checks"
