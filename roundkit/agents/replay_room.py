"""What the replay driver does in a lane's clone, each command behind the lane's boundary."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundkit.agents.drivers.common import SYSTEM_PATH
from roundkit.agents.lane_boundary import LaneFacts, bound_lane, lane_grant
from roundkit.agents.watch import feed
from roundkit.core.clock import Deadline
from roundkit.core.errors import RoundkitError
from roundkit.core.git import SAFE_SETTINGS
from roundkit.core.resources import lane_wrapper
from roundkit.host.confine import Execution, Limits, Mount

_WITHIN_S = 600.0
_ANSWER_BYTES = 1 << 20
_WRAPPER = Path("/opt/roundkit/round")
_DONE, _REFUSED = 0, 3


class RoomFailed(RoundkitError):
    """A command in a lane's boundary was ended, or broke."""


@dataclass(frozen=True)
class ReplayRoom:
    """A lane's clone behind its boundary, for commands that nobody answers for.

    Attributes:
        clone: The clone.
        home: Folder that holds the lane's private home.
        hidden: What must stay out of its sight.
        limits: What one command may use.
        python: The plan's interpreter.
        readable: What that one needs to read.
    """

    clone: Path
    home: Path
    hidden: tuple[Path, ...]
    limits: Limits
    python: str
    readable: tuple[Path, ...]

    def reset(self, deadline: Deadline | None) -> None:
        """Take back what was changed in the working tree; the clone keeps what the outbox holds.

        Raises:
            RoomFailed: git broke, or the deadline was reached.
        """
        for words in (("reset", "--quiet", "--hard"), ("clean", "--quiet", "--force", "-d")):
            done = self._run(_git(*words), deadline, git_read_only=False)
            if done.exit_code != _DONE:
                raise RoomFailed(f"git {words[0]} in {self.clone} failed: {_said(done)}")

    def apply(self, patch: bytes, options: Sequence[str], deadline: Deadline | None) -> str | None:
        """Lay a patch into the working tree; return why it does not fit, or None.

        Raises:
            RoomFailed: the deadline was reached.
        """
        done = self._run(_git("apply", "--whitespace=nowarn", *options, "-"), deadline, stdin=patch)
        return None if done.exit_code == _DONE else _said(done)

    def submit(self, deadline: Deadline | None) -> dict[str, Any]:
        """Submit with the wrapper that ships with roundkit, and return its answer.

        Raises:
            RoomFailed: it broke, or the deadline was reached.
        """
        done = self._run([self.python, "-I", str(_WRAPPER), "submit"], deadline)
        if done.exit_code not in {_DONE, _REFUSED}:
            raise RoomFailed(f"submitting from {self.clone} failed: {_said(done)}")
        try:
            answer = json.loads(done.stdout_tail or "")
            return {**answer, "status": str(answer["status"])}
        except (ValueError, TypeError, KeyError, RecursionError):
            raise RoomFailed(f"submitting from {self.clone} gave no answer: {_said(done)}") from None

    def _run(
        self,
        argv: Sequence[str],
        deadline: Deadline | None,
        *,
        stdin: bytes = b"",
        git_read_only: bool = True,
    ) -> Execution:
        self.home.parent.mkdir(mode=0o711, exist_ok=True)
        grant = lane_grant(
            LaneFacts(
                clone=self.clone,
                home=self.home,
                hidden=self.hidden,
                readable=(*(Mount(path, path) for path in self.readable), Mount(lane_wrapper(), _WRAPPER)),
                environment={
                    "PATH": SYSTEM_PATH,
                    "LANG": "C.UTF-8",
                    "ROUNDKIT_LANE_HOME": str(self.clone / ".roundkit"),
                },
                git_read_only=git_read_only,
            )
        )
        read, write = os.pipe2(os.O_CLOEXEC)
        feeder = threading.Thread(target=feed, args=(stdin, write), name="replay-input")
        feeder.start()
        try:
            done = bound_lane(
                argv,
                grant,
                deadline=deadline or Deadline.after(_WITHIN_S),
                limits=self._limits(),
                stdin=read,
            )
        finally:
            feeder.join()
        if done.end_reason != "exited":
            raise RoomFailed(
                f"`{argv[0]}` in {self.clone} was ended: {done.end_reason} {done.detail}".strip()
            )
        return done

    def _limits(self) -> Limits:
        """Return the plan's limits, with room for an answer, which is read whole."""
        limits = self.limits
        kept = max(limits.output_bytes, 2 * _ANSWER_BYTES)
        most = max(limits.output_kill_bytes, 2 * _ANSWER_BYTES)
        return limits.model_copy(update={"output_bytes": kept, "output_kill_bytes": most})


def _git(*words: str) -> list[str]:
    return ["git", *SAFE_SETTINGS, *words]


def _said(done: Execution) -> str:
    return (done.stderr_tail.strip() or (done.stdout_tail or "").strip())[-2000:]
