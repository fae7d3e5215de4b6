"""The programs that agents may call, and checks: each starts confined, in the candidate's folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from roundkit.core.clock import Deadline
from roundkit.core.errors import refuse
from roundkit.host.confine import Execution, Limits, Mount, confined_execute
from roundkit.measure.boundary import runtime_mounts
from roundkit.models.round_plan import FrozenRuntime
from roundkit.rules.pilot_programs import expanded, program_problem

CANDIDATE_AT = Path("/pilot/candidate")
FILES_AT = Path("/pilot/files")
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/home/pilot",
    "TMPDIR": "/tmp",  # noqa: S108 - private inside the boundary
    # A candidate is its files, not what an interpreter leaves beside them.
    "PYTHONDONTWRITEBYTECODE": "1",
}


@dataclass(frozen=True)
class Program:
    """A command of the plan, and where its files are.

    Attributes:
        argv: The command, as the plan has it.
        files: Its own files in the pilot's folder; null where it has none.
    """

    argv: tuple[str, ...]
    files: Path | None


def start(
    program: Program,
    arguments: Sequence[str],
    *,
    candidate: Path,
    runtime: FrozenRuntime,
    limits: Limits,
    deadline: Deadline,
    stop: int | None = None,
) -> Execution:
    """Start a command in a candidate's folder, which it may change, and return once nothing of it is left.

    Args:
        program: The command.
        arguments: What follows its own words.
        candidate: The folder on the host.
        runtime: The frozen interpreter.
        limits: What it may use.
        deadline: When it is ended.
        stop: Descriptor that ends it as soon as it can be read.

    Raises:
        Refused: ``program-outside``: the command is none that a pilot may start; or an argument holds a null
            byte.
        ConfinementUnavailable: the host cannot build the boundary.
    """
    problem = program_problem(program.argv, has_files=program.files is not None)
    if problem is not None:
        raise refuse("program-outside", problem)
    own = () if program.files is None else (Mount(program.files.resolve(), FILES_AT),)
    return confined_execute(
        (*expanded(program.argv, python=runtime.python, files=str(FILES_AT)), *arguments),
        cwd=CANDIDATE_AT,
        writable=(Mount(candidate.resolve(), CANDIDATE_AT),),
        readable=(*runtime_mounts(runtime), *own),
        deadline=deadline,
        env=_ENVIRONMENT,
        limits=limits,
        stop=stop,
    )
