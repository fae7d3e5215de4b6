"""A real pilot, run once a worker, and copies of it for tests that change it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.pilot_folders import RECOVERED, drift_pilot, reviewed
from support.synthetic import reachable_folder


@pytest.fixture(scope="session")
def drifted_once() -> Iterator[Path]:
    """The pilot as it was run: no review yet. Tests only read it."""
    with reachable_folder() as folder:
        yield drift_pilot(folder)


@pytest.fixture(scope="session")
def reviewed_once(drifted_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with one tuple reviewed, so that it is eligible. Tests only read it."""
    pilot = tmp_path_factory.mktemp("reviewed") / "pilot"
    shutil.copytree(drifted_once, pilot, symlinks=True)
    reviewed(pilot, RECOVERED)
    return pilot


@pytest.fixture
def drifted(drifted_once: Path, tmp_path: Path) -> Path:
    """A copy of the pilot without a review."""
    return shutil.copytree(drifted_once, tmp_path / "pilot", symlinks=True)


@pytest.fixture
def eligible(reviewed_once: Path, tmp_path: Path) -> Path:
    """A copy of what the eligibility of one tuple rests on: plan, inputs, and its trial."""

    def others(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if Path(folder).name == "trials" and not name.endswith(RECOVERED)}

    return shutil.copytree(reviewed_once, tmp_path / "pilot", symlinks=True, ignore=others)
