"""Options that several commands take, checked in one way."""

from __future__ import annotations

import re
import shlex
import sys

import typer

_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)
_SHELL = re.compile(r"[|&;<>()`]+|\$\(|\$[A-Za-z_{]\w*")


def somebody() -> bool:
    """Whether a person is there who can be asked."""
    return sys.stdin.isatty()


def even_pairs(pairs: int | None) -> int | None:
    """Check a number of pairs.

    Raises:
        typer.BadParameter: it is odd.
    """
    if pairs is not None and pairs % 2:
        raise typer.BadParameter("pairs come in quads of two: give an even number")
    return pairs


def command_words(command: str, option: str) -> tuple[str, ...]:
    """Return the words of a command as a shell would split them; nothing else of a shell is there.

    Raises:
        typer.BadParameter: there is none, a quotation does not end, or it takes a shell.
    """
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise typer.BadParameter(f"{command!r}: {error}", param_hint=option) from error
    if not words:
        raise typer.BadParameter("the command is empty", param_hint=option)
    if found := _SHELL.search(_QUOTED.sub(" ", command)):
        remedy = f"write sh -c {shlex.quote(command)}"
        raise typer.BadParameter(
            f"no shell reads it, so {found[0]!r} would be a mere argument; {remedy}",
            param_hint=option,
        )
    return words
