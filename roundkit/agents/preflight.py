"""Preflight: nothing is reserved for an agent whose program, flags or boundary do not hold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from roundkit.agents.contract import AgentCommand, AgentTask, Driver
from roundkit.agents.grant import LanePlace, grant_of
from roundkit.agents.lane_boundary import bound_lane
from roundkit.core.clock import Deadline
from roundkit.core.errors import Refused, refuse
from roundkit.core.text import visible
from roundkit.host.confine import Execution

_WITHIN_S = 60.0
_SHOWN_CHARACTERS = 300
_FLAG = re.compile(r"--?[A-Za-z][A-Za-z0-9-]*")


@dataclass(frozen=True)
class _Questions:
    """The confined commands of one preflight. None of them holds a key or reaches anything."""

    driver: Driver
    task: AgentTask
    command: AgentCommand
    place: LanePlace

    def ask(self, argv: Sequence[str], what: str) -> str:
        """Run a command and return what it printed.

        Raises:
            Refused: ``preflight``: it failed.
        """
        grant = grant_of(self.task, self.command, self.place, inherited={}, network=False)
        deadline = Deadline.after(min(_WITHIN_S, self.task.remaining_s))
        done = bound_lane(argv, grant, deadline=deadline, limits=self.place.limits, cpus=self.place.cpus)
        if (done.end_reason, done.exit_code) != ("exited", 0):
            raise self.failure(f"{what} failed: {_how_it_ended(done)}")
        return f"{done.stdout_tail}\n{done.stderr_tail}"

    def failure(self, what: str) -> Refused:
        """Return the refusal for a question that was not answered as needed."""
        return refuse(
            "preflight",
            f"{self.driver.name} cannot run in lane {self.task.lane.id}: {what}",
            place=str(self.task.program),
            remedy="nothing was reserved; mend it and launch again",
        )


def check_before(driver: Driver, task: AgentTask, command: AgentCommand, place: LanePlace) -> str | None:
    """Check that an agent can run in its lane, and return its version; null where it has none.

    Three commands run confined, without network and keys: the version, the help that must name every flag
    that is going to be used, and the wrapper, by which the agent of a clone hands over.

    Raises:
        Refused: ``preflight``, with the reason.
        ConfinementUnavailable: the host cannot build the boundary.
    """
    wanted = driver.preflight(task)
    questions = _Questions(driver, task, command, place)
    program = str(task.program)
    version = None
    if wanted.version is not None:
        said = questions.ask((program, *wanted.version), "the question for its version")
        version = visible(said.strip().partition("\n")[0].strip()[:_SHOWN_CHARACTERS])
        if not version:
            raise questions.failure("it does not say which version it is")
    if wanted.help is not None and wanted.flags:
        known = _FLAG.findall(questions.ask((program, *wanted.help), "its help"))
        missing = [flag for flag in wanted.flags if flag not in known]
        if missing:
            raise questions.failure(f"version {version or 'unknown'} has no {', '.join(missing)}")
    if task.gateway is None:
        questions.ask((str(task.clone / ".roundkit" / "round"), "status"), "the lane's wrapper")
    return version


def _how_it_ended(done: Execution) -> str:
    said = (done.stderr_tail or done.stdout_tail or "").strip()[-_SHOWN_CHARACTERS:]
    code = f"exit code {done.exit_code}" if done.exit_code is not None else done.end_reason
    return f"{code}, {said!r}" if said else f"{code}, and it said nothing"
