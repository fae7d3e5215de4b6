"""What drivers have in common: a private environment, grants, JSON lines, caps, and how a run ended."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeGuard

from roundkit.agents.contract import AgentOutput, AgentTask
from roundkit.agents.lane_boundary import HOME, Credential
from roundkit.core.text import visible
from roundkit.host.confine import Mount
from roundkit.models.agent_run import AgentEnd, TokenCounts, Usage
from roundkit.models.round_plan import LaneBudget

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
_SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/sbin")
_SESSION_ID = re.compile(r"[A-Za-z0-9-]{8,80}\Z")
_DETAIL_CHARACTERS = 300
_MISSING_EXIT = 127
_MOST_COUNT = 10**12
_MOST_SUM = 10**15
_LOOKS = 2
"""At least a second lies between two looks: time enough to close what a tool has open."""


def private_environment(task: AgentTask) -> dict[str, str]:
    """Return the variables that every agent has: its own places, a PATH, and what the plan gives it."""
    places = {"CONFIG": ".config", "CACHE": ".cache", "DATA": ".local/share", "STATE": ".local/state"}
    prefix = _node_prefix(task.program)
    interpreter = [] if prefix is None else [str(prefix / "bin")]
    return {
        "PATH": ":".join([str(task.program.parent), *interpreter, SYSTEM_PATH]),
        "LANG": "C.UTF-8",
        **{f"XDG_{kind}_HOME": str(HOME / place) for kind, place in places.items()},
        **task.agent.environment,
    }


def credentials(task: AgentTask) -> tuple[Credential, ...]:
    """Return the credential files that the plan names."""
    return tuple(Credential(Path(file.source), PurePosixPath(file.at)) for file in task.agent.credentials)


def readable(task: AgentTask) -> tuple[Mount, ...]:
    """Return the folders that the plan names, and the agent's program: its file, not what lies beside it.

    A program of a package for node is read with all that was installed beside it, node included if it was.
    """
    named = [Path(name) for name in task.agent.readable]
    modules = _node_modules(task.program)
    own = _node_prefix(task.program) or modules or task.program
    shown = [*named, *map(Path, _SYSTEM)]
    wanted = named if any(own.is_relative_to(place) for place in shown) else [*named, own]
    return tuple(Mount(place, place) for place in dict.fromkeys(wanted))


def is_session_id(told: str | None) -> TypeGuard[str]:
    """Say whether what an agent calls its session may stand in the name of a file that is looked for."""
    return told is not None and _SESSION_ID.match(told) is not None


def _node_modules(program: Path) -> Path | None:
    """Return the outermost `node_modules` that a program lies in, if it lies in one."""
    return next((parent for parent in reversed(program.parents) if parent.name == "node_modules"), None)


def _node_prefix(program: Path) -> Path | None:
    """Return where a program was installed together with node (`PREFIX/lib/node_modules`), if it was."""
    modules = _node_modules(program)
    if modules is None or modules.parent.name != "lib":
        return None
    prefix = modules.parent.parent
    return prefix if (prefix / "bin" / "node").exists() else None


def parse_event(line: str) -> dict[str, Any]:
    """Return a line's JSON object; empty for anything else, since an agent may print what it likes."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def events(content: bytes) -> Iterator[dict[str, Any]]:
    """Yield the JSON object of each line of an agent's file; empty for a line that holds none."""
    return map(parse_event, file_lines(content))


def file_lines(content: bytes) -> list[str]:
    """Return the lines of an agent's file, without their ends."""
    # Not splitlines: JSON may hold U+2028 and its like as they are, and they end no line.
    return content.decode("utf-8", "replace").split("\n")


def mapping(value: object) -> dict[str, Any]:
    """Return a value that should be an object; empty if it is none."""
    return value if isinstance(value, dict) else {}


def count(value: object) -> int | None:
    """Return a value that should be a count; None if it is none, or more than anybody ever used."""
    number = value if isinstance(value, int) and not isinstance(value, bool) else None
    return number if number is not None and 0 <= number <= _MOST_COUNT else None


def text(value: object) -> str | None:
    """Return a value that should be a short text, as one line that can be shown; None if it is none."""
    words = value[:_DETAIL_CHARACTERS].split() if isinstance(value, str) else []
    return visible(" ".join(words)) or None


def micro_usd(value: object) -> int | None:
    """Return dollars as micro-USD, rounded up; None if they are none."""
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    if number is None or not 0 <= number < 1e9:
        return None
    return -int(-number * 1_000_000 // 1)


def total(first: int | None, second: int | None) -> int | None:
    """Return two amounts added up, the unknown left out; None where both are. It stays within exact JSON."""
    known = [value for value in (first, second) if value is not None]
    return min(sum(known), _MOST_SUM) if known else None


def most(first: int | None, second: int | None) -> int | None:
    """Return the larger of two amounts of one thing; None where both are unknown."""
    return max((value for value in (first, second) if value is not None), default=None)


def added(first: TokenCounts, second: TokenCounts) -> TokenCounts:
    """Return two counts added up, class by class."""
    names = TokenCounts.model_fields
    return TokenCounts(**{name: total(getattr(first, name), getattr(second, name)) for name in names})


def larger(first: TokenCounts, second: TokenCounts) -> TokenCounts:
    """Return the larger of two counts of one thing, class by class."""
    names = TokenCounts.model_fields
    return TokenCounts(**{name: most(getattr(first, name), getattr(second, name)) for name in names})


def grown(before: TokenCounts, now: TokenCounts) -> TokenCounts:
    """Return by how much a count has grown, class by class; null where it is unknown still."""
    amounts = {name: (getattr(before, name) or 0, getattr(now, name)) for name in TokenCounts.model_fields}
    return TokenCounts(**{name: None if new is None else new - old for name, (old, new) in amounts.items()})


def over_cap(caps: LaneBudget, usage: Usage) -> bool:
    """Say whether what is known of a usage has reached a cap, so that no further answer may be asked for."""
    amounts = {"turns": usage.turns, "tokens": usage.tokens.total, "micro_usd": usage.micro_usd}
    for name, amount in amounts.items():
        cap = getattr(caps, name)
        if cap is not None and amount is not None and amount >= cap:
            return True
    return False


@dataclass
class LastWord:
    """A tool's own word that it is done: for a moment its end is left to it, even where a cap was reached.

    An agent can print the same word and go on. So it is heard once, and after two looks, some seconds apart,
    whatever still runs is held to its caps as before.
    """

    was_said: bool = False
    _looks: int = 0

    def say(self) -> None:
        """Take the word; a second one changes nothing."""
        self.was_said = True

    def look(self) -> None:
        """Count a look at an agent that still runs."""
        self._looks += self.was_said

    @property
    def is_believed(self) -> bool:
        """Whether it may still end by itself."""
        return self.was_said and self._looks < _LOOKS


def end_from_outside(output: AgentOutput) -> tuple[AgentEnd, str] | None:
    """Return why a run ended where its own output has no say in that, with a line; None where it has."""
    execution = output.execution
    if execution.end_reason == "deadline":
        return "deadline", "its deadline was reached"
    if output.stopped is not None:
        return output.stopped, "roundkit ended it"
    if execution.end_reason == "setup-failed" or execution.wall_s is None:
        return "preflight", f"it was never started: {execution.detail or execution.end_reason}"
    # One that spoke was started, whatever it ends with.
    if execution.exit_code == _MISSING_EXIT and not output.spoke:
        return "preflight", f"its program cannot be run: {last_words(output)}"
    if execution.end_reason != "exited":
        number = f" {execution.signal}" if execution.signal else ""
        return "killed", f"{execution.end_reason}{number} {execution.detail}".strip()
    return None


def last_words(output: AgentOutput) -> str:
    """Return the last line that an agent wrote to standard error, shortened."""
    lines = output.execution.stderr_tail.strip().splitlines()
    return (text(lines[-1]) if lines else None) or "it said nothing"
