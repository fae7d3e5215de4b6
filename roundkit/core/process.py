"""The one helper that runs a trusted command to its end."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from roundkit.core.errors import RoundkitError

_TAIL_CHARS = 2000


@dataclass(frozen=True)
class Completed:
    """What a finished command left: exit code, standard output, standard error."""

    argv: tuple[str, ...]
    exit_code: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """Standard output as text, without the last line break."""
        return self.stdout.decode("utf-8", "replace").rstrip("\n")

    @property
    def error_tail(self) -> str:
        """The last part of standard error as text."""
        return self.stderr.decode("utf-8", "replace").strip()[-_TAIL_CHARS:]


class CommandFailed(RoundkitError):
    """A trusted command ended with another exit code than 0, or could not be started."""

    def __init__(self, completed: Completed) -> None:
        self.completed = completed
        command = " ".join(completed.argv)
        super().__init__(f"`{command}` ended with exit code {completed.exit_code}: {completed.error_tail}")


def run(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout_s: float | None = None,
    check: bool = True,
) -> Completed:
    """Run a command that roundkit trusts, without a shell, and wait for it.

    Args:
        argv: The command and its arguments.
        cwd: Folder to run it in.
        env: The whole environment; None inherits this process's.
        stdin: Bytes on standard input.
        timeout_s: Seconds after which it is killed.
        check: Raise when the exit code is not 0.

    Raises:
        CommandFailed: not found, timed out (exit code 124) or, with ``check``, failed.
    """
    words = tuple(str(word) for word in argv)
    try:
        done = subprocess.run(
            words, cwd=cwd, env=env, input=stdin, timeout=timeout_s, capture_output=True, check=False
        )
    except FileNotFoundError as error:
        raise CommandFailed(Completed(words, 127, b"", str(error).encode())) from error
    except subprocess.TimeoutExpired as error:
        raise CommandFailed(Completed(words, 124, error.stdout or b"", error.stderr or b"")) from error
    completed = Completed(words, done.returncode, done.stdout, done.stderr)
    if check and completed.exit_code != 0:
        raise CommandFailed(completed)
    return completed
