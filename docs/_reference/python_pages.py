"""The page of what a notebook may call, from signatures and docstrings."""

from __future__ import annotations

import importlib
import inspect
import re
import types
from typing import Any

from _reference.markdown import anchor, code, table
from roundkit.core.docstrings import plain_markup

MODULES = (
    "roundkit.analysis",
    "roundkit.analysis.charts",
    "roundkit.analysis.importers",
    "roundkit.analysis.exporters",
)
_HEAD = """# Python

What a notebook may call. Everything else is how roundkit is made, and changes without a word.
[Notebooks, data frames, charts, reports](../how-to/notebooks.md) says how they are used.
"""
_LINE = 88
_SIMPLE = (str, int, float, bool, type(None), tuple)
_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields|Examples?):$")


def public(module: str) -> dict[str, Any]:
    """Return a module's public names: those that it says are, else functions and classes of its own."""
    found = importlib.import_module(module)
    names = getattr(found, "__all__", None) or [name for name in vars(found) if not name.startswith("_")]
    return {
        name: getattr(found, name) for name in names if not isinstance(getattr(found, name), types.ModuleType)
    }


def pages() -> dict[str, str]:
    """Return the page."""
    parts = [_HEAD]
    for module in MODULES:
        about = inspect.cleandoc(importlib.import_module(module).__doc__ or "").partition("\n")[0]
        about = re.sub(r"^Floor \d: ", "", about)
        parts.append(f"({anchor('python', module)})=\n## {module}\n\n{about[0].upper()}{about[1:]}\n")
        for name, value in public(module).items():
            parts.append(_entry(module, name, value))
    return {"python.md": "\n".join(parts)}


def _entry(module: str, name: str, value: Any) -> str:
    head = f"({anchor('python', module, name)})=\n### {name}\n"
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        keys = ", ".join(code(str(key)) for key in value) if isinstance(value, dict) else ""
        return f"{head}\n{f'A map with {keys}.' if keys else 'A value.'}\n"
    parts = [head, f"```python\n{_call(name, value)}\n```\n", _docstring(value)]
    if inspect.isclass(value):
        rows = [
            [code(f"{method}{_signature(function)}"), _first(function)]
            for method, function in vars(value).items()
            if not method.startswith("_") and inspect.isfunction(function)
        ]
        if rows:
            parts.append(table(["method", "what it does"], rows))
    return "\n".join(parts)


def _call(name: str, value: Any) -> str:
    """Return a call on one line, or with one parameter a line where that is too long."""
    shown, arrow = _parts(value)
    line = f"{name}({', '.join(shown)}){arrow}"
    if len(line) <= _LINE:
        return line
    return f"{name}(\n" + "".join(f"    {each},\n" for each in shown) + f"){arrow}"


def _signature(value: Any) -> str:
    shown, arrow = _parts(value)
    return f"({', '.join(shown)}){arrow}"


def _parts(value: Any) -> tuple[list[str], str]:
    """Return parameters as they are written, what is no plain default as three dots; and what comes back."""
    found = inspect.signature(value)
    shown: list[str] = []
    for each in found.parameters.values():
        if each.kind is each.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        if each.name != "self":
            shown.append(
                str(each.replace(annotation=_Plain(each.annotation), default=_default(each.default)))
            )
    result = found.return_annotation
    silent = result in (inspect.Signature.empty, "None", None)
    return shown, "" if silent else f" -> {_Plain(result)}"


def _default(value: Any) -> Any:
    return value if value is inspect.Parameter.empty or isinstance(value, _SIMPLE) else _Plain("...")


class _Plain:
    """Something that is shown as its own text, without quotes."""

    def __init__(self, value: Any) -> None:
        self._text = value if isinstance(value, str) else getattr(value, "__name__", str(value))

    def __repr__(self) -> str:
        return self._text


def _first(value: Any) -> str:
    return plain_markup(inspect.cleandoc(value.__doc__ or "").partition("\n\n")[0])


def _docstring(value: Any) -> str:
    """Return a docstring in Markdown: its sections as bold words, what they list as items."""
    lines: list[str] = []
    inside = False
    for line in inspect.cleandoc(value.__doc__ or "").splitlines():
        section = _SECTION.match(line)
        if section:
            inside = True
            lines += [f"**{section[1]}**", ""]
        elif inside and (item := re.match(r"^    ([\w.`]+): (.*)$", line)):
            lines.append(f"- {code(item[1].strip('`'))}: {item[2]}")
        else:
            lines.append(
                line.strip()
                if not inside
                else f"  {line.strip()}"
                if line.startswith("        ")
                else line.strip()
            )
    return plain_markup("\n".join(lines)) + "\n"
