"""A command opens only what it needs: heavy libraries take seconds, and a round runs many commands."""

import subprocess
import sys
from pathlib import Path

import pytest

_LOADED = """
import sys
from roundkit.cli import main
sys.argv = ["roundkit", *sys.argv[1:]]
try:
    main()
except SystemExit:
    pass
print(*sorted(sys.modules))
"""
_FOR_FRAMES = {"altair", "dask", "distributed", "pandas", "polars", "pyarrow"}
_FOR_NUMBERS = {"numpy", "scipy", "scipy.optimize", "scipy.special"}


def _loaded(words: tuple[str, ...], folder: Path) -> set[str]:
    """Return the modules that a command had loaded at its end."""
    done = subprocess.run(
        [sys.executable, "-c", _LOADED, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "words",
    [
        ("status", "."),
        ("serve", "."),
        ("close", "."),
        ("waves", "status", "."),
        ("doctor", "--help"),
        ("--help",),
    ],
    ids=" ".join,
)
def test_a_command_without_frames_opens_no_heavy_library(words: tuple[str, ...], tmp_path: Path) -> None:
    assert not _loaded(words, tmp_path) & {*_FOR_FRAMES, "scipy.optimize", "scipy.special"}


@pytest.mark.parametrize(
    "words", [("status", "."), ("status", "--help"), ("serve", "--help"), ("doctor", "--help")], ids=" ".join
)
def test_a_command_that_computes_nothing_opens_no_library_for_numbers(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    assert not _loaded(words, tmp_path) & (_FOR_FRAMES | _FOR_NUMBERS)


@pytest.mark.parametrize("words", [("--help",), ("--version",)], ids=" ".join)
def test_what_reads_nothing_opens_no_models(words: tuple[str, ...], tmp_path: Path) -> None:
    found = _loaded(words, tmp_path)
    _assert_light(found)
    assert not found & {"pydantic", "sqlite3", "tomllib"}


def test_completion_opens_no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_ROUNDKIT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "roundkit sta")
    monkeypatch.setenv("COMP_CWORD", "1")
    _assert_light(_loaded((), tmp_path))


def test_the_version_opens_nothing_that_draws(tmp_path: Path) -> None:
    assert "rich" not in _loaded(("--version",), tmp_path)


def _assert_light(found: set[str]) -> None:
    assert not found & (_FOR_FRAMES | _FOR_NUMBERS)
    assert not {name for name in found if name.startswith(("roundkit.models.", "roundkit.host."))}


def test_charts_are_opened_by_whoever_draws() -> None:
    script = (
        "import sys, roundkit.analysis as analysis; assert 'altair' not in sys.modules;"
        " analysis.charts; assert 'altair' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_name_that_analysis_lacks_is_an_attribute_error() -> None:
    import roundkit.analysis

    with pytest.raises(AttributeError, match="no attribute 'chart'"):
        roundkit.analysis.chart  # noqa: B018
