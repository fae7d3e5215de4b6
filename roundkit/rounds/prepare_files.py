"""The owner's two files: read, checked against their models, every problem with its file, key and line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from roundkit.core.errors import Refusal, Refused
from roundkit.core.yamlfile import place_of, plain, read_yaml, schema_refusals
from roundkit.models.base import Record

Model = TypeVar("Model", bound=Record)


@dataclass(frozen=True)
class Authored(Generic[Model]):
    """One file as its owner wrote it.

    Attributes:
        path: Absolute path.
        data: Its bytes.
        model: Its content; null when that could not be understood at all.
        refusals: What is wrong with it. With ``unknown-key`` alone there still is a model.
        at: Names a place in the file from the keys that lead to it.
    """

    path: Path
    data: bytes
    model: Model | None
    refusals: tuple[Refusal, ...]
    at: Callable[..., str]


def read_authored(path: Path, kind: type[Model]) -> Authored[Model]:
    """Read one of the owner's files; problems are returned, so that all are told at once."""
    try:
        data, content = read_yaml(path)
    except Refused as refused:
        return Authored(path, b"", None, refused.refusals, lambda *_: path.name)

    def at(*location: str | int) -> str:
        return place_of(content, location, path.name)

    value = plain(content)
    try:
        return Authored(path, data, _validate(kind, value), (), at)
    except ValidationError as error:
        errors = error.errors()
    refusals = tuple(dict.fromkeys(schema_refusals(errors, content, path.name)))
    return Authored(path, data, _without_unknown_keys(kind, value, errors), refusals, at)


def _validate(kind: type[Model], value: Any) -> Model:
    # Through JSON, and strictly, so that a number where a text belongs is refused and not converted.
    return kind.model_validate_json(json.dumps(value, default=str).encode(), strict=True)


def _without_unknown_keys(kind: type[Model], value: Any, errors: list[Any]) -> Model | None:
    """Understand the rest of a file with misspelt keys, so that its other problems are found as well."""
    for error in errors:
        if error["type"] != "extra_forbidden":
            return None
        _drop(value, error["loc"])
    try:
        return _validate(kind, value)
    except ValidationError:
        return None


def _drop(value: Any, location: tuple[str | int, ...]) -> None:
    here = value
    for step in location[:-1]:
        here = here[step]
    here.pop(location[-1])
