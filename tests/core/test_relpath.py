"""Paths that a candidate may write are those that git keeps: one that is left out would never be measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from roundkit.core.git import Repository
from roundkit.core.relpath import is_reserved_link, path_problem

FILE, LINK = "100644", "120000"


@pytest.mark.parametrize(
    ("mode", "path"),
    [
        *(
            (FILE, name)
            for name in (".git:x", "a/.Git . :x", "git~1:x/y", ".git::$INDEX_ALLOCATION", "a/git~1")
        ),
        *((FILE, name) for name in ("a:b", ".gitx:y", "git~2", "agit:x", "a/.github:x", ".gitmodules:x")),
        *((LINK, name) for name in (".gitmodules:x", "a/GITMOD~4", "gi7eba~1", "g~123456 .", "GI7E~123:x")),
        *((LINK, name) for name in ("gitmod~5", "gi7eba~0", "g~1", "gi7eba~12", "gitmodules", "gitmod~1/x")),
    ],
)
def test_r03_a_path_is_taken_where_git_keeps_it(tmp_path: Path, mode: str, path: str) -> None:
    repository = Repository(tmp_path)
    repository.git("init", "--quiet")
    blob = repository.git("hash-object", "-w", "--stdin", stdin=b"x").text
    repository.git("update-index", "-z", "--index-info", stdin=f"{mode} {blob}\t{path}\0".encode())
    kept = repository.git("ls-files", "-z").stdout != b""
    refused = path_problem(path) is not None or (mode == LINK and is_reserved_link(path))
    assert kept is not refused
