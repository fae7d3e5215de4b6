"""What is in the wheel and in the source distribution, and that either can be made from the other."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

import pytest
from support.packages import ROOT, Built, build

import roundkit

pytestmark = pytest.mark.slow


def content(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_source_distribution_is_what_git_tracks_and_nothing_else(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    assert names - {"PKG-INFO"} == built.files


def test_the_wheel_has_the_package_notebooks_and_templates_and_nothing_else(built: Built) -> None:
    files = content(built.wheel)
    places = {"roundkit/": "roundkit/", "notebooks/": "roundkit/_shipped/notebooks/"}
    places |= {"templates/": "roundkit/_shipped/templates/"}
    wanted = {
        target + name.removeprefix(source): (ROOT / name).read_bytes()
        for source, target in places.items()
        for name in built.files
        if name.startswith(source)
    }
    assert {name for name in files if ".dist-info/" not in name} == {*wanted}
    assert {name: files[name] for name in wanted} == wanted
    about = next(data.decode() for name, data in files.items() if name.endswith(".dist-info/METADATA"))
    assert f"\nVersion: {roundkit.__version__}\n" in about
    assert "Provides-Extra: cluster" in about


def test_the_wheel_that_the_source_distribution_builds_is_the_same(built: Built, tmp_path: Path) -> None:
    with tarfile.open(built.sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    [source] = (tmp_path / "unpacked").iterdir()
    build(source, tmp_path / "dist", "--wheel")
    [wheel] = (tmp_path / "dist").glob("*.whl")
    assert content(wheel) == content(built.wheel)
