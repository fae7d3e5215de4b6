"""Options that several commands take, checked in one way."""

from __future__ import annotations

import shlex

import typer


def even_pairs(pairs: int | None) -> int | None:
    """Check a number of pairs.

    Raises:
        typer.BadParameter: it is odd.
    """
    if pairs is not None and pairs % 2:
        raise typer.BadParameter("pairs come in quads of two: give an even number")
    return pairs


def command_words(command: str, option: str) -> tuple[str, ...]:
    """Return the words of a command as a shell would split them.

    Raises:
        typer.BadParameter: there is none, or a quotation does not end.
    """
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise typer.BadParameter(f"{command!r}: {error}", param_hint=option) from error
    if not words:
        raise typer.BadParameter("the command is empty", param_hint=option)
    return words
