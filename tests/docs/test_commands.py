"""Every command of every page is run, by a real shell, and ends as its page says."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from docs.reading import commands_of, page_name, pages
from docs.replaced import REPLACED
from docs.stage import stage

SLOW = {
    "cluster", "drivers", "drivers_swarmflow", "evidence", "measure", "notebooks", "pilots", "pilots_policy",
    "readme", "rounds", "waves_gate",
}  # fmt: skip
"""Pages that take more than a few seconds."""
ELSEWHERE = {"example": "tests/slow/test_public_package.py", "tutorial": "tests/docs/test_tutorial.py"}
"""Pages whose commands another test runs, by the name of the page: the file of that test."""
WITH_COMMANDS = [page for page in pages() if commands_of(page) and page_name(page) not in ELSEWHERE]


def _marked(page: str) -> object:
    marks = [pytest.mark.slow] if page_name(page) in SLOW else []
    return pytest.param(page, id=page_name(page), marks=marks)


@pytest.mark.parametrize("page", [*map(_marked, WITH_COMMANDS)])
def test_every_command_of_a_page_ends_as_it_says(page: str, open_folder: Path) -> None:
    name = page_name(page)
    scene = getattr(importlib.import_module(f"docs.scenes.{name}"), name)
    with stage(open_folder) as made:
        scene(made)
        made.play(page)


def test_every_page_with_commands_has_a_scene_and_every_scene_its_page() -> None:
    scenes = {path.stem for path in (Path(__file__).parent / "scenes").glob("*.py")}
    assert scenes == {page_name(page) for page in WITH_COMMANDS}


def test_names_of_pages_are_their_own() -> None:
    names = [page_name(page) for page in pages()]
    assert sorted(set(names)) == sorted(names)


def test_what_stands_in_place_of_a_command_stands_for_one() -> None:
    every = [command for page in pages() for command in commands_of(page)]
    for entry in REPLACED:
        assert any(command.begins(entry.command) for command in every), f"no page has: {entry.command}"
        assert entry.why
        assert entry.instead


def test_pages_that_another_test_runs_are_there_and_named_in_it() -> None:
    root = Path(__file__).resolve().parents[2]
    named = {page_name(page): page for page in pages()}
    for name, test in ELSEWHERE.items():
        assert named[name] in (root / test).read_text()
    assert set(named) >= SLOW
