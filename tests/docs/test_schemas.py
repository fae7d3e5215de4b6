"""JSON Schemas of files: what editors are told is what roundkit reads, and every field says what it means."""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

import roundkit.models
from roundkit.analysis.catalog import FRAME_ROWS, FRAMES
from roundkit.cli.app import app
from roundkit.core.docstrings import about_attributes, about_class
from roundkit.core.errors import Refused
from roundkit.core.yamlfile import plain, read_yaml
from roundkit.evidence import policy_layout
from roundkit.models.base import Record
from roundkit.models.field_words import FIELD_WORDS
from roundkit.models.pilot_findings import Finding
from roundkit.models.pilot_trial import Eligibility, ItemResult
from roundkit.models.schema_fields import all_rows, models_of, rows_of
from roundkit.models.schemas import DOCUMENTS, Document, document_named, json_schema

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
DERIVED = {Finding, Eligibility, ItemResult}
"""Computed anew each time, and part of no file."""


def schema_named(name: str) -> dict[str, Any]:
    document = document_named(name)
    assert document is not None
    return json_schema(document)


def every_model() -> set[type[Record]]:
    modules = [
        importlib.import_module(f"roundkit.models.{module.name}")
        for module in pkgutil.iter_modules(roundkit.models.__path__)
    ]
    found = {value for module in modules for value in vars(module).values() if isinstance(value, type)}
    return {kind for kind in found if issubclass(kind, Record)} - {Record}


def as_json(path: Path) -> Any:
    """Return a YAML file as an editor sees it: times are texts."""
    return json.loads(json.dumps(plain(read_yaml(path)[1]), default=lambda value: value.isoformat()))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_every_field_of_every_file_says_what_it_means(document: Document) -> None:
    schema = json_schema(document)
    Draft202012Validator.check_schema(schema)
    assert document.about
    silent = [
        row.name for model in models_of(schema).values() for row in rows_of(model, schema) if not row.meaning
    ]
    assert silent == []
    assert [row.name for row in all_rows(schema) if row.type == "anything"] == []


def test_every_model_is_part_of_some_file() -> None:
    names = {name for document in DOCUMENTS for name in models_of(json_schema(document))}
    names |= {document.model.__name__ for document in DOCUMENTS}
    assert {kind.__name__ for kind in every_model() - DERIVED} <= names


def test_every_versioned_file_is_listed() -> None:
    versioned = {kind for kind in every_model() if "format" in kind.model_fields}
    listed = {document.model for document in DOCUMENTS}
    within = {"Manifest", "RunSpec", "ComparisonPlan", "MeasurementRequest"}
    assert {kind.__name__ for kind in versioned - listed} <= within
    twice = Counter(document.name for document in DOCUMENTS) + Counter(list(FRAMES))
    assert [name for name, count in twice.items() if count > 1] == []


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("campaign.yaml", "campaign.yaml"),
        ("round.yaml", "round.yaml"),
        ("wave-plan.yaml", "wave-plan.yaml"),
        ("waves-c/wave-plan.yaml", "wave-plan"),
        ("pilot-paired/pilot.yaml", "pilot"),
        ("pilot-policy/pilot.yaml", "policy-pilot"),
        *((f"presets/{path.name}", "command-template") for path in sorted(TEMPLATES.glob("presets/*.yaml"))),
    ],
)
def test_templates_are_what_their_schema_says_and_a_wrong_key_is_not(template: str, name: str) -> None:
    validator = Draft202012Validator(schema_named(name))
    content = as_json(TEMPLATES / template)
    assert [error.message for error in validator.iter_errors(content)] == []
    wrong = [error.message for error in validator.iter_errors(content | {"colour": "blue"})]
    assert any("colour" in message for message in wrong)


def test_schema_prints_the_json_schema_of_a_file_and_its_fields_as_rows() -> None:
    printed = CliRunner().invoke(app, ["schema", "campaign.yaml", "--json"])
    assert json.loads(printed.output) == schema_named("campaign")
    rows = CliRunner().invoke(app, ["schema", "round"]).output
    assert "lanes[].budget.micro_usd" in rows
    listed = json.loads(CliRunner().invoke(app, ["schema", "--json"]).output)
    assert {row["name"] for row in listed} == {*FRAMES, *(document.name for document in DOCUMENTS)}


@pytest.mark.parametrize(
    ("file_name", "kinds"),
    [("pilot.yaml", ["pilot", "policy-pilot"]), ("plan.json", ["pilot-plan", "policy-plan"])],
)
def test_a_file_name_of_several_kinds_names_them(file_name: str, kinds: list[str]) -> None:
    asked = CliRunner().invoke(app, ["schema", file_name])
    assert isinstance(asked.exception, Refused)
    refusal = asked.exception.refusals[0]
    assert f"several kinds of file are called {file_name!r}" in refusal.message
    assert all(f"{kind} (" in refusal.remedy for kind in kinds)


def test_a_file_is_found_by_its_name_even_where_it_holds_lines() -> None:
    assert schema_named("calls.jsonl") == schema_named("pilot-call")
    assert schema_named("launch.json") == schema_named("launch")
    of_a_run = document_named("policy-launch")
    assert of_a_run is not None
    assert of_a_run.file.split()[0] == policy_layout.LAUNCH


def test_docstrings_speak_of_fields_that_are_there_and_words_are_used() -> None:
    wrong = {
        (kind.__name__, name)
        for kind in every_model()
        for name in about_attributes(kind)
        if name not in kind.model_fields and not hasattr(kind, name)
    }
    assert wrong == set()
    assert {kind.__name__ for kind in every_model() if not about_class(kind)} == set()
    used = {row.meaning for document in DOCUMENTS for row in all_rows(json_schema(document))}
    assert [name for name, words in FIELD_WORDS.items() if words not in used] == []


def test_every_column_of_every_frame_has_a_type_and_a_meaning() -> None:
    assert FRAMES.keys() == FRAME_ROWS.keys()
    for name, columns in FRAMES.items():
        assert [column.name for column in columns if not column.meaning] == [], name
        assert len({column.name for column in columns}) == len(columns), name


@pytest.mark.parametrize(
    ("name", "remedy"), [("ticket", "did you mean tickets"), ("zzz", "`roundkit schema` lists them all")]
)
def test_a_name_that_nothing_has_gets_the_nearest(name: str, remedy: str) -> None:
    asked = subprocess.run(
        [sys.executable, "-m", "roundkit", "schema", name], capture_output=True, text=True, check=False
    )
    assert asked.returncode == 3
    assert f"there is no frame and no file {name!r}" in asked.stderr
    assert remedy in asked.stderr
