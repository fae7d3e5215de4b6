"""What ``roundkit doctor`` tells of a machine: what is there, what is missing, and how to get it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from roundkit.core.progress import SILENT, Progress
from roundkit.host.probes import PROBE_LIMITS, Layer, probe_confinement
from roundkit.host.tuning import TuningFact, read_tuning
from roundkit.measure.cluster.extra import EXTRA, LIBRARIES
from roundkit.measure.instruments import instrument_states
from roundkit.models.base import Record
from roundkit.rounds.template_files import template

State = Literal["present", "missing", "untuned", "unknown"]

_AGENTS: Mapping[str, str] = {
    "claude": "npm install --global @anthropic-ai/claude-code",
    "codex": "npm install --global @openai/codex",
}
_COMPILER = "apt-get install gcc libc6-dev, or what your distribution calls it"


class Finding(Record):
    """One thing that was looked at.

    Attributes:
        name: What a person calls it.
        state: Whether it is there; of the machine's noise, whether it is tuned or nobody can tell.
        needed: Whether no round runs without it.
        detail: What was found.
        remedy: How to get it; empty where nothing is missing.
    """

    name: str
    state: State
    needed: bool
    detail: str
    remedy: str


class Part(Record):
    """Findings that belong together, and what they are for."""

    title: str
    findings: tuple[Finding, ...]


class Diagnosis(Record):
    """Everything about one machine."""

    format: Literal["roundkit-doctor/1"] = "roundkit-doctor/1"
    ready: bool
    parts: tuple[Part, ...]


def examine_machine(*, progress: Progress = SILENT) -> Diagnosis:
    """Look at everything that roundkit may need here, and change nothing.

    Args:
        progress: Shows how far it is; the boundary takes some seconds to be attacked.
    """
    looks = {
        "What every round needs": _boundary,
        "What can decide (--instrument)": _instruments,
        "What some rounds need": _optional,
        "Space": _space,
        "How quiet the machine is": _quiet,
    }
    parts = []
    with progress.task("looking at this machine", len(looks), "parts") as task:
        for title, look in looks.items():
            parts.append(Part(title=title, findings=tuple(look())))
            task.advance()
    ready = all(each.state == "present" for part in parts for each in part.findings if each.needed)
    return Diagnosis(ready=ready, parts=tuple(parts))


def _boundary() -> Iterator[Finding]:
    return map(_of_layer, probe_confinement())


def _of_layer(layer: Layer) -> Finding:
    return _finding(layer.name, layer.present, layer.detail, layer.remedy, needed=layer.needed)


def _finding(name: str, present: bool, detail: str, remedy: str, *, needed: bool = False) -> Finding:
    return Finding(
        name=name,
        state="present" if present else "missing",
        needed=needed,
        detail=detail,
        remedy="" if present else remedy,
    )


def _instruments() -> Iterator[Finding]:
    for state in instrument_states(PROBE_LIMITS):
        yield _finding(state.name, state.present, state.detail, state.remedy)


def _optional() -> Iterator[Finding]:
    missing = [name for name in LIBRARIES if _version(name) is None]
    found = ", ".join(f"{name} {_version(name)}" for name in LIBRARIES if name not in missing)
    yield _finding(
        f"several machines ({EXTRA})",
        not missing,
        f"not installed: {', '.join(missing)}" if missing else found,
        f"pip install '{EXTRA}'",
    )
    for program, remedy in _AGENTS.items():
        path = shutil.which(program)
        yield _finding(f"agent: {program}", path is not None, path or "not on the PATH", remedy)
    path = shutil.which("cc")
    yield _finding("C compiler, for `waves example`", path is not None, path or "not on the PATH", _COMPILER)


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _space() -> Iterator[Finding]:
    """Compare what is free with what the template lets one run write."""
    wanted = int(template("campaign.yaml")["limits"]["disk_bytes"])
    places = {"copies that are measured (TMPDIR)": Path(tempfile.gettempdir()), "this folder": Path.cwd()}
    for name, folder in places.items():
        try:
            told = os.statvfs(folder)
        except OSError as error:
            yield Finding(
                name=name, state="unknown", needed=False, detail=f"{folder}: {error.strerror}", remedy=""
            )
            continue
        free = told.f_bavail * told.f_frsize
        yield _finding(
            name,
            free >= wanted,
            f"{_gib(free)} free at {folder}",
            f"free some: one run may write {_gib(wanted)} (limits.disk_bytes of the template); or work on"
            " another disk (for copies, name a folder in TMPDIR)",
        )


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"


def _quiet() -> Iterator[Finding]:
    # The core that trials take unless somebody names others.
    return map(_of_fact, read_tuning([max(os.sched_getaffinity(0))]))


def _of_fact(fact: TuningFact) -> Finding:
    state: State = "unknown" if fact.tuned is None else "present" if fact.tuned else "untuned"
    return Finding(
        name=fact.name,
        state=state,
        needed=False,
        detail=fact.found or "this machine does not say",
        remedy=fact.advice,
    )
