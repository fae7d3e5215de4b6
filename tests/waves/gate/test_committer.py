"""W08 and its kind: what the committer commits, restores, and leaves alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.synthetic import commit_all, write_files
from support.wave_builder import Heard, wave_campaign

from roundkit.core.errors import Refused
from roundkit.core.git import Repository, identity_environment
from roundkit.waves.banked import bank_commits, bank_message, banked_keys


def right(group: str, name: str) -> str:
    return f"right {group} {name}\n"


def test_w08_a_collapsed_config_is_refused_and_restored_and_the_commit_goes_on(open_folder: Path) -> None:
    campaign, heard = wave_campaign(open_folder), Heard()
    campaign.drafted({"a.txt": right("g", "a")}, ("g", "a"))
    write_files(campaign.tree, {"src/config.txt": "line\n" * 7, "src/found.txt": "work of a person\n"})
    before = campaign.git.resolve("HEAD")
    assert campaign.gate(heard) == 0
    assert (campaign.tree / "src/config.txt").read_text() == "line\n" * 10
    assert campaign.git.git("diff", "--name-only", f"{before}", "HEAD").text.split() == [
        "src/found.txt",
        "src/g/a.txt",
    ]
    assert any(line.startswith("*** src/config.txt had collapsed: 7 lines") for line in heard.lines)
    assert campaign.git.git("show", "--format=%s", "--name-only", "HEAD~1").text.split("\n\n") == [
        "Keep what was found changed before the gate of wave 0001",
        "src/found.txt",
    ]


@pytest.mark.parametrize("lines", [8, 12])
def test_w08_a_watched_file_that_keeps_enough_is_committed_as_found(open_folder: Path, lines: int) -> None:
    campaign = wave_campaign(open_folder)
    campaign.drafted({"a.txt": right("g", "a")}, ("g", "a"))
    write_files(campaign.tree, {"src/config.txt": "line\n" * lines})
    assert campaign.gate() == 0
    assert campaign.git.read_blob("HEAD", "src/config.txt") == b"line\n" * lines


def test_w08_a_watched_file_that_is_gone_is_restored(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder)
    campaign.drafted({}, ("g", "a"))
    (campaign.tree / "src/config.txt").unlink()
    head = campaign.git.resolve("HEAD")
    assert campaign.gate() == 0
    assert (campaign.tree / "src/config.txt").read_text() == "line\n" * 10
    assert campaign.git.resolve("HEAD") == head


def test_w08_paths_of_another_lane_are_neither_committed_nor_reverted(open_folder: Path) -> None:
    campaign = wave_campaign(
        open_folder, paths=["src/**", "lane/**"], others=["lane/**"], watched=["lane/**"]
    )
    campaign.drafted({"a.txt": right("g", "a")}, ("g", "a"))
    dirty = {"lane/other.txt": "", "lane/new.txt": "unverified\n", "elsewhere.txt": "not ours\n"}
    write_files(campaign.tree, dirty)
    write_files(campaign.tree, {"lane/staged.txt": "staged\n"})
    campaign.git.git("add", "lane/staged.txt")
    write_files(campaign.tree, {"lane/staged.txt": "and changed since\n"})
    assert campaign.gate() == 0
    assert campaign.banked() == [("g", "a")]
    assert campaign.git.git("show", "--format=", "--name-only", "HEAD").text.split() == ["src/g/a.txt"]
    for path, content in {**dirty, "lane/staged.txt": "and changed since\n"}.items():
        assert (campaign.tree / path).read_text() == content
    status = campaign.git.git("status", "--porcelain", "--untracked-files=all").stdout.decode().splitlines()
    assert sorted(status) == [
        " M lane/other.txt",
        "?? elsewhere.txt",
        "?? lane/new.txt",
        "AM lane/staged.txt",
    ]
    assert campaign.git.git("show", ":lane/staged.txt").text == "staged"


def test_w08_what_a_person_staged_in_a_banked_file_stays_staged(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder)
    write_files(campaign.tree, {"src/g/a.txt": "staged by a person\n"})
    campaign.git.git("add", "src/g/a.txt")
    campaign.drafted({"a.txt": right("g", "a")}, ("g", "a"))
    assert campaign.gate() == 0
    assert campaign.git.read_blob("HEAD~1", "src/g/a.txt") == b"staged by a person\n"
    assert campaign.git.read_blob("HEAD", "src/g/a.txt").decode() == right("g", "a")
    assert campaign.git.dirty_paths() == []


_LANE = """
import subprocess, sys, time
git = ["git", "-C", sys.argv[1], "-c", "user.name=lane", "-c", "user.email=lane@localhost"]
for number in range(1000):
    with open(sys.argv[1] + "/lane/other.txt", "w") as stream:
        stream.write(f"{number}\\n")
    subprocess.run([*git, "add", "lane"], check=False, stderr=subprocess.DEVNULL)
    subprocess.run([*git, "commit", "-qm", f"lane {number}"], check=False, stderr=subprocess.DEVNULL)
    print(number, flush=True)
    time.sleep(0.05)
"""


def test_w08_a_lane_that_commits_all_the_while_neither_loses_nor_takes_back_anything(
    open_folder: Path,
) -> None:
    campaign = wave_campaign(open_folder, paths=["**"], others=["lane/**"])
    named = [f"n{number}" for number in range(2)]
    for name in named:
        campaign.drafted({f"{name}.txt": right("g", name)}, ("g", name))
    with subprocess.Popen(
        [sys.executable, "-c", _LANE, str(campaign.tree)], stdout=subprocess.PIPE, text=True
    ) as lane:
        assert lane.stdout is not None
        lane.stdout.readline()
        try:
            assert campaign.gate() == 0
            lane.stdout.readline()
        finally:
            lane.terminate()
    assert campaign.banked() == [("g", name) for name in named]
    for name in named:
        assert campaign.git.read_blob("HEAD", f"src/g/{name}.txt").decode() == right("g", name)
    ours = [commit.commit for commit in bank_commits(campaign.tree, "words")]
    changed = campaign.git.git("show", "--format=", "--name-only", *ours).text.split()
    assert sorted(changed) == sorted(f"src/g/{name}.txt" for name in named)
    staged = campaign.git.git("diff", "--cached", "--name-only", "HEAD", "--", ":!lane").text
    assert staged == ""


@pytest.mark.parametrize("in_progress", ["MERGE_HEAD", "rebase-merge"])
def test_w08_a_tree_in_the_middle_of_something_refuses_the_gate(open_folder: Path, in_progress: str) -> None:
    campaign = wave_campaign(open_folder)
    campaign.drafted({"a.txt": right("g", "a")}, ("g", "a"))
    (campaign.tree / ".git" / in_progress).mkdir()
    with pytest.raises(Refused) as refused:
        campaign.gate()
    assert refused.value.refusals[0].code == "tree-busy"
    assert campaign.rows() == []
    (campaign.tree / ".git" / in_progress).rmdir()
    assert campaign.gate() == 0
    assert campaign.banked() == [("g", "a")]


def test_w08_work_that_cannot_be_committed_refuses_the_gate_and_is_not_lost(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder)
    campaign.drafted({"a.txt": right("g", "a")}, ("g", "a"))
    write_files(campaign.tree, {"src/found.txt": "work\n"})
    campaign.git.git("config", "filter.broken.clean", "false")
    campaign.git.git("config", "filter.broken.required", "true")
    (campaign.tree / ".git/info").mkdir(exist_ok=True)
    (campaign.tree / ".git/info/attributes").write_text("*.txt filter=broken\n")
    with pytest.raises(Refused) as refused:
        campaign.gate()
    assert refused.value.refusals[0].code == "tree-not-committed"
    assert (campaign.tree / "src/found.txt").read_text() == "work\n"
    (campaign.tree / ".git/info/attributes").unlink()
    assert campaign.gate() == 0
    assert campaign.git.read_blob("HEAD~1", "src/found.txt") == b"work\n"


def test_w08_a_draft_reaches_no_path_that_is_not_the_plans(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder)
    outputs = {
        ("g", "a"): "lane/other.txt", ("g", "b"): "src/../lane/new.txt", ("g", "c"): "src/link/c.txt",
        ("g", "d"): "src/shared.txt", ("g", "e"): "src/shared.txt", ("g", "f"): ".git/config",
    }  # fmt: skip
    (campaign.tree / "src/link").symlink_to(open_folder)
    drafts = {f"{name}.txt": right("g", name) for _, name in outputs}
    campaign.drafted(drafts, *outputs, outputs=outputs)
    assert campaign.gate() == 0
    assert campaign.banked() == []
    assert campaign.rows()[0].gated == 0
    assert not (open_folder / "c.txt").exists()
    assert (campaign.tree / "lane/other.txt").read_text() == "theirs\n"
    assert {row.name: row.stage for row in campaign.rejects()} == {name: "gate" for _, name in outputs}


def test_w08_a_draft_never_takes_the_place_of_a_submodule(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder)
    inner = Repository(campaign.tree / "src/g")
    inner.path.mkdir()
    inner.git("init", "--quiet")
    write_files(inner.path, {"theirs.txt": "theirs\n"})
    commit_all(inner, ["."], "theirs")
    commit_all(campaign.git, ["src/g"], "their repository")
    head = campaign.git.resolve("HEAD")
    campaign.drafted({"a.txt": right("g", "a")}, ("g", "a"))
    assert campaign.gate() == 0
    assert campaign.git.resolve("HEAD") == head
    assert [row.reason for row in campaign.rejects()] == ["src/g is a submodule"]


@pytest.mark.parametrize("left", ["empty", "gone"])
def test_w08_a_draft_never_takes_the_place_of_a_submodule_that_is_not_checked_out(
    open_folder: Path, left: str
) -> None:
    campaign = wave_campaign(open_folder)
    entry = f"160000,{campaign.git.resolve('HEAD')},src/g"
    campaign.git.git("update-index", "--add", "--cacheinfo", entry)
    campaign.git.git(
        "commit",
        "--quiet",
        "--message",
        "a submodule",
        env=identity_environment("a", "b", "2026-01-01T00:00:00Z"),
    )
    if left == "empty":
        (campaign.tree / "src/g").mkdir()
    head = campaign.git.resolve("HEAD")
    outputs = {("h", "b"): "src/g"}
    campaign.drafted(
        {"a.txt": right("g", "a"), "b.txt": right("h", "b")}, ("g", "a"), ("h", "b"), outputs=outputs
    )
    assert campaign.gate() == 0
    assert campaign.git.resolve("HEAD") == head
    assert {row.reason for row in campaign.rejects()} == {"src/g is a submodule"}
    assert campaign.rows()[0].gated == 0


def test_w02_what_is_banked_is_read_from_history_and_only_from_trailers(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder)
    campaign.drafted({"a.txt": right("g", "a")}, ("g", "a"))
    assert campaign.gate() == 0
    tree, known = campaign.tree, bank_commits(campaign.tree, "words")
    quoted = bank_message("words", "0" * 64, "0009", 1, []) + "Roundkit-Banked: g b " + "0" * 64
    message = f"A person quotes\n\n{quoted}\n\nand goes on to say more."
    person = ("-c", "user.name=p", "-c", "user.email=p@localhost")
    for text in (message, bank_message("words-2", "0" * 64, "0001", 1, [])):
        campaign.git.git(*person, "commit", "--quiet", "--allow-empty", "-m", text)
    assert bank_commits(tree, "words") == known
    assert banked_keys(tree, "words") == {("g", "a")}
    assert banked_keys(tree, "words-2") == banked_keys(tree, "word") == frozenset()
    for expected in (frozenset(), {("g", "a")}):
        campaign.git.git(*person, "revert", "--no-edit", known[0].commit if not expected else "HEAD")
        assert banked_keys(tree, "words") == expected
    campaign.git.git("reset", "--quiet", "--hard", f"{known[0].commit}^")
    assert banked_keys(tree, "words") == frozenset()
