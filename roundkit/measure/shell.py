"""A shell where the candidate's process of a trial would run: the same boundary, another command."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from roundkit.core.clock import Deadline
from roundkit.host.confine import Execution
from roundkit.host.devices import Binding
from roundkit.measure.boundary import TrialBoundary, TrialFiles
from roundkit.measure.trial import execute_grant, private_folders
from roundkit.models.run_spec import RunSpec
from roundkit.models.trial import PlannedTrial

# The boundary takes pipes only, so there is no job control; what goes wrong is read where it happens.
_INTERACTIVE = ("/bin/sh", "-c", "exec /bin/sh -i 2>&1")
_FROM_PIPE = ("/bin/sh", "-c", "exec /bin/sh 2>&1")
_CHUNK_BYTES = 65536


def run_shell(
    spec: RunSpec,
    planned: PlannedTrial,
    files: TrialFiles,
    folder: Path,
    *,
    binding: Binding,
    timeout_s: float,
    stdin: int,
    stdout: int,
) -> Execution:
    """Run a shell with the grants of the process that holds the candidate's code.

    Args:
        spec: How a trial runs.
        planned: Which trial this stands for.
        files: What the side's trials see.
        folder: Where the private folders are made; does not exist yet.
        binding: Cores and devices.
        timeout_s: Seconds after which the shell ends.
        stdin: Descriptor that commands are read from; a terminal gives an interactive shell.
        stdout: Descriptor that its output is written to.

    Raises:
        ConfinementUnavailable: the host cannot build the boundary; nothing ran.
        Refused: the plan asks for something that is never granted.
    """
    with private_folders(folder) as folders:
        boundary = TrialBoundary(spec, planned, files, folders, binding)
        grant = boundary.single() if spec.benchmark.single_process else boundary.worker()
        grant = replace(grant, argv=_INTERACTIVE if os.isatty(stdin) else _FROM_PIPE)
        with _pumped(stdin, stdout) as (commands, answers):
            return execute_grant(boundary, grant, Deadline.after(timeout_s), commands, answers)


@contextmanager
def _pumped(stdin: int, stdout: int) -> Iterator[tuple[int, int]]:
    """Give pipes in place of any two descriptors, and move bytes between them until the command ends.

    Whoever takes the two pipes over closes them.
    """
    commands, to_command = os.pipe2(os.O_CLOEXEC)
    from_command, answers = os.pipe2(os.O_CLOEXEC)
    # A daemon, since nothing ends a read from a terminal once the shell has left.
    threading.Thread(target=_pump, args=(stdin, to_command, to_command), name="shell-in", daemon=True).start()
    output = threading.Thread(target=_pump, args=(from_command, stdout, from_command), name="shell-out")
    output.start()
    try:
        yield commands, answers
    finally:
        output.join()


def _pump(source: int, sink: int, owned: int) -> None:
    """Copy until the end of either side, and close the pipe's end, so that its other end sees it."""
    try:
        with contextlib.suppress(OSError):
            while chunk := os.read(source, _CHUNK_BYTES):
                while chunk:
                    chunk = chunk[os.write(sink, chunk) :]
    finally:
        os.close(owned)
