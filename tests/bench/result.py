"""What a benchmark leaves: figures with their targets, and the machine that they were measured on."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from roundkit.core.files import atomic_write

Better = Literal["lower", "higher", "near"]
"""``near`` is good for a ratio that should be one: at most ``target`` away from it, either way."""


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    Attributes:
        name: Stable id.
        what: What was measured, in words.
        value: The figure.
        unit: ``s``, ``ms``, ``%`` or ``x`` (a ratio to something measured in the same run).
        target: What it should reach; null where it is only shown.
        better: Which side of the target is good.
        detail: Everything behind the figure: sizes, medians, intervals.
    """

    name: str
    what: str
    value: float
    unit: str
    target: float | None = None
    better: Better = "lower"
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None without one."""
        if self.target is None:
            return None
        if self.better == "near":
            return 1 / self.target <= self.value <= self.target
        return self.value <= self.target if self.better == "lower" else self.value >= self.target


@dataclass(frozen=True)
class Machine:
    """Where and when figures were measured, and how busy the machine was before and after."""

    date_utc: str
    cpu_model: str
    cores: int
    kernel: str
    python: str
    load_before: tuple[float, float, float]
    load_after: tuple[float, float, float]


@dataclass(frozen=True)
class Result:
    """All figures of one benchmark.

    Attributes:
        benchmark: Its name.
        command: What measures it again.
        size: ``full``, or ``tiny`` for a try of the runner.
        machine: Where it ran.
        figures: What came of it.
    """

    benchmark: str
    command: str
    size: str
    machine: Machine
    figures: tuple[Figure, ...]

    def write(self, folder: Path) -> Path:
        """Write the result as JSON and return the file."""
        folder.mkdir(parents=True, exist_ok=True)
        document = {**asdict(self), "figures": [{**asdict(row), "met": row.met} for row in self.figures]}
        target = folder / f"{self.benchmark}.json"
        atomic_write(target, (json.dumps(document, indent=1, sort_keys=True) + "\n").encode())
        return target


def read_result(path: Path) -> Result:
    """Read a result that was written before."""
    document = json.loads(path.read_bytes())
    figures = tuple(
        Figure(**{key: value for key, value in row.items() if key != "met"}) for row in document["figures"]
    )
    return Result(**{**document, "machine": Machine(**document["machine"]), "figures": figures})


def measured(benchmark: str, size: str, measure: Callable[[], Iterable[Figure]]) -> Result:
    """Run a benchmark and note the machine around it."""
    before = os.getloadavg()
    figures = tuple(measure())
    return Result(benchmark, f"make bench ROWS={benchmark}", size, machine_since(before), figures)


def machine_since(load_before: tuple[float, float, float]) -> Machine:
    """Return this machine as it is now, with how busy it was before."""
    return Machine(
        date_utc=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        cpu_model=_cpu_model(),
        cores=len(os.sched_getaffinity(0)),
        kernel=platform.release(),
        python=platform.python_version(),
        load_before=load_before,
        load_after=os.getloadavg(),
    )


def ratio_interval(above: Sequence[float], below: Sequence[float]) -> tuple[float, float, float]:
    """Return the median of ratios of neighbours in time, with a distribution-free interval of about 95 %.

    Args:
        above: Numerators, in the order of measuring.
        below: Denominators, each measured next to its numerator.
    """
    ratios = sorted(first / second for first, second in zip(above, below, strict=True))
    count = len(ratios)
    # Order statistics around the median (Conover, Practical Nonparametric Statistics, 3.2).
    reach = 0.98 * count**0.5
    low, high = max(0, round(count / 2 - reach)), min(count - 1, round(count / 2 + reach))
    return statistics.median(ratios), ratios[low], ratios[high]


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables of this process for a while."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
