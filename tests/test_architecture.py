"""The rooms import downward only, every room has a floor, and modules fit on a few screens."""

from __future__ import annotations

import configparser
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "roundkit"
_MOST_LINES = 450


def test_rooms_import_downward_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert lint_imports(config_filename=".importlinter", no_cache=True) == 0


def test_every_room_stands_on_a_floor() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter")
    layers = config["importlinter:contract:floors"]["layers"].replace("|", "\n").split()
    rooms = {f"roundkit.{path.name}" for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert rooms - set(layers) == {"roundkit.harness"}


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_a_module_says_what_it_is_for_and_fits_on_a_few_screens(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert len(lines) <= _MOST_LINES
    start = 1 if lines and lines[0].startswith("#!") else 0
    assert lines[start].startswith('"""')
