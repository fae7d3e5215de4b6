"""Scope decisions, by tables and properties."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundkit.core.globs import GlobSet, PathIndex, exact_glob
from roundkit.core.relpath import fold_path
from roundkit.rules.scope import (
    empty_globs,
    missing_script,
    named_files,
    overlaps,
    protected_files,
    protected_reach,
    submission_regex,
)

PATHS = st.lists(
    st.text(alphabet="ab[]{}*?!-~|()#. ü\\", min_size=1, max_size=8).filter(
        lambda part: part not in {".", ".."} and "\\" not in part
    ),
    min_size=1,
    max_size=3,
).map("/".join)


PARTS = ["a", "b", "ab", ".a", "A", "ﬁ", "fi", "a.py", "b.py"]
WILD = [
    "a",
    "b",
    "ab",
    "A",
    "FI",
    "*",
    "**",
    "?",
    "a*",
    "*b",
    "{a,b}",
    "[ab]",
    ".a",
    "*.py",
    "a.p?",
    "\\a",
    "",
]
TREES = st.lists(
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=4).map("/".join), max_size=12, unique=True
)
GLOBS = st.lists(st.sampled_from(WILD), min_size=1, max_size=4).map("/".join)


@given(paths=TREES, globs=st.lists(GLOBS, min_size=1, max_size=4))
def test_an_index_selects_what_its_globs_match(paths: list[str], globs: list[str]) -> None:
    chosen = GlobSet(tuple(globs))
    wanted = sorted(path for path in paths if chosen.matches(path))
    index = PathIndex(paths)
    assert chosen.select(index) == wanted
    assert chosen.select(index) == wanted  # from what it kept
    assert empty_globs(globs, index) == [
        glob for glob in globs if not any(map(GlobSet((glob,)).matches, paths))
    ]


@given(paths=TREES, globs=st.lists(GLOBS, min_size=1, max_size=4))
def test_protected_files_are_what_a_glob_matches_in_any_spelling(paths: list[str], globs: list[str]) -> None:
    exact, folded = GlobSet(tuple(globs)), GlobSet(tuple(map(fold_path, globs)))
    wanted = [path for path in paths if exact.matches(path) or folded.matches(fold_path(path))]
    assert list(protected_files(globs, paths)) == sorted(wanted)
    assert protected_reach(["**"], globs, protected_files(globs, paths)) == sorted(wanted)


@given(path=PATHS, other=PATHS)
def test_exact_glob_matches_its_path_and_no_other(path: str, other: str) -> None:
    globs = GlobSet((exact_glob(path),))
    assert globs.matches(path)
    assert globs.matches(other) == (other == path)


@given(first=st.sets(PATHS, max_size=6), second=st.sets(PATHS, max_size=6))
def test_overlap_is_the_intersection(first: set[str], second: set[str]) -> None:
    lanes = [("a", [exact_glob(path) for path in first]), ("b", [exact_glob(path) for path in second])]
    found = overlaps(lanes, sorted(first | second))
    assert {path for overlap in found for path in overlap.paths} == first & second


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["{python}", "bench/run.py"], ["bench/run.py"]),
        (["{python}", "./bench/../bench/run.py"], ["bench/run.py"]),
        (["python3", "-I", "-m", "bench.run"], ["bench/__init__.py", "bench/run.py"]),
        (["sh", "-c", "cd . && exec bench/go.sh --fast"], ["bench/go.sh"]),
        (["./bench/go.sh", "--config=bench/conf.json"], ["bench/conf.json", "bench/go.sh"]),
        (["make", "-j2", "all"], ["Makefile"]),
        (["{python}", "-m", "pip", "install", "."], ["pyproject.toml"]),
        (["{python}", "-c", "print('unbalanced"], []),
    ],
)
def test_named_files(argv: list[str], named: list[str]) -> None:
    tree = {
        "bench/__init__.py", "bench/run.py", "bench/go.sh", "bench/conf.json", "Makefile", "pyproject.toml",
        "src/a.py",
    }  # fmt: skip
    assert named_files(argv, tree) == named


@pytest.mark.parametrize(
    ("argv", "built", "missing"),
    [
        (["{python}", "a.py"], False, None),
        (["{python}", "-I", "b.py"], True, "b.py"),
        (["/usr/bin/python3.11", "b.py"], False, "b.py"),
        (["{python}", "-m", "whatever"], False, None),
        (["{python}", "{harness}/x.py"], False, None),
        (["{python}", "/abs/x.py"], False, None),
        (["./tool"], False, "./tool"),
        (["./tool"], True, None),
        (["/bin/true"], False, None),
        (["make"], False, None),
    ],
)
def test_missing_script(argv: list[str], built: bool, missing: str | None) -> None:
    assert missing_script(argv, {"a.py"}, built=built) == missing


def test_protected_reach_knows_spelling_variants_of_files_to_be_created() -> None:
    assert protected_reach(["Bench/Run.py"], ["bench/**"], []) == ["Bench/Run.py"]
    assert protected_reach(["src/**"], ["bench/**"], ["src/a.py", "bench/b.py"]) == []


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("src/a.py", True),
        ("src/b/c.py", True),
        ("src/x/mine.py", False),
        ("src/conftest.py", False),
        ("a.py", False),
    ],
)
def test_submission_regex(path: str, allowed: bool) -> None:
    lanes = {"L1": ("src/**",), "L2": ("src/x/**",)}
    regex = submission_regex("L1", lanes, ("**/conftest.py",))
    assert (re.compile(regex).match(path) is not None) == allowed
