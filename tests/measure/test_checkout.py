"""A materialized commit has the commit's bytes, modes and links; copies too; hostile trees are removed."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from roundkit.core.errors import Refused
from roundkit.core.files import tree_digest
from roundkit.core.globs import GlobSet
from roundkit.measure.checkout import materialize
from roundkit.measure.trees import copy_tree, remove_tree

Commit = Callable[..., tuple[Path, str]]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_materialized_files_are_the_commits_bytes_whatever_attributes_say(
    repository: Commit, tmp_path: Path
) -> None:
    files = {
        ".gitattributes": b"*.txt text eol=crlf ident\n*.bin filter=evil\n*.md export-ignore\n",
        "a/unix.txt": b"one\ntwo $Id$\n",
        "a/dos.bin": b"one\r\ntwo\0\xff",
        "left-out-of-archives.md": b"here",
        "run.sh": b"#!/bin/sh\n",
        "empty": b"",
        "na\xefve name\n.txt": b"odd",
    }
    bare, commit = repository(files, links={"link": "a/unix.txt", "outward": "/etc/passwd"})
    before = os.umask(0o077)
    try:
        materialize(bare, commit, tmp_path / "out")
    finally:
        os.umask(before)
    assert not (tmp_path / "out" / ".git").exists()
    for name, content in files.items():
        found = (tmp_path / "out" / name).read_bytes()
        # `git add` under the attributes above may itself rewrite line ends; git says what was committed.
        shown = subprocess.run(
            ["git", "-C", str(bare), "cat-file", "blob", f"{commit}:{name}"], capture_output=True, check=True
        )
        assert found == shown.stdout, content
    assert (tmp_path / "out" / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "out" / "empty").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "out" / "a").stat().st_mode & 0o777 == 0o755
    assert str((tmp_path / "out" / "link").readlink()) == "a/unix.txt"
    assert str((tmp_path / "out" / "outward").readlink()) == "/etc/passwd"


def test_r37_two_materializations_have_one_digest(repository: Commit, tmp_path: Path) -> None:
    bare, commit = repository({f"d{n % 7}/f{n}.py": bytes([n]) * n for n in range(200)})
    for name in ("one", "two"):
        materialize(bare, commit, tmp_path / name)
    assert tree_digest(tmp_path / "one") == tree_digest(tmp_path / "two")


def test_omitted_and_chosen_files(repository: Commit, tmp_path: Path) -> None:
    bare, commit = repository({"a.py": b"a", "hidden/b.py": b"b", "hidden/c/d.py": b"d"})
    hidden = GlobSet(("hidden/**",))
    materialize(bare, commit, tmp_path / "without", omit=hidden)
    assert names_in(tmp_path / "without") == ["a.py"]
    materialize(bare, commit, tmp_path / "without", only=hidden)
    assert (tmp_path / "without" / "hidden" / "c" / "d.py").read_bytes() == b"d"


def test_commit_with_a_path_that_leaves_the_folder_is_refused(repository: Commit, tmp_path: Path) -> None:
    bare, commit = repository({"a": b"a"})

    def git(*words: str, stdin: bytes = b"") -> str:
        done = subprocess.run(["git", "-C", str(bare), *words], input=stdin, capture_output=True, check=True)
        return done.stdout.decode().strip()

    blob = git("rev-parse", f"{commit}:a")
    entry = b"100644 ..\0" + bytes.fromhex(blob)
    tree = git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=entry)
    with pytest.raises(Refused, match="unsafe-path"):
        materialize(bare, tree, tmp_path / "out")


def test_copy_keeps_bytes_modes_and_links_and_follows_nothing(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "d" / "e").mkdir(parents=True)
    (source / "d" / "run").write_bytes(b"x" * 100_000)
    (source / "d" / "run").chmod(0o4711)
    (source / "secret").write_text("not for everybody")
    (source / "secret").chmod(0o600)
    (source / "link-to-folder").symlink_to("d")
    (source / "link-out").symlink_to("/etc/passwd")
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as plug:
        plug.bind(str(source / "d" / "s"))
    copy_tree(source, tmp_path / "copy")
    copy = tmp_path / "copy"
    assert (copy / "d" / "run").read_bytes() == b"x" * 100_000
    assert (copy / "d" / "run").stat().st_mode & 0o7777 == 0o755
    assert (copy / "secret").stat().st_mode & 0o7777 == 0o644
    assert str((copy / "link-to-folder").readlink()) == "d"
    assert str((copy / "link-out").readlink()) == "/etc/passwd"
    assert not os.path.lexists(copy / "pipe")
    assert not os.path.lexists(copy / "d" / "s")
    (copy / "secret").write_text("changed")
    assert (source / "secret").read_text() == "not for everybody"


def test_a_file_of_nothing_is_copied_as_nothing(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    with (source / "vast").open("wb") as vast:
        vast.seek(1 << 39)
        vast.write(b"here")
        vast.truncate(1 << 40)
    copy_tree(source, tmp_path / "copy")
    copied = tmp_path / "copy" / "vast"
    assert copied.stat().st_size == 1 << 40
    assert copied.stat().st_blocks * 512 <= (source / "vast").stat().st_blocks * 512 + 65_536
    with copied.open("rb") as reading:
        reading.seek((1 << 39) - 2)
        assert reading.read(8) == b"\0\0here\0\0"


def test_removing_takes_deep_locked_and_linked_trees_and_nothing_else(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("kept")
    root = tmp_path / "hostile"
    root.mkdir()
    (root / "link").symlink_to(kept)
    here = os.open(root, os.O_RDONLY)
    for _ in range(400):  # beyond the longest path that the system takes
        os.mkdir("a-name-of-some-length", 0o700, dir_fd=here)
        below = os.open("a-name-of-some-length", os.O_RDONLY, dir_fd=here)
        os.symlink(kept, "link", dir_fd=below)
        os.close(here)
        here = below
    os.close(here)
    (root / ".1").mkdir()
    (root / "locked").mkdir()
    (root / "locked" / "file").write_text("x")
    (root / "locked").chmod(0)
    remove_tree(root)
    assert not root.exists()
    assert (kept / "file").read_text() == "kept"
    (tmp_path / "alias").symlink_to(kept)
    remove_tree(tmp_path / "alias")
    remove_tree(tmp_path / "alias")
    assert names_in(tmp_path) == ["kept"]
