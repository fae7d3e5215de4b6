"""A round directory that was copied, and served beside the one it was copied from."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.cluster import cluster, fixture_sets
from support.killing import assert_one_verdict_each, scene
from support.small_disk import mounted_disk

from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.pools import store_identity
from roundkit.store import open_store


def test_k03_a_copied_round_is_another_store_and_a_moved_one_is_not(tmp_path: Path) -> None:
    first = RoundFolder(tmp_path / "round")
    first.store.mkdir(parents=True)
    identity = store_identity(first)
    shutil.copytree(first.root, tmp_path / "copy")
    copy = RoundFolder(tmp_path / "copy")
    assert store_identity(copy) != identity
    moved = RoundFolder(first.root.rename(tmp_path / "moved"))
    assert store_identity(moved) == identity


def test_k03_a_copy_on_another_disk_whose_files_are_counted_alike_is_another_store(tmp_path: Path) -> None:
    folders = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with mounted_disk(tmp_path / "one", 1) as one, mounted_disk(tmp_path / "two", 1) as two:
        for disk in (one, two):
            folders.append(RoundFolder(disk))
            folders[-1].store.mkdir()
        inodes = {folder.store.stat().st_ino for folder in folders}
        assert len(inodes) == 1
        assert len({store_identity(folder) for folder in folders}) == 2


@pytest.mark.slow
def test_k03_a_copied_round_that_is_served_beside_the_first_one_disturbs_nobody(open_folder: Path) -> None:
    submitted = scene(open_folder / "s", {"L1": 0.5}, device_sets=fixture_sets(["a"]))
    copy = RoundFolder(open_folder / "s/copy")
    shutil.copytree(submitted.folder.root, copy.root, symlinks=True)
    with cluster(open_folder / "cluster") as made:
        made.start_worker("a", fixture_sets(["a"]))
        folders = (submitted.folder, copy)
        serves = [made.start("serve", one.root, "--until-idle", *made.words()) for one in folders]
        for process in serves:
            said, _ = process.communicate(timeout=240)
            assert process.returncode == 0, said
        for one in folders:
            assert_one_verdict_each(one, made.leases, submitted.tickets)
            with open_store(one.database, read_only=True) as store:
                assert {record.reason for record in store.experiments.records()} == {None}
                assert store.experiments.duplicates() == []
