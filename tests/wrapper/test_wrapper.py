"""The lane wrapper, run as an agent runs it, in real clones."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.processes import ended_with_test
from support.synthetic import (
    CampaignRepo,
    campaign_repo,
    knob,
    reachable_folder,
    scripted_lane,
    wrapper,
    write_files,
)

from roundkit.core.canonical import digest_bytes
from roundkit.core.clock import format_utc
from roundkit.core.files import atomic_write
from roundkit.models.lane import LaneFile, Manifest, TicketStatus
from roundkit.rounds import lane_wrapper
from roundkit.rounds.layout import RoundFolder
from roundkit.rules.identity import ticket_key, ticket_name


@pytest.fixture(scope="module")
def launched_round() -> Iterator[RoundFolder]:
    """A launched round whose first lane may change a lot."""

    def edit(draft: Any) -> None:
        draft["lanes"][0].update(globs=["knobs/L1.json", "src/**", "data/*.bin"], submission_cap=2)

    files = {
        "src/old.py": "old\n", "src/gone.py": "gone\n", "src/run.sh": "#!/bin/sh\n", "src/dir/a.py": "a\n",
        "src/same.py": "same\n", "data/x.bin": b"\x00\xff",
    }  # fmt: skip
    with reachable_folder() as home:
        repo = campaign_repo(home, lanes=("L1", "L2"), files=files)
        repo.edit_round(edit)
        yield repo.launched(home / "round")[0]


@pytest.fixture
def folder(launched_round: RoundFolder, open_folder: Path) -> RoundFolder:
    """A copy of that round's lanes."""
    shutil.copytree(launched_round.lanes, open_folder / "lanes", symlinks=True)
    return RoundFolder(open_folder)


@pytest.fixture
def clone(folder: RoundFolder) -> Path:
    return folder.clone("L1")


def manifest_of(clone: Path, ticket: str) -> tuple[Path, Manifest]:
    """Return the outbox entry of a ticket, and its manifest as the coordinator reads it."""
    lane = LaneFile.from_bytes((clone / ".roundkit" / "lane.json").read_bytes(), place="")
    for entry in (clone / ".roundkit" / "outbox").iterdir():
        manifest = Manifest.from_bytes((entry / "manifest.json").read_bytes(), place="")
        key = ticket_key(lane.round_digest, lane.lane, manifest.content_digest())
        assert entry.name == key
        if ticket_name(lane.round_id, lane.lane, key) == ticket:
            return entry, manifest
    raise AssertionError(f"no entry for {ticket}")


def submitted(clone: Path, changes: dict[str, Any]) -> dict[str, tuple[str | None, bytes | None]]:
    """Submit, and return mode and content of each path as the coordinator sees them."""
    entry, manifest = manifest_of(clone, scripted_lane(clone, changes)["ticket"])
    seen = {}
    for item in manifest.entries:
        data = (entry / "blobs" / item.sha256).read_bytes() if item.sha256 else None
        assert data is None or digest_bytes(data) == item.sha256
        seen[item.path] = (item.mode, data)
    assert len(list((entry / "blobs").iterdir())) == len({item.sha256 for item in manifest.entries} - {None})
    return seen


def git_state(clone: Path) -> dict[str, tuple[int, bytes]]:
    files = (path for path in (clone / ".git").rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def git(clone: Path, *words: str) -> None:
    subprocess.run(["git", "-C", clone, *words], check=True, capture_output=True)


def test_r02_wrapper_lists_back_what_lies_outside_the_globs(clone: Path) -> None:
    changes = {"knobs/L1.json": knob(0.1), "knobs/L2.json": knob(0.9), "build.py": "", "src/conftest.py": ""}
    answer = scripted_lane(clone, changes)
    assert answer["outside_scope"] == ["build.py", "knobs/L2.json", "src/conftest.py"]
    _, manifest = manifest_of(clone, answer["ticket"])
    assert [entry.path for entry in manifest.entries] == ["knobs/L1.json"]


def test_nothing_changed_gives_no_ticket(clone: Path) -> None:
    answer = wrapper(clone, "submit")
    assert (answer["ticket"], answer["status"]) == (None, "nothing-changed")
    assert "message" not in answer
    answer = scripted_lane(clone, dict.fromkeys(("build.py", "knobs/L2.json", "x/a", "x/b"), ""))
    assert (answer["ticket"], answer["status"]) == (None, "nothing-changed")
    assert answer["message"].endswith("outside its scope: build.py, knobs/L2.json, x/a and 1 more")
    assert list((clone / ".roundkit" / "outbox").iterdir()) == []


def test_an_edit_of_the_same_size_within_the_second_is_seen(
    three_lanes: CampaignRepo, open_folder: Path
) -> None:
    folder, _ = three_lanes.launched(open_folder / "round")
    same_size = knob(0.5)
    assert len(same_size) == len(knob(0.0))
    seen = submitted(folder.clone("L3"), {"knobs/L3.json": same_size})
    assert seen == {"knobs/L3.json": ("100644", same_size.encode())}


def test_r04_same_files_same_ticket(clone: Path) -> None:
    first = scripted_lane(clone, {"knobs/L1.json": knob(0.1)})
    again = wrapper(clone, "submit")
    assert (first["duplicate"], again["duplicate"]) == (False, True)
    assert again["ticket"] == first["ticket"]
    write_files(clone, {"knobs/L1.json": knob(0.2)})
    other = wrapper(clone, "submit")
    assert other["ticket"] != first["ticket"]
    write_files(clone, {"knobs/L1.json": knob(0.1)})
    assert wrapper(clone, "submit")["ticket"] == first["ticket"]
    assert len(list((clone / ".roundkit" / "outbox").iterdir())) == 2


def test_r04_same_ticket_whatever_was_staged_committed_or_stashed(clone: Path) -> None:
    first = scripted_lane(clone, {"knobs/L1.json": knob(0.1), "src/new.py": "new\n"})
    git(clone, "add", "--all")
    assert wrapper(clone, "submit")["ticket"] == first["ticket"]
    git(clone, "commit", "--quiet", "-m", "work")
    assert wrapper(clone, "submit")["ticket"] == first["ticket"]
    git(clone, "rm", "--quiet", "--cached", "src/old.py")
    assert wrapper(clone, "submit")["ticket"] == first["ticket"]
    (clone / ".git" / "index").write_bytes(b"damaged")
    assert wrapper(clone, "submit")["ticket"] == first["ticket"]


def test_a_file_that_was_only_announced_to_git_is_new(clone: Path) -> None:
    write_files(clone, {"src/new.py": "new\n", "src/gone.py": None})
    git(clone, "add", "--intent-to-add", "src/new.py")
    assert submitted(clone, {}) == {"src/gone.py": (None, None), "src/new.py": ("100644", b"new\n")}
    git(clone, "reset", "--quiet")
    assert wrapper(clone, "submit")["duplicate"]


def test_a_folder_in_place_of_a_file_and_a_file_in_place_of_a_folder(clone: Path) -> None:
    write_files(clone, {"src/old.py": None, "src/dir/a.py": None})
    (clone / "src" / "dir").rmdir()
    seen = submitted(clone, {"src/old.py/inner.py": "x\n", "src/dir": "y\n"})
    wanted = {"src/old.py": None, "src/old.py/inner.py": b"x\n", "src/dir/a.py": None, "src/dir": b"y\n"}
    assert {path: content for path, (_, content) in seen.items()} == wanted
    git(clone, "add", "--all")
    assert wrapper(clone, "submit")["duplicate"]


def test_r07_wrapper_refuses_beyond_the_cap(folder: RoundFolder, clone: Path) -> None:
    for value in (0.1, 0.2):
        assert scripted_lane(clone, {"knobs/L1.json": knob(value)})["status"] == "queued"
    refused = scripted_lane(clone, {"knobs/L1.json": knob(0.3)}, expect_exit=3)
    assert (refused["status"], refused["code"], refused["ticket"]) == ("refused", "cap", None)
    assert scripted_lane(clone, {"knobs/L1.json": knob(0.1)})["duplicate"]
    assert len(list((clone / ".roundkit" / "outbox").iterdir())) == 2
    assert scripted_lane(folder.clone("L2"), {"knobs/L2.json": knob(0.1)})["status"] == "queued"


def test_r07_the_cap_counts_tickets_that_are_known_from_the_mirror_alone(clone: Path) -> None:
    first = scripted_lane(clone, {"knobs/L1.json": knob(0.1)})
    mirror(clone, first["ticket"], "rejected")
    shutil.rmtree(clone / ".roundkit" / "outbox")
    assert scripted_lane(clone, {"knobs/L1.json": knob(0.2)})["status"] == "queued"
    refused = scripted_lane(clone, {"knobs/L1.json": knob(0.3)}, expect_exit=3)
    assert (refused["status"], refused["code"], refused["ticket"]) == ("refused", "cap", None)


def test_late_submissions_are_refused_and_known_ones_answered(clone: Path) -> None:
    first = scripted_lane(clone, {"knobs/L1.json": knob(0.1)})
    lane_json = clone / ".roundkit" / "lane.json"
    lane = json.loads(lane_json.read_bytes())
    lane_json.write_text(
        json.dumps({**lane, "deadline_utc": format_utc(datetime.now(UTC) - timedelta(seconds=1))})
    )
    assert wrapper(clone, "submit")["ticket"] == first["ticket"]
    assert scripted_lane(clone, {"knobs/L1.json": knob(0.2)}, expect_exit=3)["code"] == "late"


def test_r18_every_kind_of_change(clone: Path) -> None:
    (clone / "src" / "old.py").rename(clone / "src" / "moved.py")
    (clone / "src" / "run.sh").chmod(0o755)
    (clone / "src" / "link").symlink_to("same.py")
    (clone / "src" / "same.py").touch()
    seen = submitted(
        clone,
        {
            "src/gone.py": None, "src/new/deep/file.py": "new\n", "data/x.bin": b"\x00\xfe\n\r\n",
            "src/naïve name.txt": "ü", "src/notes.log": "ignored", "src/__pycache__/a.pyc": b"x",
        },
    )  # fmt: skip
    assert seen == {
        "src/old.py": (None, None),
        "src/moved.py": ("100644", b"old\n"),
        "src/run.sh": ("100755", b"#!/bin/sh\n"),
        "src/link": ("120000", b"same.py"),
        "src/gone.py": (None, None),
        "src/new/deep/file.py": ("100644", b"new\n"),
        "data/x.bin": ("100644", b"\x00\xfe\n\r\n"),
        "src/naïve name.txt": ("100644", "ü".encode()),
    }


def test_r18_file_becomes_folder_folder_becomes_file_and_link(clone: Path) -> None:
    (clone / "src" / "old.py").unlink()
    shutil.rmtree(clone / "src" / "dir")
    (clone / "src" / "gone.py").unlink()
    (clone / "src" / "gone.py").symlink_to("same.py")
    seen = submitted(clone, {"src/old.py/inner.py": "x", "src/dir": "file now"})
    assert seen == {
        "src/old.py": (None, None),
        "src/old.py/inner.py": ("100644", b"x"),
        "src/dir": ("100644", b"file now"),
        "src/dir/a.py": (None, None),
        "src/gone.py": ("120000", b"same.py"),
    }


def test_r18_what_has_no_place_in_a_commit_is_named_and_left_out(clone: Path) -> None:
    os.mkfifo(clone / "src" / "pipe")
    (clone / "src" / "nested").mkdir()
    git(clone / "src" / "nested", "init", "--quiet")
    (clone / "src" / "nested" / "file").write_text("")
    Path(os.fsdecode(os.fsencode(clone) + b"/src/\xff.py")).write_text("")
    (clone / "src" / "line\nbreak.py").write_text("")
    deep = "src/" + f"{'d' * 250}/" * 4
    (clone / deep).mkdir(parents=True)
    (clone / f"{deep}{'f' * 16}").write_text("")
    (clone / f"{deep}{'f' * 17}").write_text("")
    answer = scripted_lane(clone, {"knobs/L1.json": knob(0.1)})
    reasons = {row["path"]: row["reason"] for row in answer["unsupported"]}
    assert set(reasons) >= {"src/nested/", "src/\\xff.py", "src/line\nbreak.py"}
    assert reasons[f"{deep}{'f' * 17}"] == "its path is longer than 1024 bytes"
    _, manifest = manifest_of(clone, answer["ticket"])
    assert [entry.path for entry in manifest.entries] == ["knobs/L1.json", f"{deep}{'f' * 16}"]


def test_r18_nothing_in_dot_git_is_written(clone: Path) -> None:
    write_files(clone, {"knobs/L1.json": knob(0.1), "src/new.py": "x"})
    (clone / "src" / "same.py").touch()
    before = git_state(clone)
    assert wrapper(clone, "submit")["submitted"] == 2
    assert git_state(clone) == before
    assert list((clone / ".roundkit" / "scratch").iterdir()) == []


def test_r18_python_3_8_syntax_and_standard_library_only() -> None:
    source = Path(lane_wrapper.__file__).read_text()
    tree = ast.parse(source, feature_version=(3, 8))
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {module.partition(".")[0] for module in modules} <= sys.stdlib_module_names
    newer = {"removeprefix", "removesuffix", "is_relative_to", "UTC", "missing_ok", "strict"}
    assert not newer & {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert source.startswith("#!/usr/bin/env python3\n")


@pytest.mark.slow
def test_r18_fifty_thousand_files(open_folder: Path) -> None:
    many = {f"tree/{number // 250}/{number}.txt": "one of many\n" for number in range(50_000)}
    folder, _ = campaign_repo(open_folder, lanes=("L1",), files=many).launched(open_folder / "round")
    clone = folder.clone("L1")
    time.sleep(1.1)
    wrapper(clone, "submit")
    started_s = time.monotonic()
    git(clone, "status", "--porcelain")
    status_s = time.monotonic() - started_s
    started_s = time.monotonic()
    answer = scripted_lane(clone, {"knobs/L1.json": knob(0.1), "tree/7/1900.txt": "x"})
    elapsed_s = time.monotonic() - started_s
    assert answer["submitted"] == 1
    assert answer["outside_scope"] == ["tree/7/1900.txt"]
    assert elapsed_s < 20 * status_s, "a submission costs a few looks at the tree, whatever its size"


def test_hooks_filters_monitors_and_ignore_files_of_the_agent_do_not_run(clone: Path) -> None:
    marker = clone.parent / "ran"
    script = clone / ".roundkit" / "scratch" / "monitor"
    script.write_text(f"#!/bin/sh\ntouch {marker}\n")
    script.chmod(0o755)
    git(clone, "config", "core.fsmonitor", str(script))
    git(clone, "config", "core.excludesFile", str(clone / "all"))
    (clone / "all").write_text("*\n")
    answer = scripted_lane(clone, {"src/new.py": "x"})
    assert answer["submitted"] == 1
    assert not marker.exists()


@pytest.mark.parametrize(
    "entries",
    [
        [{"path": "a", "mode": "100644", "deleted": False, "sha256": "0" * 64}],
        [
            {"path": "z/ü\u2028\U0001f600.py", "mode": "100755", "deleted": False, "sha256": "a" * 64},
            {"path": 'q"uote\\\x7f.py', "mode": None, "deleted": True, "sha256": None},
            {"path": "\ufb03", "mode": "120000", "deleted": False, "sha256": "b" * 64},
            {"path": "\U00010000", "mode": None, "deleted": True, "sha256": None},
        ],
    ],
)
def test_r04_ticket_is_the_coordinators(entries: list[dict[str, Any]]) -> None:
    lane = {"round_digest": "f" * 64, "lane": "L1", "round_id": "r03"}
    manifest = Manifest.model_validate({"format": "roundkit-manifest/1", "lane": "L1", "entries": entries})
    key = ticket_key("f" * 64, "L1", manifest.content_digest())
    assert lane_wrapper.ticket_key(lane, entries) == key
    assert lane_wrapper.ticket_name(lane, key) == ticket_name("r03", "L1", key)


def mirror(clone: Path, ticket: str, state: str, **more: Any) -> None:
    """Write a ticket's state as the coordinator does."""
    status = TicketStatus.model_validate({"ticket": ticket, "state": state, "sequence": 1, **more})
    atomic_write(clone / ".roundkit" / "status" / f"{ticket}.json", status.to_bytes())


def test_status_of_one_all_and_unknown_tickets(clone: Path) -> None:
    ticket = scripted_lane(clone, {"knobs/L1.json": knob(0.1)})["ticket"]
    assert wrapper(clone, "status", ticket) == {"ticket": ticket, "state": "queued"}
    mirror(clone, ticket, "measured", verdict="pass", gain=0.125)
    seen = wrapper(clone, "status")
    assert [(row["state"], row["verdict"], row["gain"]) for row in seen["tickets"]] == [
        ("measured", "pass", 0.125)
    ]
    assert wrapper(clone, "submit")["status"] == "measured"
    assert wrapper(clone, "status", "r01-L1-00000000", expect_exit=3)["code"] == "unknown-ticket"


def test_status_wait_returns_at_the_first_change(clone: Path) -> None:
    ticket = scripted_lane(clone, {"knobs/L1.json": knob(0.1)})["ticket"]
    words = [sys.executable, clone / ".roundkit" / "round", "status", ticket, "--wait", "3600"]
    waiting = ended_with_test(subprocess.Popen(words, stdout=subprocess.PIPE))
    for change in range(600):  # until one comes after its first look
        mirror(clone, ticket, "measuring", detail=str(change))
        try:
            waiting.wait(timeout=0.2)
            break
        except subprocess.TimeoutExpired:
            continue
    else:
        waiting.kill()
    answer = json.loads(waiting.communicate()[0])
    assert answer["state"] == "measuring"
    assert int(answer["detail"]) <= change


def test_status_wait_ends_with_the_time_or_at_once_when_final(clone: Path) -> None:
    ticket = scripted_lane(clone, {"knobs/L1.json": knob(0.1)})["ticket"]
    assert wrapper(clone, "status", "--wait", "0.5")["tickets"][0]["state"] == "queued"
    mirror(clone, ticket, "rejected", reason="scope")
    # An hour is more than the test would wait: it comes back at once.
    assert wrapper(clone, "status", ticket, "--wait", "3600")["reason"] == "scope"


def test_wrong_usage_and_a_missing_lane_file(clone: Path) -> None:
    done = subprocess.run([clone / ".roundkit" / "round", "sumbit"], capture_output=True, check=False)
    assert done.returncode == 2
    (clone / ".roundkit" / "lane.json").unlink()
    assert wrapper(clone, "submit", expect_exit=1)["code"] == "broken"


def test_two_submits_at_once_publish_one_entry(clone: Path) -> None:
    write_files(clone, {"knobs/L1.json": knob(0.1)})
    words = [sys.executable, clone / ".roundkit" / "round", "submit"]
    both = [ended_with_test(subprocess.Popen(words, stdout=subprocess.PIPE)) for _ in range(3)]
    answers = [json.loads(process.communicate()[0]) for process in both]
    assert len({answer["ticket"] for answer in answers}) == 1
    assert sum(not answer["duplicate"] for answer in answers) == 1
    assert len(list((clone / ".roundkit" / "outbox").iterdir())) == 1
