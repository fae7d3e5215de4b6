"""The engine from PyPI behind a boundary: it orders the workers, and roundkit performs them.

The engine and the script see no clone, no network and nothing of the round but their own folder. Each call
of a worker, the engine's retries included, comes back to the coordinator as one message.
"""

from __future__ import annotations

import json
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from roundkit.agents.swarmflow import engine_host
from roundkit.agents.swarmflow.reports import WorkerReport
from roundkit.agents.swarmflow.script import TRIES
from roundkit.core.clock import Deadline
from roundkit.core.errors import Refused, RoundkitError, refuse
from roundkit.host.confine import Execution, Limits, Mount, confined_execute

_AT = Path("/swarmflow")
_MOST_LINE_BYTES = 1 << 20
_MOST_LOG_LINES = 1000
ENGINE_PACKAGE = Path("openjiuwen/agent_teams/workflow/engine/__init__.py")


@dataclass(frozen=True)
class EngineOrder:
    """What the engine is to run.

    Attributes:
        folder: The folder of installed packages that holds the engine.
        python: The interpreter, 3.11 or newer.
        readable: What the interpreter needs to read.
        work: Folder that holds ``script.py`` and keeps the journal; whatever else lies there is not shown.
        args: The text of ``launch.json``.
        run_id: Id of the run; the journal answers calls of the same run only.
        workers: How many workers may run at once.
    """

    folder: Path
    python: str
    readable: tuple[Path, ...]
    work: Path
    args: str
    run_id: str
    workers: int


@dataclass(frozen=True)
class WorkerCall:
    """One call of a worker by the engine: a first try, or a retry.

    Attributes:
        number: Number of the call in this run of the engine, from 1.
        lane: The lane, as the script names it.
    """

    number: int
    lane: str


class WorkerFailed(RoundkitError):
    """A worker's call did not end well; the engine may try it again."""


@dataclass(frozen=True)
class EngineOutcome:
    """What came of a run of the engine.

    Attributes:
        result: What the script returned; null when it returned nothing.
        error: Why it did not, in one line; null when it did.
        log: What the engine said, one line each.
        execution: How its process ended.
    """

    result: Any
    error: str | None
    log: tuple[str, ...]
    execution: Execution


Perform = Callable[[WorkerCall], WorkerReport]
"""Performs one call. Raises ``Refused`` where no attempt may be made, ``WorkerFailed`` where one failed."""


def check_engine(folder: Path) -> None:
    """Refuse a folder in which the engine is not installed.

    Raises:
        Refused: ``engine-missing``.
    """
    if not (folder / ENGINE_PACKAGE).is_file():
        raise refuse(
            "engine-missing",
            f"{folder} holds no SwarmFlow engine",
            place="--engine",
            remedy="pip install --no-deps --target FOLDER openjiuwen==0.1.19 aiofiles, and name that folder",
        )


def run_engine(order: EngineOrder, perform: Perform, *, deadline: Deadline, limits: Limits) -> EngineOutcome:
    """Run a script with the engine, and perform what it asks for, until nothing of it is left.

    Calls for different lanes run at the same time; of one lane, one after the other: a retry waits until the
    call that timed out is really over.

    Args:
        order: What to run.
        perform: Performs one call, in a thread of its own.
        deadline: When the engine is ended; calls that run are bounded by whoever performs them.
        limits: What the engine's process may use.

    Raises:
        Refused: ``engine-missing``.
        ConfinementUnavailable: the host cannot build the boundary; nothing ran.
    """
    check_engine(order.folder)
    (order.work / "journal").mkdir(exist_ok=True)
    asked_read, asked_write = os.pipe()
    answer_read, answer_write = os.pipe()
    with (
        os.fdopen(asked_read, "rb") as asked,
        os.fdopen(answer_write, "wb") as answers,
        ThreadPoolExecutor(1) as engine,
    ):
        talk = _Conversation(perform, answers, most_calls=order.workers * TRIES)
        running = engine.submit(_confined, order, answer_read, asked_write, deadline, limits)
        # Whoever reads is started first: a pipe holds 64 KiB, and a launch.json may be larger.
        talk.send(_opening(order))
        talk.follow(asked)
        return EngineOutcome(talk.result, talk.error, tuple(talk.log), running.result())


def _opening(order: EngineOrder) -> dict[str, Any]:
    return {
        "engine": str(_AT / "packages"),
        "script": str(_AT / "script.py"),
        "journal": str(_AT / "journal" / "journal.jsonl"),
        "args": order.args,
        "run_id": order.run_id,
        "cap": order.workers,
    }


def _confined(order: EngineOrder, stdin: int, stdout: int, deadline: Deadline, limits: Limits) -> Execution:
    host = Path(engine_host.__file__)
    readable: tuple[Path | Mount, ...] = (
        *order.readable,
        Mount(order.folder.resolve(), _AT / "packages"),
        Mount(order.work / "script.py", _AT / "script.py"),
        Mount(host.resolve(), _AT / "host.py"),
    )
    return confined_execute(
        [order.python, "-I", "-B", str(_AT / "host.py")],
        cwd=_AT / "journal",
        writable=(Mount(order.work / "journal", _AT / "journal"),),
        readable=readable,
        deadline=deadline,
        env={"PATH": "/usr/bin:/bin", "PYTHONHASHSEED": "0"},
        limits=limits,
        stdin=stdin,
        stdout=stdout,
    )


@dataclass
class _Conversation:
    """The coordinator's side of the conversation with the engine's process."""

    perform: Perform
    answers: IO[bytes]
    most_calls: int
    result: Any = None
    error: str | None = None
    log: deque[str] = field(default_factory=lambda: deque(maxlen=_MOST_LOG_LINES))
    _dropped: set[int] = field(default_factory=set)
    _lanes: dict[str, threading.Lock] = field(default_factory=dict)
    _sending: threading.Lock = field(default_factory=threading.Lock)

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one line; an engine that is gone hears nothing."""
        with self._sending:
            try:
                self.answers.write(json.dumps(message).encode() + b"\n")
                self.answers.flush()
            except OSError:
                return

    def follow(self, asked: IO[bytes]) -> None:
        """Perform what is asked for until the engine's process is gone and every call is over."""
        self.error = "the engine ended without a result"
        # A thread a lane, and one for each retry that waits for its lane: a call that is not begun times out.
        with ThreadPoolExecutor(self.most_calls, thread_name_prefix="worker") as workers:
            while line := asked.readline(_MOST_LINE_BYTES):
                message = _parsed(line)
                if _is_number(message.get("call")):
                    workers.submit(self._answer, WorkerCall(message["call"], str(message.get("lane"))))
                elif _is_number(message.get("cancel")):
                    self._dropped.add(message["cancel"])
                elif "log" in message:
                    self.log.append(str(message["log"]))
                elif "result" in message:
                    self.result, self.error = message["result"], None
                elif "error" in message:
                    self.error = str(message["error"])

    def _answer(self, call: WorkerCall) -> None:
        with self._lanes.setdefault(call.lane, threading.Lock()):
            if call.number not in self._dropped:
                self.send({"call": call.number, **self._performed(call)})

    def _performed(self, call: WorkerCall) -> dict[str, Any]:
        try:
            return {"report": self.perform(call).to_json_value()}
        except Refused as refusal:
            return {"refused": str(refusal)}
        except RoundkitError as failure:
            return {"failed": str(failure)}
        except Exception as failure:  # an engine that gets no answer waits until its deadline
            return {"failed": f"{type(failure).__name__}: {failure}"}


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
