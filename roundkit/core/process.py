"""The one helper that runs a trusted command to its end."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from roundkit.core.errors import RoundkitError

_TAIL_CHARS = 2000
_PIPE = subprocess.PIPE


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
        with _started(words, cwd=cwd, env=env) as process:
            try:
                stdout, stderr = process.communicate(stdin, timeout_s)
            except subprocess.TimeoutExpired as late:
                process.kill()
                late.stdout, late.stderr = process.communicate()
                raise
            except BaseException:
                process.kill()
                raise
    except FileNotFoundError as error:
        raise CommandFailed(Completed(words, 127, b"", str(error).encode())) from error
    except subprocess.TimeoutExpired as error:
        raise CommandFailed(Completed(words, 124, error.stdout or b"", error.stderr or b"")) from error
    completed = Completed(words, process.returncode, stdout, stderr)
    if check and completed.exit_code != 0:
        raise CommandFailed(completed)
    return completed


def _started(
    argv: Sequence[str], *, cwd: Path | None, env: Mapping[str, str] | None
) -> subprocess.Popen[bytes]:
    """Start a command that no Ctrl-C of a terminal reaches, from its first moment.

    Ctrl-C is for roundkit, which may want to end what it does first. The session of the command's own keeps
    it away; what comes between fork and session is held back, for the command for good.
    """
    if sys.platform == "win32":  # audits with a repository run there too
        return subprocess.Popen(argv, cwd=cwd, env=env, stdin=_PIPE, stdout=_PIPE, stderr=_PIPE)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return subprocess.Popen(
            argv, cwd=cwd, env=env, stdin=_PIPE, stdout=_PIPE, stderr=_PIPE, start_new_session=True
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
