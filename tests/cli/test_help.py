"""Help like a manual page: every command says what it is for, with examples that the command really takes."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from support.processes import ended_with_test
from support.terminals import read_until_closed

from roundkit.cli.app import app
from roundkit.cli.manual import USUAL_EXITS, ManualCommand, ManualGroup, page_of

ROOT: Any = typer.main.get_command(app)
_COLUMNS = 80
_ANSI = re.compile(r"\x1b\[")


def pages(group: Any = ROOT, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield every group and command with the words that lead to it."""
    yield " ".join(path), group
    for name, command in getattr(group, "commands", {}).items():
        if hasattr(command, "commands"):
            yield from pages(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


ALL = dict(pages())
COMMANDS = [path for path, found in ALL.items() if not hasattr(found, "commands")]


def commands_in(examples: tuple[str, ...]) -> Iterator[list[str]]:
    """Yield the words of each example as a shell would hand them to roundkit."""
    text = "\n".join(line for line in examples if not line.startswith("#"))
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(re.sub(r"\$\([^)]*\)", "printed", line))
        yield words[: words.index(">")] if ">" in words else words


def parsed(words: list[str]) -> None:
    """Let the real command take the words, and run nothing."""
    context, command = None, ROOT
    while True:
        context = command.make_context(words[0], words[1:], parent=context)
        if not hasattr(command, "commands"):
            return
        words = [*context._protected_args, *context.args]
        _, command, rest = command.resolve_command(context, words)
        words = [words[0], *rest]


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_has_a_page_whose_examples_it_takes(path: str) -> None:
    command = ALL[path]
    assert isinstance(command, ManualCommand)
    sentence = command.page.text.split("\n\n")[0]
    assert re.search(r"[.?]$", sentence), "the first paragraph is a sentence"
    examples = list(commands_in(command.page.examples))
    assert examples
    assert {*command.page.exits} == {*USUAL_EXITS}
    for words in examples:
        assert words[0] == "roundkit"
        parsed(words)
    assert any(" ".join(words[1:]).startswith(path) for words in examples) or path == "notebook run"


@pytest.mark.parametrize("path", [path for path in ALL if path not in COMMANDS])
def test_every_group_has_a_page(path: str) -> None:
    assert isinstance(ALL[path], ManualGroup)
    for words in commands_in(ALL[path].page.examples):
        parsed([word for word in words if word != "--help"])


@pytest.mark.parametrize("path", ALL)
def test_help_fits_a_small_terminal_and_a_pipe(
    path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(_COLUMNS))
    with pytest.raises(SystemExit) as left:
        ROOT.main([*path.split(), "--help"], prog_name="roundkit")
    printed = capsys.readouterr().out
    assert left.value.code == 0
    assert [line for line in printed.splitlines() if len(line) > _COLUMNS] == []
    assert not _ANSI.search(printed)
    assert "Examples:" not in printed, "a section was taken for text"
    if path in COMMANDS:
        assert "\n Examples\n" in printed
        assert "\n Exit codes\n" in printed


@pytest.mark.parametrize(("more", "colours"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_help_in_a_terminal_has_colours_unless_nobody_wants_them(more: dict[str, str], colours: bool) -> None:
    ours, theirs = pty.openpty()
    done = ended_with_test(subprocess.Popen(
        [sys.executable, "-m", "roundkit", "measure", "--help"], stdin=theirs, stdout=theirs, stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80", **more},
    ))  # fmt: skip
    os.close(theirs)
    printed = read_until_closed(ours).decode()
    assert done.wait(60) == 0
    assert bool(re.search(r"\x1b\[[0-9;]*3[0-9]m", printed)) == colours
    assert "roundkit measure .@HEAD~1 . --benchmark" in printed


def test_a_page_is_taken_apart() -> None:
    page = page_of(
        """Do it.

        Exit codes:
            1: it was not
                done
        """
    )
    assert (page.text, page.examples) == ("Do it.", ())
    assert page.exits == {**USUAL_EXITS, "1": "it was not done"}
    assert (page.files, page.variables) == ({}, {})


def test_nothing_promises_an_example_in_another_form() -> None:
    folder = Path(__file__).resolve().parents[2] / "roundkit/cli"
    old = re.compile(r"^\s*Example: ", re.MULTILINE)
    assert [path.name for path in folder.glob("*.py") if old.search(path.read_text())] == []
