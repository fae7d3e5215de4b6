"""Whether this machine has an instrument: each is tried on a real command behind the boundary."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from roundkit.core.clock import Deadline
from roundkit.core.errors import Refused
from roundkit.host.confine import ConfinementUnavailable, Execution, Limits, Mount, confined_execute
from roundkit.measure.broke import MeasurementBroke
from roundkit.measure.instruments.counting import counting
from roundkit.measure.instruments.reading import CountProblem
from roundkit.measure.instruments.tools import find_tool
from roundkit.measure.instruments.wrap import COUNT, counted_command
from roundkit.models.instruments import CountingTool, InstructionCount, Instrument
from roundkit.models.readings import counts_every_child

_TRIED = ("/bin/true",)
_SCRATCH = Path("/round/scratch")
_WITHIN_S = 120.0
_CGROUP_REMEDY = "run as root or under a delegated cgroup (systemd-run --user --scope -p Delegate=yes …)"
_TOOL_REMEDIES: dict[CountingTool, str] = {
    "perf": "install perf (linux-perf, linux-tools) on a machine whose processor shows its counters, with "
    "`sysctl kernel.perf_event_paranoid` at 2 or less unless you are root",
    "valgrind": "install the package valgrind, and util-linux for setarch",
}


@dataclass(frozen=True)
class InstrumentState:
    """One instrument on this machine.

    Attributes:
        name: Which.
        present: Whether it gave a figure.
        detail: The tool and what it said, or why there is none.
        remedy: What helps if it is missing.
        tool: What counts instructions here.
    """

    name: Instrument
    present: bool
    detail: str
    remedy: str = ""
    tool: CountingTool | None = None


def instrument_states(limits: Limits) -> tuple[InstrumentState, ...]:
    """Return the state of every instrument; never raises for one that is missing."""
    return tuple(instrument_state(name, limits) for name in get_args(Instrument))


def instrument_state(name: Instrument, limits: Limits) -> InstrumentState:
    """Try an instrument on a command that does nothing.

    Args:
        name: Which.
        limits: What the command may use; a limit too small for a tool makes it missing.
    """
    if name == "reported":
        return InstrumentState(name, True, "the benchmark's own")
    try:
        if name == "instructions":
            return _counted(limits)
        with tempfile.TemporaryDirectory(prefix="roundkit-instrument-") as folder:
            done = _run(_TRIED, Path(folder).resolve(), limits, peak_memory=name == "peak-memory")
    except (ConfinementUnavailable, Refused) as error:
        return InstrumentState(name, False, str(error), "see `roundkit doctor`")
    if name == "peak-memory":
        peak = done.peak_memory_bytes
        detail = f"the cgroup's peak: {peak} bytes" if peak else "no cgroup here tells the peak of a run"
        return InstrumentState(name, bool(peak), detail, _CGROUP_REMEDY)
    if name == "cpu" and not counts_every_child(done):
        why = "no cgroup here counts CPU time, and procfs leaves out children that nobody waited for"
        return InstrumentState(name, False, why, _CGROUP_REMEDY)
    figure = done.wall_s if name == "wall" else done.cpu_s
    source = "the coordinator's clock" if name == "wall" else f"from {done.cpu_source}"
    return InstrumentState(name, figure is not None, source if figure is not None else "no reading")


def _counted(limits: Limits) -> InstrumentState:
    """Try the hardware's counter first, then valgrind."""
    faults = []
    for tool in ("perf", "valgrind"):
        try:
            found = try_counting(tool, limits)
        except (MeasurementBroke, CountProblem) as error:
            detail = error.detail if isinstance(error, MeasurementBroke) else str(error)
            faults.append(f"{tool}: {detail}")
        else:
            slow = "; slows a run some 20 to 50 times" if tool == "valgrind" else ""
            detail = f"{found.version}, {found.total} for {_TRIED[0]}{slow}"
            return InstrumentState("instructions", True, detail, tool=tool)
    remedy = f"{_TOOL_REMEDIES['valgrind']}; or {_TOOL_REMEDIES['perf']}"
    return InstrumentState("instructions", False, "; ".join(faults), remedy)


def try_counting(tool: CountingTool, limits: Limits) -> InstructionCount:
    """Count a command that does nothing, behind the boundary.

    Raises:
        MeasurementBroke: ``instrument-missing``.
        CountProblem: the tool ran, and what it left is no count.
        ConfinementUnavailable: the host cannot confine a command.
        Refused: a limit is never granted.
    """
    if find_tool(tool) is None:
        raise MeasurementBroke("instrument-missing", "not installed")
    with tempfile.TemporaryDirectory(prefix="roundkit-instrument-") as name:
        folder = Path(name).resolve()
        counts = folder / "count"
        counts.mkdir()
        with counting(tool, counts) as running:
            done = _run(counted_command(tool, _TRIED), folder, limits, counts, running.before_start)
            if done.exit_code != 0:
                said = (done.stderr_tail.strip() or done.detail).splitlines()[-1:]
                raise MeasurementBroke("instrument-missing", f"{done.end_reason} {' '.join(said)}".strip())
            assert running.count is not None
            return running.count()


def _run(
    argv: tuple[str, ...],
    folder: Path,
    limits: Limits,
    counts: Path | None = None,
    before_start: Callable[[int], None] | None = None,
    *,
    peak_memory: bool = False,
) -> Execution:
    scratch = folder / "scratch"
    scratch.mkdir()
    return confined_execute(
        argv,
        cwd=_SCRATCH,
        writable=[Mount(scratch, _SCRATCH), *([] if counts is None else [Mount(counts, COUNT)])],
        readable=[],
        deadline=Deadline.after(_WITHIN_S),
        env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
        limits=limits,
        before_start=before_start,
        peak_memory=peak_memory,
    )
