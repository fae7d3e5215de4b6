"""Turning the course of a command into its record."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from functools import lru_cache

from roundkit.host.confine.cgroup import Cgroup
from roundkit.host.confine.course import Course
from roundkit.host.confine.launch import Ending
from roundkit.host.confine.types import EndReason, Execution, LimitRecord, Limits

_SIGNAL_BASE = 128


def describe_limits(limits: Limits, by_cgroup: Mapping[str, str]) -> tuple[LimitRecord, ...]:
    """Say of each limit what enforces it.

    Args:
        limits: What was asked for.
        by_cgroup: Limit name → version, of those that a cgroup holds.
    """
    return _describe(limits, frozenset(by_cgroup.items()))


@lru_cache
def _describe(limits: Limits, held: frozenset[tuple[str, str]]) -> tuple[LimitRecord, ...]:
    by_cgroup = dict(held)
    records = [
        LimitRecord(name="output_bytes", value=limits.output_kill_bytes, scope="run", by="reader"),
        LimitRecord(name="file_bytes", value=limits.file_bytes, scope="process", by="rlimit-fsize"),
        LimitRecord(name="open_files", value=limits.open_files, scope="process", by="rlimit-nofile"),
        LimitRecord(name="tmp_bytes", value=limits.tmp_bytes, scope="file-system", by="tmpfs"),
    ]
    for name, growth in (("disk_bytes", limits.disk_bytes), ("disk_files", limits.disk_files)):
        by = None if growth is None else "watchdog"
        records.append(LimitRecord(name=name, value=growth, scope="run", by=by))
    bounded: tuple[tuple[str, float | None, str], ...] = (
        ("cpu_s", limits.cpu_s, "rlimit-cpu"),
        ("memory_bytes", limits.memory_bytes, "rlimit-as"),
        ("pids", limits.pids, "rlimit-nproc"),
    )
    for name, value, rlimit in bounded:
        group = by_cgroup.get(name.partition("_")[0])
        by = None if value is None else group or rlimit
        # The kernel counts processes of a user namespace together, address space and CPU time one by one.
        per_run = group is not None or name == "pids"
        records.append(LimitRecord(name=name, value=value, scope="run" if per_run else "process", by=by))
    return tuple(records)


def execution(
    argv: Sequence[str],
    ending: Ending,
    limits: Limits,
    cgroup: Cgroup,
) -> Execution:
    """Write down what came of a command."""
    course, out, err = ending.course, ending.out, ending.err
    exit_code, number = _status(course)
    reason, detail = _reason(course, number, limits, err.text().strip())
    if course.missing and reason == "exited":
        detail = f"there is no command {argv[0]!r} inside the boundary"
    return Execution(
        exit_code=exit_code,
        signal=number,
        end_reason=reason,
        wall_s=course.wall_s,
        cpu_s=course.cpu_s if course.started else None,
        cpu_source=course.cpu_source if course.started and course.cpu_s is not None else None,
        peak_memory_bytes=cgroup.peak_memory_bytes() if course.started else None,
        stdout_tail=None if out is None else out.text(),
        stderr_tail=err.text(),
        stdout_sha256=None if out is None else out.sha256(),
        stderr_sha256=err.sha256(),
        stdout_bytes=None if out is None else out.total_bytes,
        stderr_bytes=err.total_bytes,
        boundary=ending.boundary,
        detail=detail,
    )


def _status(course: Course) -> tuple[int | None, int | None]:
    """Return exit code and signal of the command."""
    if not course.started or (course.status is None and course.reason is not None):
        return None, None
    if course.command_status is not None:
        if os.WIFSIGNALED(course.command_status):
            return None, os.WTERMSIG(course.command_status)
        return os.WEXITSTATUS(course.command_status), None
    if course.status is None:
        return None, int(signal.SIGKILL)
    # Older kernels tell only bubblewrap's folded form; 128 + n is then read as a signal.
    if course.status > _SIGNAL_BASE and course.status - _SIGNAL_BASE in signal.valid_signals():
        return None, course.status - _SIGNAL_BASE
    return course.status, None


def _reason(course: Course, number: int | None, limits: Limits, said: str) -> tuple[EndReason, str]:
    if course.reason is not None:
        return course.reason, course.detail
    if not course.started:
        return (
            "setup-failed",
            f"the boundary could not be built as asked for: {said or 'no reason was given'}",
        )
    if number is None:
        return "exited", ""
    cpu_used = course.cpu_s is not None and limits.cpu_s is not None and course.cpu_s >= limits.cpu_s
    if number == signal.SIGXCPU or (number == signal.SIGKILL and cpu_used):
        return "cpu", f"more than {limits.cpu_s} CPU seconds in one process"
    if number == signal.SIGXFSZ:
        return "disk-limit", f"a file would have grown beyond {limits.file_bytes} bytes"
    return "signal", signal.Signals(number).name if number in signal.valid_signals() else ""
