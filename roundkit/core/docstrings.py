"""What a class's docstring says of the class, and of each of its attributes (Google's form)."""

from __future__ import annotations

import inspect
import re

_SECTION = re.compile(r"^(Attributes|Args|Returns|Raises|Yields|Examples?):$")
_ATTRIBUTE = re.compile(r"^    (\w+): +(\S.*)$")


def about_class(kind: type) -> str:
    """Return what a class's docstring says before its first section; empty without a docstring of its own."""
    lines: list[str] = []
    for line in _lines(kind):
        if _SECTION.match(line):
            break
        lines.append(line)
    return "\n".join(lines).strip()


def about_attributes(kind: type) -> dict[str, str]:
    """Return what the docstrings of a class and its bases say of each attribute, each in one line."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        found |= _attributes(_lines(base))
    return found


def plain_markup(text: str) -> str:
    """Return a docstring's text with its code in single backticks, as Markdown and editors show it."""
    without_roles = re.sub(r":[a-z]+:`~?([^`]+)`", r"``\1``", text)
    return without_roles.replace("``", "`")


def _attributes(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    name = None
    inside = False
    for line in lines:
        if section := _SECTION.match(line):
            inside, name = section[1] == "Attributes", None
        elif inside and (start := _ATTRIBUTE.match(line)):
            name = start[1]
            found[name] = start[2]
        elif inside and name is not None and line.startswith("        "):
            found[name] += f" {line.strip()}"
    return found


def _lines(kind: type) -> list[str]:
    return inspect.cleandoc(kind.__dict__.get("__doc__") or "").splitlines()
