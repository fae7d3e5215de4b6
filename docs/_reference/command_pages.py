"""The pages of commands: one a group of ``roundkit --help``, with options, defaults and examples."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer

from _reference.markdown import anchor, code, table, toctree
from roundkit.cli.app import app
from roundkit.cli.manual import EXIT_CODES, FILES, USUAL_INTERRUPTED, VARIABLES, Page

_MOST_EXAMPLES = 3
_HEAD = """# Commands

`roundkit --help` lists them, `roundkit COMMAND --help` says what is on these pages. Exit codes are the same
everywhere: 0 done, 1 ran and failed its purpose, 2 wrong usage, 3 refused with a [code](../codes.md).
"""


def commands() -> dict[str, dict[str, Any]]:
    """Return the commands by group of the help and by whole name, e.g. ``pilot run``."""
    found: dict[str, dict[str, Any]] = {}
    root = typer.main.get_command(app)
    for name, command in root.commands.items():  # type: ignore[attr-defined]
        panel = getattr(command, "rich_help_panel", None)
        own = panel if isinstance(panel, str) else "Commands"
        for whole, each in _within(name, command):
            found.setdefault(own, {})[whole] = each
    return found


def pages(docs: Path) -> dict[str, str]:
    """Return the pages; examples come from the pages in ``docs`` and from the README beside that folder."""
    examples = list(_examples(docs))
    groups = commands()
    made = {f"commands/{anchor(group)}.md": _page(group, each, examples) for group, each in groups.items()}
    listed = [
        f"## {group}\n\n"
        + table(["command", "what it does"], [_listed(name, it) for name, it in each.items()])
        for group, each in groups.items()
    ]
    made["commands/index.md"] = "\n".join([_HEAD, *listed, toctree(map(anchor, groups))])
    return made


def _within(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
        return
    for below, each in inner.items():
        yield from _within(f"{name} {below}", each)


def _listed(name: str, command: Any) -> list[str]:
    return [f"[{name}](#{anchor('command', name)})", _about(command).partition("\n\n")[0]]


def _about(command: Any) -> str:
    """Return a command's help without its sections, which stand below its options."""
    return str(command.page.text)


def _sections(page: Page) -> Iterator[str]:
    """Yield what a command's help says below its options, but for its examples."""
    titled = ((EXIT_CODES, page.exits), (FILES, page.files), (VARIABLES, page.variables))
    for title, rows in titled:
        if rows:
            yield table([title.lower(), "meaning"], [[code(name), said] for name, said in rows.items()])
    if page.interrupted != USUAL_INTERRUPTED:
        yield f"Ctrl-C: {page.interrupted}.\n"


def _page(group: str, each: dict[str, Any], examples: list[tuple[str, str]]) -> str:
    parts = [f"# {group}\n"]
    for name, command in each.items():
        parts.append(f"({anchor('command', name)})=\n## {name}\n\n{_about(command)}\n")
        parts.append(f"```text\n{_usage(name, command)}\n```\n")
        kinds = get_type_hints(inspect.unwrap(command.callback))
        rows = [_row(parameter, kinds.get(parameter.name)) for parameter in command.params]
        if rows:
            parts.append(table(["argument or option", "value", "default", "meaning"], rows))
        on_pages = [line for start, line in examples if start == name]
        own = command.page.examples
        others = [line for line in dict.fromkeys(on_pages) if line not in own][:_MOST_EXAMPLES]
        parts.append("For example:\n\n```text\n" + "\n".join([*own, *others]) + "\n```\n")
        parts.extend(_sections(command.page))
    return "\n".join(parts)


def _usage(name: str, command: Any) -> str:
    words = ["roundkit", name]
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            words.append(
                _argument(parameter) if parameter.required else f"[{_argument(parameter).strip('[]')}]"
            )
        elif parameter.required:
            words.append(f"{max(parameter.opts, key=len)} {parameter.name.upper()}")
    optional = [each for each in command.params if each.param_type_name == "option" and not each.required]
    return " ".join([*words, *(["[OPTIONS]"] if optional else [])])


def _row(parameter: Any, kind: Any) -> list[str]:
    if parameter.param_type_name == "argument":
        name = code(_argument(parameter))
    else:
        name = ", ".join(code(word) for word in [*parameter.opts, *parameter.secondary_opts])
    return [name, _value(parameter, kind), _default(parameter), parameter.help or ""]


def _argument(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _value(parameter: Any, kind: Any) -> str:
    """Return what an argument or option takes, in words."""
    if getattr(parameter, "is_flag", False):
        return "flag"
    kinds = [each for each in (*get_args(kind), kind) if each is not type(None) and inspect.isclass(each)]
    choices = [str(each.value) for found in kinds if issubclass(found, Enum) for each in found]
    shown = " or ".join(map(code, choices)) or code(str(parameter.metavar or "")) or _word(kinds)
    many = getattr(parameter, "multiple", False) or parameter.nargs == -1
    return f"{shown}; may be repeated" if many else shown


def _word(kinds: list[type]) -> str:
    words = {Path: "path", int: "whole number", float: "number", str: "text"}
    return next((word for kind, word in words.items() for each in kinds if issubclass(each, kind)), "text")


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    value = getattr(parameter.default, "value", parameter.default)
    return "" if value in (None, False, ()) or callable(value) else code(str(value))


def _examples(docs: Path) -> Iterator[tuple[str, str]]:
    """Yield the command lines that people's pages show, each with the name of its command."""
    names = sorted((name for each in commands().values() for name in each), key=len, reverse=True)
    for page in [docs.parent / "README.md", *sorted(docs.rglob("*.md"))]:
        if not page.exists() or "reference" in page.relative_to(docs.parent).parts:
            continue
        for block in re.findall(
            r"^```\w*\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        ):
            for line in block.replace("\\\n", " ").splitlines():
                words = " ".join(line.split("  #")[0].split())
                if words.startswith("roundkit "):
                    name = next((each for each in names if f"{words} ".startswith(f"roundkit {each} ")), None)
                    if name is not None:
                        yield name, words
