"""Help like a manual page: a sentence, more about it, options in groups, examples, exit codes, files.

A command's docstring is its whole page. Below its text stand sections, each a line such as ``Examples:`` and
what is indented below it; :func:`page_of` takes them apart again, for help, for tests and for the docs.
"""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from roundkit.core.errors import RoundkitError

EXAMPLES = "Examples"
EXIT_CODES = "Exit codes"
FILES = "Files"
VARIABLES = "Variables"
INTERRUPTED = "Interrupted"
SECTIONS = (EXAMPLES, EXIT_CODES, FILES, VARIABLES, INTERRUPTED)

USUAL_EXITS: Mapping[str, str] = MappingProxyType(
    {
        "0": "done",
        "1": "it ran and failed its purpose, or was interrupted",
        "2": "wrong usage",
        "3": "refused, with the reason and what would help; what was recorded stays as it was",
    }
)

USUAL_INTERRUPTED = "nothing half-written is left; run it again"

_Command = TypeVar("_Command", bound=Callable[..., Any])

_HEADING = re.compile(rf"^({'|'.join(SECTIONS)}):\n", re.MULTILINE)
_ENTRY = re.compile(r"^(\S[^:]*): +", re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """One command's help, taken apart.

    Attributes:
        text: Its sentence and what follows it, in Markdown.
        examples: Lines to type, as they are written, with a comment above where they need one.
        exits: What each exit code means.
        files: What it reads or writes beyond what its arguments name.
        variables: Environment variables that it looks at.
        interrupted: What Ctrl-C leaves, and how to go on: the rest of a sentence.
    """

    text: str
    examples: tuple[str, ...]
    exits: Mapping[str, str]
    files: Mapping[str, str]
    variables: Mapping[str, str]
    interrupted: str


def page_of(docstring: str) -> Page:
    """Take a command's docstring apart."""
    text, *parts = _HEADING.split(inspect.cleandoc(docstring) + "\n")
    found = dict(zip(parts[::2], parts[1::2], strict=True))
    return Page(
        text=text.strip(),
        examples=tuple(inspect.cleandoc("\n" + found.get(EXAMPLES, "")).splitlines()),
        exits={**USUAL_EXITS, **_entries(found.get(EXIT_CODES, ""))},
        files=_entries(found.get(FILES, "")),
        variables=_entries(found.get(VARIABLES, "")),
        interrupted=" ".join(found.get(INTERRUPTED, USUAL_INTERRUPTED).split()),
    )


def _entries(section: str) -> dict[str, str]:
    """Return ``name: meaning`` lines; a meaning may go on in indented lines."""
    _, *parts = _ENTRY.split(inspect.cleandoc("\n" + section))
    return {name: " ".join(said.split()) for name, said in zip(parts[::2], parts[1::2], strict=True)}


class Interrupted(RoundkitError):
    """Somebody pressed Ctrl-C; says what that leaves."""


def _end_quietly() -> None:
    """Let nothing follow the last sentence: libraries complain of what an interrupt left half-made."""
    sys.unraisablehook = lambda unraisable: None
    warnings.simplefilter("ignore")


class ManualCommand(TyperCommand):
    """A command whose help ends with the sections of its page."""

    def __init__(self, *, help: str | None = None, **settings: Any) -> None:  # noqa: A002  Typer's name
        self.page = page_of(help or "")
        super().__init__(help=self.page.text, **settings)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print what Typer prints, and the sections."""
        super().format_help(ctx, formatter)
        _print_sections(self.page)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what was typed.

        Raises:
            typer.BadParameter: in Typer's words, less those of what it checks them with.
        """
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command; Ctrl-C ends it with its page's sentence.

        Raises:
            Interrupted: by Ctrl-C.
        """
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            _end_quietly()
            raise Interrupted(f"interrupted: {self.page.interrupted}") from error


class ManualGroup(TyperGroup):
    """A group of commands whose help ends with its examples."""

    def __init__(self, *, help: str | None = None, **settings: Any) -> None:  # noqa: A002  Typer's name
        self.page = page_of(help or "")
        super().__init__(help=self.page.text, **settings)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print what Typer prints, and the examples."""
        super().format_help(ctx, formatter)
        _print_examples(self.page)


class Manual(typer.Typer):
    """A Typer app whose commands have pages."""

    def __init__(self, *, cls: type[ManualGroup] = ManualGroup, **settings: Any) -> None:
        super().__init__(
            cls=cls,
            no_args_is_help=True,
            pretty_exceptions_enable=False,
            rich_markup_mode="markdown",
            context_settings={"help_option_names": ["-h", "--help"]},
            **settings,
        )

    def command(self, name: str | None = None, **settings: Any) -> Callable[[_Command], _Command]:
        """Register a command, as Typer does."""
        return super().command(name, cls=ManualCommand, **settings)


def _print_sections(page: Page) -> None:
    _print_examples(page)
    _print_table(EXIT_CODES, page.exits)
    _print_table(FILES, page.files)
    _print_table(VARIABLES, page.variables)
    if page.interrupted != USUAL_INTERRUPTED:
        _print_table(INTERRUPTED, {"Ctrl-C": page.interrupted})


def _print_examples(page: Page) -> None:
    from rich.console import Console
    from rich.text import Text

    if not page.examples:
        return
    out = Console()
    out.print(Text(f" {EXAMPLES}", style="bold"))
    for line in page.examples:
        # Whole, whatever the width: what is wrapped cannot be pasted.
        style = "dim" if line.lstrip().startswith("#") else ""
        out.print(Text(f"   {line}", style=style), soft_wrap=True)
    out.print()


def _print_table(title: str, rows: Mapping[str, str]) -> None:
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return
    out = Console()
    table = Table.grid(padding=(0, 2))
    for name, meaning in rows.items():
        table.add_row(Text(name), Text(meaning))
    out.print(Text(f" {title}", style="bold"))
    out.print(Padding(table, (0, 0, 1, 3), expand=False))
