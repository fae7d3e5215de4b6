"""A JSON Schema as rows that people read: each field with its type, its default and what it says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_PATTERNS = {
    "^[0-9a-f]{64}$": "SHA-256",
    "^[0-9a-f]{40}([0-9a-f]{24})?$": "commit id",
    "^[A-Za-z0-9][A-Za-z0-9._-]*$": "identifier",
}
_PLAIN = {
    "string": "text",
    "boolean": "true or false",
    "null": "null",
    "integer": "integer",
    "number": "number",
}
_LARGEST = 2**53 - 1


@dataclass(frozen=True)
class FieldRow:
    """One field of a file.

    Attributes:
        name: Its name, as it is written; with what holds it where rows of a whole file are shown.
        type: What may stand there, in words.
        default: What holds when it is left out, as JSON; null: it may not be left out.
        meaning: What it says, in Markdown.
    """

    name: str
    type: str
    default: str | None
    meaning: str


def models_of(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the schema's own objects by name: the file's is ``""``, then those within, as they are met."""
    definitions = schema.get("$defs", {})
    found: dict[str, Mapping[str, Any]] = {"": schema}
    waiting = [""]
    while waiting:
        for name in references(found[waiting.pop(0)].get("properties", {})):
            if name not in found and "properties" in definitions[name]:
                found[name] = definitions[name]
                waiting.append(name)
    return found


def rows_of(
    model: Mapping[str, Any], schema: Mapping[str, Any], link: Callable[[str], str] = str
) -> list[FieldRow]:
    """Return one object's fields, in their order.

    Args:
        model: The object, one of :func:`models_of`.
        schema: The whole schema, for what it refers to.
        link: How the name of another object is written within a type.
    """
    required = set(model.get("required", ()))
    rows = []
    for name, field in model.get("properties", {}).items():
        default = None if name in required else _default(field)
        rows.append(FieldRow(name, _type(field, schema, link), default, _meaning(field, schema)))
    return rows


def _default(field: Mapping[str, Any]) -> str:
    """Return what stands where a field is left out, as JSON; an object of defaults as an empty one."""
    value = field.get("default", {})
    return "{}" if isinstance(value, dict) else json.dumps(value)


def all_rows(schema: Mapping[str, Any]) -> Iterator[FieldRow]:
    """Yield every field of a file with its whole path, e.g. ``lanes[].budget.turns``."""
    yield from _below("", schema, schema)


def _below(prefix: str, model: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[FieldRow]:
    for row in rows_of(model, schema):
        yield FieldRow(prefix + row.name, row.type, row.default, row.meaning)
        field = model["properties"][row.name]
        for name in references(field):
            inner = schema["$defs"][name]
            if "properties" in inner:
                yield from _below(f"{prefix}{row.name}{_step(field)}.", inner, schema)


def _step(field: Any) -> str:
    """Return how one gets from a field to the objects in it: through a list, a map, or at once."""
    shapes = [field, *field.get("anyOf", ())]
    if any(shape.get("type") == "array" for shape in shapes):
        return "[]"
    return "{}" if any(shape.get("type") == "object" for shape in shapes) else ""


def references(value: Any) -> list[str]:
    """Return the names of the objects that a piece of a schema refers to, in their order, each once."""
    found: dict[str, None] = {}
    if isinstance(value, Mapping):
        if "$ref" in value:
            found[value["$ref"].rpartition("/")[2]] = None
        for inner in value.values():
            found |= dict.fromkeys(references(inner))
    elif isinstance(value, list):
        for inner in value:
            found |= dict.fromkeys(references(inner))
    return list(found)


def _meaning(field: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Return what a field says; where it does not say so itself, what the object in it is."""
    if "description" in field:
        return " ".join(field["description"].split())
    said = (schema["$defs"][name].get("description", "") for name in references(field))
    return next((" ".join(text.partition("\n\n")[0].split()) for text in said if text), "")


def _type(field: Mapping[str, Any], schema: Mapping[str, Any], link: Callable[[str], str]) -> str:
    def words(inner: Any) -> str:
        return _type(inner, schema, link) if isinstance(inner, Mapping) else "anything"

    match field:
        case {"$ref": str(reference)}:
            name = reference.rpartition("/")[2]
            inner = schema["$defs"][name]
            return link(name) if "properties" in inner else words(inner)
        case {"anyOf": list(choices)} | {"oneOf": list(choices)}:
            return " or ".join(dict.fromkeys(words(choice) for choice in choices))
        case {"const": value}:
            return json.dumps(value)
        case {"enum": list(values)}:
            return ", ".join(json.dumps(value) for value in values)
        case {"type": "array"}:
            return _list_type(field, words)
        case {"type": "object"}:
            return _map_type(field, words)
    return _plain_type(field)


def _list_type(field: Mapping[str, Any], words: Callable[[Any], str]) -> str:
    if isinstance(places := field.get("prefixItems"), list):
        return f"list of {', '.join(words(place) for place in places)}"
    return f"list of {words(field.get('items'))}{_bounds(field, 'minItems', 'maxItems', ' of length')}"


def _map_type(field: Mapping[str, Any], words: Callable[[Any], str]) -> str:
    inner = field.get("additionalProperties")
    if isinstance(inner, bool) or "properties" in field:
        return "map"
    by_pattern = iter(field.get("patternProperties", {}).values())
    return f"map of names to {words(inner or next(by_pattern, None))}"


def _plain_type(field: Mapping[str, Any]) -> str:
    match field:
        case {"type": "string", "format": "date-time"}:
            return "time"
        case {"type": "string", "pattern": str(pattern)} if pattern in _PATTERNS:
            return _PATTERNS[pattern]
        case {"type": "integer" | "number"}:
            return f"{_PLAIN[field['type']]}{_bounds(field, 'minimum', 'maximum', '')}"
        case {"type": str(kind)} if kind in _PLAIN:
            return _PLAIN[kind]
    return "anything"


def _bounds(field: Mapping[str, Any], least: str, most: str, what: str) -> str:
    """Return what limits a number or a length, in signs."""
    signs = {
        least: "≥",
        "exclusiveMinimum": ">",
        most: "≤",
        "exclusiveMaximum": "<",
        "multipleOf": "multiple of",
    }
    said = [
        f"{sign} {field[key]:g}" for key, sign in signs.items() if key in field and field[key] != _LARGEST
    ]
    return f"{what} {', '.join(said)}" if said else ""
