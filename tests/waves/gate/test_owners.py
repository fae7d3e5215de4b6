"""W04: whose draft a file is; and W11: one gater for a folder and for a tree."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.wave_builder import Heard, wave_campaign

from roundkit.core.errors import Refused
from roundkit.models.wave_records import TargetKey
from roundkit.rounds.locks import hold_lock
from roundkit.rules.wave_owners import Unowned, owner_of
from roundkit.waves import locks
from roundkit.waves.commit import git_folder
from roundkit.waves.gater import TREE_LOCK

TARGETS = [TargetKey(group=group, name=name) for group, name in (("g", "one"), ("g", "two"), ("h", "two"))]


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ("one.c", ("g", "one")),
        ("g/one.c", ("g", "one")),
        ("g/two.c", ("g", "two")),
        ("h/two.c", ("h", "two")),
        ("two.c", "several groups (g, h)"),
        ("h/one.c", "no target h/one"),
        ("three.c", "no target three"),
        ("g/deep/one.c", "too deep"),
        ("../g/one.c", "too deep"),
    ],
)
def test_w04_a_draft_has_exactly_one_owner_or_is_refused(path: str, owner: tuple[str, str] | str) -> None:
    found = owner_of(path, ".c", TARGETS)
    if isinstance(owner, str):
        assert isinstance(found, Unowned)
        assert owner in found.reason
    else:
        assert found == owner


def test_w04_homonyms_of_two_groups_are_never_mixed(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder)
    tag = campaign.wave(("g", "f"), ("h", "f"), ("i", "f"))
    campaign.shard(tag, 0, {"f.txt": "right g f\n"}, targets=[("g", "f")])
    campaign.shard(tag, 1, {"f.txt": "right h f\n"}, targets=[("h", "f")])
    campaign.shard(tag, 2, {"f.txt": "right i f\n"}, targets=[("i", "f"), ("g", "f")])
    campaign.shard(tag, 3, {"i/f.txt": "right i f\n", "h/f.txt": "right h f\n"}, targets=[("i", "f")])
    campaign.hand_on(tag)
    heard = Heard()
    assert campaign.gate(heard) == 0
    assert campaign.banked() == [("g", "f"), ("h", "f"), ("i", "f")]
    for group in "ghi":
        assert (campaign.tree / f"src/{group}/f.txt").read_text() == f"right {group} f\n"
    row = campaign.rows()[0]
    assert (row.drafts, row.unresolved, row.banked) == (5, 2, 3)
    assert [(reject.path, reject.group) for reject in campaign.rejects()] == [
        ("shards/0002/drafts/f.txt", None),
        ("shards/0003/drafts/h/f.txt", None),
    ]
    assert any("2 without one owner" in line for line in heard.lines)


def test_w04_links_pipes_and_giants_are_no_drafts_and_stop_nothing(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder)
    named = ["a", "link", "pipe", "giant", "hard", "folder"]
    tag = campaign.wave(*(("g", name) for name in named))
    drafts = campaign.shard(tag, 0, {"a.txt": "right g a\n"})
    secret = open_folder / "secret.txt"
    secret.write_text("right g link\n")
    (drafts / "link.txt").symlink_to(secret)
    (drafts / "g").symlink_to(open_folder)
    os.mkfifo(drafts / "pipe.txt")
    os.link(secret, drafts / "hard.txt")
    (drafts / "folder.txt").mkdir()
    with (drafts / "giant.txt").open("wb") as stream:
        stream.truncate(1 << 30)
    campaign.hand_on(tag)
    assert campaign.gate() == 0
    assert campaign.banked() == [("g", "a")]
    assert campaign.rows()[0].unresolved == 4
    assert sorted(Path(row.path).name for row in campaign.rejects()) == [
        "giant.txt", "hard.txt", "link.txt", "pipe.txt",
    ]  # fmt: skip


def test_w04_a_name_that_is_no_text_is_no_draft_and_stops_nothing(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder)
    tag = campaign.wave(("g", "a"))
    drafts = campaign.shard(tag, 0, {"a.txt": "right g a\n"})
    for name in (b"two\nlines.txt", b"\xff.txt", b"\xff/a.txt"):
        place = drafts / os.fsdecode(name)
        place.parent.mkdir(exist_ok=True)
        place.write_text("right g a\n")
    campaign.hand_on(tag)
    assert campaign.gate() == 0
    assert campaign.banked() == [("g", "a")]
    assert [Path(row.path).relative_to("shards/0000/drafts").as_posix() for row in campaign.rejects()] == [
        "two\nlines.txt", "\\xff.txt", "\\xff/a.txt",
    ]  # fmt: skip


def test_w04_a_folder_that_cannot_be_read_costs_its_own_shard_alone(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder)
    tag = campaign.wave(("g", "a"), ("g", "b"))
    campaign.shard(tag, 0, {"a.txt": "right g a\n"})
    drafts = campaign.shard(tag, 1, {})
    drafts.rmdir()
    # Even root cannot list it, as others cannot list what its agent took all rights from.
    drafts.symlink_to(drafts)
    campaign.hand_on(tag)
    assert campaign.gate() == 0
    assert campaign.banked() == [("g", "a")]
    assert [row.path for row in campaign.rejects()] == ["shards/0001/drafts/"]


def test_w11_a_second_gater_of_a_campaign_or_of_its_tree_is_refused(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder)
    campaign.drafted({"a.txt": "right g a\n"}, ("g", "a"))
    tree_lock = git_folder(campaign.tree) / TREE_LOCK
    for held in (locks.hold(campaign.folder, "gater"), hold_lock(tree_lock, code="x", what="x")):
        with held, pytest.raises(Refused) as refused:
            campaign.gate()
        assert refused.value.refusals[0].code == "gater-running"
        assert campaign.rows() == []


def test_w03_a_wave_that_is_being_drafted_is_not_gated(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder)
    tag = campaign.wave(("g", "a"))
    with locks.hold(campaign.folder, "drafter"), pytest.raises(Refused) as refused:
        campaign.gate(only=tag)
    assert refused.value.refusals[0].code == "wave-drafting"
