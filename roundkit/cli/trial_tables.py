"""What a trial was given and what came of it, for the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from roundkit.cli.tables import console
from roundkit.core.text import rounded, visible
from roundkit.host.confine import Boundary, Execution, LimitRecord
from roundkit.measure.boundary import Grant
from roundkit.models.instruments import INSTRUCTIONS_SAY_NOTHING
from roundkit.models.trial import ConfinedRun
from roundkit.rounds.trial_side import Stand
from roundkit.rounds.try_trial import TriedTrial

_PLACES = (
    "{work}: this trial's own folder, gone now; {incumbent}: the incumbent's files; {roundkit}: roundkit "
    "itself; {provision}: what the provision command made"
)


def show_stand(ready: Stand) -> None:
    """Print what was built and leased, and the command of each process."""
    _line(f"round {ready.bench.plan.round_id}, {ready.planned.side} {ready.commit}")
    _line(f"leased {ready.device_set.id}: {ready.device_set.platform} {', '.join(ready.device_set.devices)}")
    for log in ready.logs:
        _line(f"{log.step}: {log.end_reason}, exit code {log.exit_code}, {log.wall_s:.2f} s")
    for role, grant in ready.boundary.grants().items():
        _line(f"{role} command: {shlex.join(grant.argv)}")


def show_trial(tried: TriedTrial) -> None:
    """Print everything about a trial."""
    show_stand(tried.stand)
    for role, grant in tried.grants.items():
        run = tried.trial.executions.get(role)
        if run is None:
            _line(f"\n== {role}: did not run")
            continue
        _line(f"\n== {role}: {_ended(run)}")
        _show_boundary(tried.boundaries[role])
        _table("environment", ("variable", "value"), sorted(_environment(grant)))
        for name, tail in (("standard output", run.stdout_tail), ("standard error", run.stderr_tail)):
            if tail:
                _line(f"{name}:\n{_printable(tail.rstrip())}")
    _line(f"\n{_PLACES}")
    _show_result(tried)


def show_shell_end(ended: Execution) -> None:
    """Print how a shell ended and what held around it."""
    _line(f"\nshell: {_ended(ended)}")
    _show_boundary(ended.boundary)


def _show_result(tried: TriedTrial) -> None:
    trial = tried.trial
    metric = tried.stand.bench.spec.metric
    shown = {name: [rounded(value, 6) for value in values] for name, values in trial.metrics.items()}
    rows = [(name, ", ".join(values)) for name, values in shown.items()]
    _table("metrics, every repetition", ("metric", "values"), rows)
    if (counted := trial.counted) is not None:
        of = f" of {len(counted.processes)} processes" if counted.processes else ""
        _line(f"counted by {counted.tool}, {counted.version}: {counted.total} instructions{of}")
        _line(INSTRUCTIONS_SAY_NOTHING)
    validated = {None: "not run", True: "accepted", False: "rejected"}[trial.validated]
    _line(f"validator: {validated}")
    if trial.problem is None:
        _line(f"result: {metric.name} = {trial.value:.15g} {metric.unit}")
    else:
        _line(f"problem: {trial.problem}: {_printable(trial.detail or '')}")


def _show_boundary(held: Boundary) -> None:
    cpus = "every core" if held.cpus is None else f"cores {', '.join(map(str, held.cpus))}"
    _line(
        f"{held.version}, user id {held.uid}, network {held.network}, "
        f"system call filter {'on' if held.seccomp else 'off'}, {cpus}"
    )
    mounts = [(mount.at, mount.mode, mount.source or "private, empty") for mount in held.mounts]
    _table("mounts", ("inside", "mode", "source"), mounts)
    _table("limits", ("limit", "value", "of", "enforced by"), map(_limit_row, held.limits))


def _limit_row(limit: LimitRecord) -> tuple[str, ...]:
    value = "none" if limit.value is None else f"{limit.value:.15g}"
    nobody = "nothing" if limit.value is not None else ""
    return limit.name, value, limit.scope, limit.by or nobody


def _environment(grant: Grant) -> Iterable[tuple[str, str]]:
    return ((name, _printable(value)) for name, value in grant.env.items())


def _ended(run: ConfinedRun | Execution) -> str:
    how = f"exit code {run.exit_code}" if run.signal is None else f"signal {run.signal}"
    clocks = ", ".join(
        f"{seconds:.3f} s {name}"
        for name, seconds in (("wall", run.wall_s), ("processor", run.cpu_s))
        if seconds is not None
    )
    memory = "" if run.peak_memory_bytes is None else f", peak memory {run.peak_memory_bytes} bytes"
    detail = f" ({_printable(run.detail)})" if run.detail else ""
    return f"{run.end_reason}, {how}, {clocks or 'never started'}{memory}{detail}"


def _table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console().print(table)


def _line(text: str) -> None:
    console().print(Text(visible(text)), soft_wrap=True)


def _printable(text: str) -> str:
    """Keep what a candidate wrote from steering the terminal."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "�" for letter in text)
