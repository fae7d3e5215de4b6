"""Runs a page: its commands by a real shell, in their order, in a folder of the page's own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from docs.reading import Block, Command, blocks, commands, squeezed
from docs.replaced import replacement
from docs.shell import run_in_shell, tools
from support.killing import wait_for

_PLACEHOLDER = re.compile(r"(?<![\w$-])[A-Z][A-Z_]{2,}(?![\w=])")
_NO_PLACEHOLDERS = {"HEAD"}
_NUMBER = re.compile(r"\d[\d.,]*")
_LIMIT_S = 900
"""Nothing here takes so long; a command that hangs ends the test."""

Act = Callable[["Stage"], object]


@dataclass(frozen=True)
class Turn:
    """What a scene adds to the commands, or blocks, with one beginning.

    Attributes:
        before: Happens right before: what the page tells in prose, or what somebody else does meanwhile.
        after: Happens right after.
        takes: Placeholders that get their value from what the command printed, by a pattern with one group.
        typed: What a person types.
        code: The exit code that the page promises.
        inside: Folder in which the reader is told to be.
        until: The command runs on; it is what the reader waits for.
        ends: What ends it then; without it, it goes on beside the commands that follow.
        check: For a block that shows something: holds it against what was printed, in place of the usual.
    """

    before: Act | None = None
    after: Act | None = None
    takes: dict[str, str] = field(default_factory=dict)
    typed: str = ""
    code: int = 0
    inside: str | None = None
    until: Callable[[], object] | None = None
    ends: str | None = None
    check: Callable[[Block, str], object] | None = None


class Stage:
    """A folder with what a page takes for granted, and the shell of its reader.

    Attributes:
        root: The folder; ``..`` of where the reader is.
        place: Where the reader is.
        names: Values of the page's placeholders.
        variables: Environment of the shell.
        said: What the commands printed, one text each.
    """

    def __init__(self, root: Path, stack: ExitStack) -> None:
        self.root = root
        self.stack = stack
        self.place = root / "program"
        self.place.mkdir(mode=0o755)
        self.names: dict[str, str] = {}
        self.files: dict[str, str] = {}
        self.variables = _variables(root)
        self.said: list[str] = []
        self._turns: dict[str, Turn] = {}
        self._met: set[str] = set()
        self._speaking: Path | None = None
        self._beside: list[subprocess.Popen[bytes]] = []

    def on(self, beginning: str, /, **what: object) -> None:
        """Add something to every command, or block, that begins so."""
        assert beginning not in self._turns, beginning
        self._turns[beginning] = Turn(**what)  # type: ignore[arg-type]

    def program(self, name: str, text: str) -> None:
        """Put a program on the reader's PATH."""
        path = self.root / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def run(self, line: str, *, code: int = 0, typed: str = "") -> str:
        """Run a command by the shell and return what it printed; it has to end with this code."""
        ran = run_in_shell(line, self.place, self.variables, typed=typed, limit_s=_LIMIT_S)
        assert ran.exit_code == code, f"$ {line}\n{ran.output}\n(exit code {ran.exit_code}, not {code})"
        assert "Traceback (most recent call last)" not in ran.output, f"$ {line}\n{ran.output}"
        self.place, self.variables = ran.place, ran.variables
        return ran.output

    def filled(self, text: str) -> str:
        """Return a text with the values of its placeholders."""
        for name, value in sorted(self.names.items(), key=lambda item: -len(item[0])):
            text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", value.replace("\\", r"\\"), text)
        return text

    def play(self, page: str) -> None:
        """Do everything that a page shows, in its order.

        Raises:
            AssertionError: a command ended otherwise than the page says, output is not what it shows, or the
                scene speaks of something that the page does not have.
        """
        for block in blocks(page):
            if block.kind == "commands":
                for command in commands(block):
                    self._play_command(command)
            elif block.kind == "output":
                check = self._turn_for(block).check or compare
                check(block, "\n".join(self.said))
            elif block.file_name is not None:
                self._write(block.file_name, block.text)
            elif block.kind == "python":
                self._play_python(block)
        unmet = sorted(set(self._turns) - self._met)
        assert not unmet, f"the scene of {page} speaks of what the page does not have: {unmet}"

    def _turn_for(self, shown: Command | Block) -> Turn:
        """Return what the scene adds: of several beginnings that fit, the longest."""
        fitting = [beginning for beginning in self._turns if shown.begins(beginning)]
        if not fitting:
            return Turn()
        longest = max(fitting, key=len)
        self._met.add(longest)
        return self._turns[longest]

    def _play_command(self, command: Command) -> None:
        turn = self._turn_for(command)
        if turn.before is not None:
            turn.before(self)
        line = self._line(command)
        said = self._keep_running(line, turn) if turn.until is not None else self._run_inside(line, turn)
        self.said.append(said)
        for name, pattern in turn.takes.items():
            found = re.search(pattern, said)
            assert found, f"{command.place}: no {name} in\n{said}"
            self.names[name] = found[1]
        if turn.after is not None:
            turn.after(self)

    def _line(self, command: Command) -> str:
        """Return what the shell is given: the command, or what stands for it, with its values."""
        text = command.text
        entry = replacement(command)
        if entry is not None:
            text = entry.instead
        unknown = [
            word for word in _PLACEHOLDER.findall(text) if word not in {*self.names, *_NO_PLACEHOLDERS}
        ]
        assert not unknown, f"{command.place}: no value for {', '.join(unknown)} in: {text}"
        return self.filled(text)

    def _run_inside(self, line: str, turn: Turn) -> str:
        before = self.place
        if turn.inside is not None:
            self.place = Path(os.path.normpath(self.place / self.filled(turn.inside)))
        said = self.run(line, code=turn.code, typed=turn.typed)
        if turn.inside is not None:
            self.place = before
        return said

    def start(self, line: str) -> subprocess.Popen[bytes]:
        """Start a command that runs beside the others; it is ended with the page."""
        self._speaking = self.root / f"beside-{len(list(self.root.glob('beside-*')))}"
        with self._speaking.open("w") as stream:
            process = subprocess.Popen(
                ["bash", "-c", line], cwd=self.place, env=self.variables, stdin=subprocess.DEVNULL,
                stdout=stream, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        self._beside.append(process)
        self.stack.callback(_end, process)
        return process

    def end_beside(self) -> None:
        """End the commands that run beside the others, the last one first."""
        while self._beside:
            _end(self._beside.pop())

    def spoken(self) -> str:
        """Return what the command that was started last has printed so far."""
        return self._speaking.read_text() if self._speaking else ""

    def _keep_running(self, line: str, turn: Turn) -> str:
        process = self.start(line)

        def reached() -> bool:
            assert turn.until is not None
            if process.poll() is not None:
                raise AssertionError(f"$ {line}\n{self.spoken()}\n(ended with {process.returncode})")
            return bool(turn.until())

        try:
            wait_for(reached, f"the state that is waited for after: {line}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.spoken()}") from error
        if turn.ends is not None:
            self.run(self.filled(turn.ends))
            process.wait(_LIMIT_S)
            assert process.returncode == turn.code, f"$ {line}\n{self.spoken()}"
        return self.spoken()

    def _play_python(self, block: Block) -> None:
        turn = self._turn_for(block)
        if turn.before is not None:
            turn.before(self)
        file = self.root / "block.py"
        file.write_text(self.filled(block.text))
        self.said.append(self.run(f"python3 {file}"))

    def _write(self, name: str, text: str) -> None:
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.files.get(name) or self.filled(text))


@contextmanager
def stage(root: Path) -> Iterator[Stage]:
    """Open a stage in an empty folder; what still runs there is ended afterwards."""
    with ExitStack() as stack:
        yield Stage(root, stack)


def compare(block: Block, said: str) -> None:
    """Hold what a page shows against what was printed: every word, whatever the figures are."""
    printed = squeezed(said)
    for line in block.text.splitlines():
        pattern = re.escape(squeezed(line)).replace("…", ".*")
        pattern = _NUMBER.sub(lambda _: r"[\d.,]+", pattern.replace(r"\.", "."))
        assert re.search(pattern, printed), f"{block.place}: nothing printed this: {line}\n{said}"


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is not None and process.returncode < 0:  # ended by this before
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(60)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def _variables(root: Path) -> dict[str, str]:
    """Return a reader's environment: the tools of this one, and a home, leases and temporary files apart."""
    for name in ("bin", "home", "tmp", "leases"):
        (root / name).mkdir()
        (root / name).chmod(0o711)
    inherited = ("LANG", "USER", "LOGNAME", "ROUNDKIT_CI")
    kept = {name: os.environ[name] for name in inherited if name in os.environ}
    return {
        **kept,
        **tools(root / "bin"),
        "HOME": str(root / "home"),
        "TMPDIR": str(root / "tmp"),
        "ROUNDKIT_LEASE_ROOT": str(root / "leases"),
        "TERM": "dumb",
        "COLUMNS": "200",
    }
