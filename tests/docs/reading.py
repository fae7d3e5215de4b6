"""The blocks of a page: commands to run, output to compare, files and plans to load, Python to execute."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
Kind = Literal["commands", "output", "yaml", "python"]
KINDS: dict[str, Kind] = {
    "": "commands",
    "sh": "commands",
    "bash": "commands",
    "shell": "commands",
    "text": "output",
    "yaml": "yaml",
    "python": "python",
}
"""What a block is, by the word behind its fence. Directives of the site, in braces, are no blocks."""
_CONTINUED = re.compile(r"(\\|&&|\|\|?)\s*$")
_FILE_NAME = re.compile(r"# ([\w./-]+\.(?:py|yaml))\b")


@dataclass(frozen=True)
class Block:
    """A fenced block, and where it stands."""

    page: str
    line: int
    kind: Kind
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def file_name(self) -> str | None:
        """Return the file that the block's first line says it is: ``# sets.yaml``."""
        found = _FILE_NAME.match(self.text)
        return found[1] if found else None

    def begins(self, beginning: str) -> bool:
        return squeezed(self.text).startswith(beginning)


@dataclass(frozen=True)
class Command:
    """One command of a block, without its comment.

    Attributes:
        text: As a shell takes it; several lines where it goes on after ``&&`` or a backslash.
    """

    page: str
    line: int
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    def begins(self, beginning: str) -> bool:
        return f"{squeezed(self.text)} ".startswith(f"{beginning} ")


def pages() -> list[str]:
    """Return every page of documentation that somebody wrote, relative to the repository."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    generated = ROOT / "docs" / "reference"
    return [path.relative_to(ROOT).as_posix() for path in found if generated not in path.parents]


def page_name(page: str) -> str:
    """Return what a page's scene is called: ``docs/how-to/waves-gate.md`` has ``waves_gate``."""
    return Path(page).stem.lower().replace("-", "_")


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page in their order.

    Raises:
        ValueError: a fence says nothing that is known here, so that nobody would know what to do with it.
    """
    return list(parse(page, (ROOT / page).read_text()))


def parse(page: str, text: str) -> Iterator[Block]:
    """Return the blocks of a text."""
    for token in MarkdownIt("commonmark").parse(text):
        if token.type not in {"fence", "code_block"} or token.info.startswith("{"):
            continue
        word = token.info.split()[0] if token.info.strip() else ""
        line = (token.map or [0])[0] + (2 if token.type == "fence" else 1)
        if word not in KINDS:
            raise ValueError(f"{page}:{line}: a block of {word!r}, which is none of {', '.join(KINDS)}")
        yield Block(page, line, KINDS[word], token.content)


def inline_code(page: str) -> Iterator[tuple[str, str]]:
    """Return what stands between backticks within sentences, each with its place."""
    for token in MarkdownIt("commonmark").enable("table").parse((ROOT / page).read_text()):
        line = (token.map or [0])[0] + 1
        for child in token.children or ():
            if child.type == "code_inline":
                yield f"{page}:{line}", squeezed(child.content)


def commands(block: Block) -> list[Command]:
    """Split a block into commands: one a line, longer where a line goes on."""
    found: list[Command] = []
    lines: list[str] = []
    begun = block.line
    for number, raw in enumerate(block.text.splitlines(), block.line):
        line = without_comment(raw)
        if not lines:
            begun = number
        if line or lines:
            lines.append(line)
        if lines and not _CONTINUED.search(line):
            found.append(Command(block.page, begun, "\n".join(lines)))
            lines = []
    if lines:
        raise ValueError(f"{block.page}:{begun}: a command that does not end")
    return found


def without_comment(line: str) -> str:
    """Return a line of shell without its comment: ``#`` at the beginning of a word begins one."""
    for found in re.finditer(r"(?:^|(?<=\s))#", line):
        try:
            shlex.split(line[: found.start()].rstrip("\\ "))
        except ValueError:
            continue
        return line[: found.start()].rstrip()
    return line.rstrip()


def squeezed(text: str) -> str:
    """Return a text in one line, with single spaces."""
    return " ".join(text.replace("\\\n", " ").split())


def commands_of(page: str) -> list[Command]:
    """Return every command of a page."""
    return [command for block in blocks(page) if block.kind == "commands" for command in commands(block)]
