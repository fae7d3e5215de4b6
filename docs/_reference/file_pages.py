"""The pages of files: one a noun, with each object's fields, and a JSON Schema a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from _reference.markdown import anchor, code, table, toctree
from roundkit.models.schema_fields import models_of, rows_of
from roundkit.models.schemas import DOCUMENTS, Document, json_schema

NOUNS = {
    "campaign": "Campaign",
    "round": "Round",
    "evidence": "Evidence",
    "comparison": "Comparisons outside a round",
    "pilot": "Paired pilot",
    "policy-pilot": "Policy pilot",
    "wave": "Waves",
    "wave-commands": "What a wave campaign's commands read and write",
    "cluster": "Cluster",
}
_HEAD = """# Files

Every file that you write or that roundkit leaves. You write YAML 1.2; machines write canonical JSON (RFC
8785), whose digest names the bytes. A key that is not here is refused, and so is one that is missing
without a default.

[Have your editor check what you write](../../how-to/editor.md) says how to use the JSON Schemas (draft
2020-12) below. `roundkit schema NAME` prints the same.
"""


def pages() -> dict[str, str]:
    """Return the pages, and the schemas as files."""
    schemas = {document.name: json_schema(document) for document in DOCUMENTS}
    homes = _homes(schemas)
    made = {f"files/{noun}.md": _page(noun, schemas, homes) for noun in NOUNS}
    made["files/index.md"] = "\n".join([_HEAD, *map(_overview, NOUNS), toctree(NOUNS)])
    for name, schema in schemas.items():
        made[f"files/schemas/{name}.json"] = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
    return made


def _overview(noun: str) -> str:
    rows = [
        [
            f"[{document.file}](#{anchor('file', document.name)})",
            code(document.name),
            document.writer,
            _first(document),
        ]
        for document in DOCUMENTS
        if document.noun == noun
    ]
    return f"## {NOUNS[noun]}\n\n" + table(["file", "name", "written by", "what it is"], rows)


def _first(document: Document) -> str:
    """Return the first sentence of what a file is."""
    text = " ".join(document.about.split())
    return text.partition(". ")[0].rstrip(".") + "."


def _homes(schemas: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return under which file each object is described: the first one that has it."""
    homes: dict[str, str] = {}
    for document in DOCUMENTS:
        homes.setdefault(document.model.__name__, document.name)
    for noun in NOUNS:
        for document in DOCUMENTS:
            if document.noun == noun:
                for name in models_of(schemas[document.name]):
                    homes.setdefault(name, document.name)
    return homes


def _page(noun: str, schemas: Mapping[str, Mapping[str, Any]], homes: Mapping[str, str]) -> str:
    parts = [f"# {NOUNS[noun]}\n"]
    for document in DOCUMENTS:
        if document.noun == noun:
            parts += _document(document, schemas[document.name], homes)
    return "\n".join(parts)


def _document(document: Document, schema: Mapping[str, Any], homes: Mapping[str, str]) -> list[str]:
    own = document.model.__name__
    models = models_of(schema)
    parts = [
        f"({anchor('file', document.name)})=\n({anchor('object', own)})=\n## {document.file}\n",
        f"{document.about}\n",
        f"Written by {document.writer}. Its schema is called {code(document.name)}:"
        f" [{document.name}.json](schemas/{document.name}.json).\n",
        _fields(models[""], schema),
    ]
    for name, model in models.items():
        if name and homes[name] == document.name and name != own:
            parts.append(f"({anchor('object', name)})=\n### {name}\n\n{model.get('description', '')}\n")
            parts.append(_fields(model, schema))
    return parts


def _fields(model: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    rows = [
        [
            code(row.name),
            row.type,
            "required" if row.default is None else code(row.default),
            row.meaning,
        ]
        for row in rows_of(model, schema, _link)
    ]
    return table(["field", "type", "default", "meaning"], rows) if rows else "It has no fields.\n"


def _link(name: str) -> str:
    return f"[{name}](#{anchor('object', name)})"
