"""Digests over folders: whatever a checkout holds, however deep it lies."""

from __future__ import annotations

from pathlib import Path

from roundkit.core.files import tree_digest, tree_rows
from roundkit.measure.trees import remove_tree

DEPTH = 1500


def test_c07_a_checkout_deeper_than_the_stack_has_a_digest(tmp_path: Path) -> None:
    here = tmp_path / "tree"
    here.mkdir()
    for _ in range(DEPTH):
        here = here / "d"
        here.mkdir()
    (here / "file").write_text("deep")
    before = tree_digest(tmp_path / "tree")
    rows = tree_rows(tmp_path / "tree")
    (here / "file").write_text("changed")
    assert len(rows) == 1
    assert rows[0][0] == "d/" * DEPTH + "file"
    assert tree_digest(tmp_path / "tree") != before
    remove_tree(tmp_path / "tree")


def test_c07_links_to_folders_count_as_links_and_what_is_left_out_lies_at_the_top(tmp_path: Path) -> None:
    (tmp_path / "inner" / "left-out").mkdir(parents=True)
    (tmp_path / "inner" / "left-out" / "file").write_text("counts")
    (tmp_path / "left-out").mkdir()
    (tmp_path / "left-out" / "file").write_text("does not")
    (tmp_path / "link").symlink_to("inner")
    found = tree_rows(tmp_path, skip=frozenset({"left-out"}))
    assert sorted(row[:2] for row in found) == [("inner/left-out/file", "100644"), ("link", "120000")]
