"""The reference is made from the code, whole; every link of a written page leads somewhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from roundkit.analysis.catalog import FRAMES
from roundkit.cli.app import app
from roundkit.core.codes import all_codes
from roundkit.models.schema_fields import models_of
from roundkit.models.schemas import DOCUMENTS, json_schema

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def reference() -> dict[str, str]:
    sys.path.insert(0, str(DOCS))
    try:
        from _reference import reference_pages
    finally:
        sys.path.remove(str(DOCS))
    return reference_pages(DOCS)


def every_command(command: Any, name: str = "") -> dict[str, Any]:
    inner = getattr(command, "commands", None)
    if inner is None:
        return {name: command}
    return {
        whole: one
        for below, each in inner.items()
        for whole, one in every_command(each, f"{name} {below}".strip()).items()
    }


def test_every_command_has_its_options_on_a_page(reference: dict[str, str]) -> None:
    text = "\n".join(page for name, page in reference.items() if name.startswith("commands/"))
    for name, command in every_command(typer.main.get_command(app)).items():
        section = (
            text.partition(f"(command-{name.replace(' ', '-')})=")[2]
            .partition("\n## ")[2]
            .partition("\n(command-")[0]
        )
        assert f"roundkit {name}" in section
        for parameter in command.params:
            if parameter.param_type_name == "option" and parameter.name != "help":
                assert all(f"`{word}`" in section for word in parameter.opts), f"{name} {parameter.opts}"


def test_every_object_of_every_file_has_its_fields_on_one_page(reference: dict[str, str]) -> None:
    pages = "\n".join(page for name, page in reference.items() if name.startswith("files/"))
    for document in DOCUMENTS:
        schema = json_schema(document)
        assert f"(file-{document.name})=" in pages
        assert f"files/schemas/{document.name}.json" in reference
        for name, model in models_of(schema).items():
            anchor = f"(object-{(name or document.model.__name__).lower()})="
            assert pages.count(anchor) == 1, anchor
            assert all(f"| `{field}` |" in pages for field in model["properties"])


def test_every_frame_column_and_code_is_on_its_page(reference: dict[str, str]) -> None:
    for name, columns in FRAMES.items():
        section = reference["frames.md"].partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert [column.name for column in columns] == re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    for each in all_codes():
        assert f"| `{each.code}` | " in reference["codes.md"]


def test_every_page_is_in_a_toctree() -> None:
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in written_pages()}
    index = (DOCS / "index.md").read_text()
    listed = {
        line for block in re.findall(r"```\{toctree\}\n(.*?)```", index, re.DOTALL) for line in block.split()
    }
    assert pages - {"index"} <= listed


def written_pages() -> list[Path]:
    return [path for path in DOCS.rglob("*.md") if "reference" not in path.relative_to(DOCS).parts]


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *written_pages()],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target, fragment in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text()):
        if target.startswith("reference/") or "/reference/" in target:
            continue
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), f"{page.name}: {target}"
        assert found.is_relative_to(ROOT)
        if fragment:
            assert fragment in headings(found), f"{page.name}: {target}#{fragment}"


def headings(page: Path) -> set[str]:
    """Return what a page's headings are called in links, as GitHub and the built pages name them."""
    found = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in found}
