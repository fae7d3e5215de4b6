"""What a notebook takes: read from its parameters cell, and checked before and after it starts."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, Union

from pydantic import Field, TypeAdapter, ValidationError

from roundkit.core.errors import Refusal, Refused, refuse

_TYPES: dict[str, Any] = {
    "bool": bool, "date": date, "datetime": datetime, "dict": dict, "float": float, "int": int, "list": list,
    "Literal": Literal, "None": None, "Path": Path, "str": str, "tuple": tuple, "Union": Union,
}  # fmt: skip
_CHECKED = "_roundkit_parameters_checked"
_OF_IPYTHON = frozenset({"In", "Out", "exit", "quit", "get_ipython", "open"})


@dataclass(frozen=True)
class Parameter:
    """One parameter of a notebook.

    Attributes:
        name: Its name.
        annotation: Its type as the notebook writes it.
        default: Its default as the notebook writes it.
        meaning: The comment beside it.
    """

    name: str
    annotation: str
    default: str
    meaning: str

    def __str__(self) -> str:
        """Render as the notebook writes it."""
        return f"{self.name}: {self.annotation} = {self.default}  {self.meaning}".rstrip()


def read_parameters(notebook: Any, *, place: str) -> tuple[Parameter, ...]:
    """Return what the cell tagged ``parameters`` declares.

    Raises:
        Refused: ``no-parameters-cell``, ``unread-parameter`` for one that no later cell reads, or
            ``malformed`` for a cell that is no Python.
    """
    tagged = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    if len(tagged) != 1:
        raise refuse("no-parameters-cell", f"{len(tagged)} cells are tagged `parameters`", place=place)
    source = tagged[0].source
    comments = _comments(source)
    found = []
    for node in _tree(source, place).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            annotation = ast.unparse(node.annotation)
            comment = comments.get(node.lineno, "")
            found.append(Parameter(node.target.id, annotation, ast.unparse(node.value), comment))
    others = [cell for cell in notebook.cells if cell.cell_type == "code" and cell is not tagged[0]]
    trees = [_tree(cell.source, place) for cell in others]
    read = {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if unread := [parameter.name for parameter in found if parameter.name not in read]:
        raise refuse(
            "unread-parameter", f"nothing reads {', '.join(unread)}", place=place, remedy="remove it"
        )
    return tuple(found)


def validate_parameters(
    declared: tuple[Parameter, ...], given: Mapping[str, object], *, place: str
) -> dict[str, Any]:
    """Return the given values in the types that the notebook declares.

    Text is read as the declared type, so that a command line can pass it; nothing else is converted.

    Raises:
        Refused: ``unknown-parameter`` and ``wrong-type``, all in one answer, with what the notebook takes;
            ``unknown-type`` for an annotation that no parameter can have.
    """
    takes = "it takes " + "; ".join(str(parameter) for parameter in declared)
    known = {parameter.name: parameter for parameter in declared}
    refusals, values = [], {}
    for name, value in given.items():
        if name not in known:
            refusals.append(Refusal("unknown-parameter", f"there is no parameter {name!r}", place, takes))
            continue
        try:
            values[name] = _typed(known[name], value)
        except ValidationError as error:
            message = f"{name} is {value!r}: {error.errors()[0]['msg']}"
            refusals.append(Refusal("wrong-type", message, place, takes))
    if refusals:
        raise Refused(refusals)
    return values


def check_parameters(namespace: Mapping[str, Any], **declared: Any) -> None:
    """Check a running notebook's names, for whoever started it without roundkit.

    Called in the first cell after the parameters, with ``globals()`` and each parameter's type. Once it has
    passed, other names are the notebook's own: run again by hand, it looks at the parameters alone.

    Raises:
        Refused: a name that is none of the parameters (a misspelt one), or a value of another type.
    """
    refusals = []
    for name, value in namespace.items():
        if name.startswith("_") or name in _OF_IPYTHON or isinstance(value, (ModuleType, type)):
            continue
        if name in declared:
            try:
                TypeAdapter(declared[name]).validate_python(value, strict=True)
            except ValidationError as error:
                refusals.append(
                    Refusal("wrong-type", f"{name} is {value!r}: {error.errors()[0]['msg']}", name)
                )
        elif not callable(value) and _CHECKED not in namespace:
            takes = f"it takes {', '.join(declared)}"
            refusals.append(
                Refusal("unknown-parameter", f"there is no parameter {name!r}", "parameters", takes)
            )
    if refusals:
        raise Refused(refusals)
    if isinstance(namespace, dict):
        namespace[_CHECKED] = True


def _typed(parameter: Parameter, value: object) -> Any:
    # The notebook's own code is about to be run; its annotation is no less trusted.
    try:
        kind = eval(parameter.annotation, {"__builtins__": {}}, _TYPES)  # noqa: S307
        adapter = TypeAdapter(Annotated[kind, Field(allow_inf_nan=False)] if kind is float else kind)
    except Exception as error:
        raise refuse(
            "unknown-type",
            f"{parameter.annotation} is no type of a parameter: {error}",
            place=parameter.name,
            remedy=f"use {', '.join(_TYPES)}",
        ) from error
    if isinstance(value, Path):
        value = str(value)
    typed = (
        adapter.validate_strings(value)
        if isinstance(value, str)
        else adapter.validate_python(value, strict=True)
    )
    return str(typed) if isinstance(typed, (Path, date)) else typed


def _tree(source: str, place: str) -> ast.Module:
    """Return a cell as a tree; what IPython adds to Python (``%magic``, ``!command``) is translated first.

    Raises:
        Refused: ``malformed``.
    """
    try:
        return ast.parse(source)
    except SyntaxError:
        from IPython.core.inputtransformer2 import TransformerManager
    try:
        return ast.parse(TransformerManager().transform_cell(source))  # type: ignore[no-untyped-call]
    except SyntaxError as error:
        line = (error.text or "").strip()
        raise refuse("malformed", f"a cell is no Python: {error.msg}: {line}", place=place) from error


def _comments(source: str) -> dict[int, str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    try:
        return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}
    except (tokenize.TokenError, SyntaxError):
        return {}  # whoever parses the cell says what is wrong with it
