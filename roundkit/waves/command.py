"""One call of a campaign's own command: confined, with JSON in and JSON out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from roundkit.core.clock import Deadline
from roundkit.core.errors import RoundkitError
from roundkit.host.confine import (
    Execution,
    HostileOutput,
    Limits,
    Mount,
    Network,
    confined_execute,
    read_output,
)
from roundkit.measure.boundary import runtime_mounts
from roundkit.measure.trees import make_folder, remove_tree
from roundkit.models.base import Record
from roundkit.models.wave_plan import WaveCommand, WavePlan
from roundkit.waves.folder import CampaignFolder

INSIDE = Path("/wave")
TOOLS = INSIDE / "tools"
"""The frozen tools, which every command starts in."""
INPUT = INSIDE / "input.json"
OUT = INSIDE / "out"
"""The call's own folder; it holds the answer, and is its home."""
OUTPUT = OUT / "output.json"
TREE = INSIDE / "tree"
STAGING = INSIDE / "staging"

STANDING_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
}
_MOST_ANSWER_BYTES = 64 << 20

R = TypeVar("R", bound=Record)


class CommandProblem(RoundkitError):
    """A campaign's command did not do what its contract says.

    Attributes:
        said: The end of what it printed.
        end_reason: Why it ended, as of a confined command.
    """

    def __init__(self, sentence: str, said: str = "", end_reason: str = "exited") -> None:
        self.said = said
        self.end_reason = end_reason
        super().__init__(sentence)


@dataclass(frozen=True)
class Call:
    """One call of a command.

    Attributes:
        name: Which of the plan's commands, for people.
        command: The command.
        request: What it reads.
        folder: The call's own folder on the host; made here, and removed first where a killed call left it.
        readable: What it sees beside tools and system, e.g. the tree.
        writable: What it may change beside its own folder.
        words: Further placeholders.
        network: What it may reach.
        environment: Further variables.
        limits: What it may use.
    """

    name: str
    command: WaveCommand
    request: Record
    folder: Path
    limits: Limits
    readable: tuple[Mount, ...] = ()
    writable: tuple[Mount, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    network: Network = Network.none()  # noqa: RUF009 - frozen
    environment: Mapping[str, str] = field(default_factory=dict)


def ask_command(
    folder: CampaignFolder, call: Call, answer: type[R], *, stdout: int | None = None, stop: int | None = None
) -> R:
    """Run a command and return its answer.

    Args:
        folder: The campaign.
        call: The call.
        answer: What it has to answer.
        stdout: Pipe for what it prints, taken over; without one only its end is kept.
        stop: Descriptor of the caller's that ends it as soon as it can be read.

    Raises:
        CommandProblem: it failed, took too long, or answered something else.
        Refused: a place that it needs is missing.
        ConfinementUnavailable: the host cannot build the boundary; nothing ran.
        OSError: its folder cannot be made.
    """
    execution = run_call(folder, call, stdout=stdout, stop=stop)
    said = "\n".join(filter(None, (execution.stdout_tail, execution.stderr_tail)))
    if execution.end_reason != "exited" or execution.exit_code != 0:
        raise CommandProblem(f"{call.name} {_how(execution)}", said, execution.end_reason)
    try:
        data = read_output(call.folder / OUT.name, OUTPUT.name, _MOST_ANSWER_BYTES)
        return answer.from_bytes(data, place=f"{call.name}: {OUTPUT.name}")
    except HostileOutput as error:
        raise CommandProblem(f"{call.name} left no answer: {error}", said) from error
    except (ValidationError, RoundkitError) as error:
        raise CommandProblem(f"{call.name} answered what is no {answer.__name__}: {error}", said) from error


def run_call(
    folder: CampaignFolder, call: Call, *, stdout: int | None = None, stop: int | None = None
) -> Execution:
    """Run a command in its boundary, whatever becomes of it; its answer lies in ``out`` of its folder."""
    plan = folder.plan
    remove_tree(call.folder)
    call.folder.mkdir(parents=True)
    call.folder.chmod(0o711)
    request = call.folder / INPUT.name
    request.write_bytes(call.request.to_bytes())
    request.chmod(0o644)
    make_folder(call.folder / OUT.name)
    words = {"input": str(INPUT), "output": str(OUTPUT), **call.words}
    return confined_execute(
        filled(call.command.argv, plan, words),
        cwd=TOOLS,
        writable=(Mount(call.folder / OUT.name, OUT), *call.writable),
        readable=(Mount(request, INPUT), *standing_mounts(folder), *call.readable),
        deadline=Deadline.after(call.command.timeout_s),
        env={**STANDING_ENVIRONMENT, "HOME": str(OUT), "TMPDIR": "/tmp", **call.environment},  # noqa: S108
        limits=call.limits,
        network=call.network,
        stdout=stdout,
        stop=stop,
    )


def standing_mounts(folder: CampaignFolder) -> tuple[Mount, ...]:
    """Return what every command and draft agent may read: the frozen tools and what the plan provides."""
    return (Mount(folder.tools, TOOLS), *runtime_mounts(folder.plan.runtime))


def filled(argv: tuple[str, ...], plan: WavePlan, words: Mapping[str, str]) -> tuple[str, ...]:
    """Return a command's words with their placeholders filled in; other braces stay."""
    replaced = {"python": plan.runtime.python, **words}
    return tuple(_filled(word, replaced) for word in argv)


def _filled(word: str, replaced: Mapping[str, str]) -> str:
    for name, value in replaced.items():
        word = word.replace(f"{{{name}}}", value)
    return word


def _how(execution: Execution) -> str:
    if execution.end_reason == "exited":
        return f"exited with {execution.exit_code}"
    if execution.end_reason == "signal":
        return f"died of signal {execution.signal}"
    return f"was ended: {execution.end_reason}" + (f" ({execution.detail})" if execution.detail else "")
