"""YAML 1.2 as people write it: read with line numbers, written back with comments and order kept."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import RoundTripRepresenter

from roundkit.core.errors import Refusal, refuse
from roundkit.core.inputs import read_input

_SHOWN_CHARACTERS = 500
_SHOWN_VALUE = 200


class _Representer(RoundTripRepresenter):
    """Writes a missing value as the word that people wrote, not as nothing at all."""

    def represent_null(self, _value: None) -> ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:null", "null")


_Representer.add_representer(type(None), _Representer.represent_null)


def _round_trip() -> YAML:
    yaml = YAML(typ="rt")
    yaml.Representer = _Representer
    yaml.version = (1, 2)
    yaml.preserve_quotes = True
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def load_yaml(data: bytes, *, place: str) -> Any:
    """Parse YAML into ruamel's commented containers, which know their lines.

    Raises:
        Refused: ``malformed-yaml``, with the line.
    """
    try:
        content = _round_trip().load(data.decode("utf-8"))
        plain(content)  # content that holds itself has no plain form
    except (YAMLError, ValueError, RecursionError) as error:
        said = " ".join(str(error).split())[:_SHOWN_CHARACTERS]
        raise refuse("malformed-yaml", said, place=place, remedy="mend the YAML") from error
    return content


def read_yaml(path: Path) -> tuple[bytes, Any]:
    """Read a YAML file and return its bytes and its content.

    Raises:
        Refused: ``missing-file`` or ``malformed-yaml``.
    """
    data = read_input(path, remedy="name a YAML file that is there and may be read")
    return data, load_yaml(data, place=path.name)


def dump_yaml(content: Any) -> bytes:
    """Write content back as YAML with the comments and the order that it was read with."""
    stream = io.StringIO()
    yaml = _round_trip()
    yaml.version = None
    yaml.dump(content, stream)
    return stream.getvalue().encode("utf-8")


def plain(content: Any) -> Any:
    """Turn ruamel's containers into plain dicts, lists and scalars."""
    if isinstance(content, dict):
        return {str(key): plain(value) for key, value in content.items()}
    if isinstance(content, list):
        return [plain(value) for value in content]
    if isinstance(content, bool) or content is None:
        return content
    if isinstance(content, datetime):
        return content.isoformat() if content.tzinfo else f"{content.isoformat()}Z"
    for kind in (int, float, str):
        if isinstance(content, kind):
            return kind(content)
    return content


def place_of(content: Any, location: Sequence[str | int], file: str) -> str:
    """Name a place in a YAML file as ``file: key[0].key (line 7)``."""
    words = ""
    line: int | None = None
    here = content
    for step in location:
        words += f"[{step}]" if isinstance(step, int) else f".{step}" if words else str(step)
        line = _line_of(here, step, line)
        here = _descend(here, step)
    suffix = f" (line {line})" if line is not None else ""
    return f"{file}: {words}{suffix}"


def _line_of(container: Any, step: str | int, line: int | None) -> int | None:
    positions = getattr(getattr(container, "lc", None), "data", None) or {}
    if step in positions:
        return int(positions[step][0]) + 1
    return line


def _descend(container: Any, step: str | int) -> Any:
    if isinstance(container, CommentedMap):
        return container.get(step)
    if isinstance(container, CommentedSeq) and isinstance(step, int) and step < len(container):
        return container[step]
    return None


def schema_refusals(errors: Sequence[Any], content: Any, file: str) -> list[Refusal]:
    """Turn pydantic's error rows into refusals with file, key and line.

    Args:
        errors: What ``ValidationError.errors()`` returned.
        content: The YAML content as :func:`load_yaml` returned it.
        file: The file's name.
    """
    places = [error["loc"] for error in errors]
    # A list that lacks what could not be read is said to be too short as well; the reason is said below it.
    told = [
        error
        for error in errors
        if error["type"] != "too_short"
        or not any(place != error["loc"] and place[: len(error["loc"])] == error["loc"] for place in places)
    ]
    return [_schema_refusal(error, content, file) for error in told]


def _schema_refusal(error: Any, content: Any, file: str) -> Refusal:
    location = [step for step in error["loc"] if not (isinstance(step, str) and step.startswith("function-"))]
    place = place_of(content, location, file)
    kind = error["type"]
    if kind == "extra_forbidden":
        return Refusal(
            "unknown-key", f"unknown key {location[-1]!r}", place, "remove it, or correct its spelling"
        )
    if kind == "missing":
        return Refusal(
            "missing-key", f"{location[-1]!r} is required", place, "add it; the template says what it means"
        )
    if kind == "model_type" and not location:
        return Refusal("wrong-value", "it holds no keys with values", file, "write it as its guide shows")
    if kind == "too_short":
        least = error["ctx"]["min_length"]
        return Refusal("wrong-value", f"{location[-1]!r} has fewer than {least}", place, "fill it in")
    value = repr(error.get("input"))
    shown = value if len(value) <= _SHOWN_VALUE else f"{value[:_SHOWN_VALUE]}…"
    return Refusal(
        "wrong-value", f"{error['msg']} (got {shown})", place, "give a value of the kind asked for"
    )
