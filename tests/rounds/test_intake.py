"""Intake trusts nothing that a lane writes: forced entries are rejected with their cause."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.synthetic import knob, scripted_lane

from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.serve import serve
from roundkit.store import open_store

from .conftest import causes, force_entry, written


def test_r02_a_write_outside_the_globs_forced_in_by_hand_is_rejected(launched: RoundFolder) -> None:
    entry, blobs = written("README.md", b"mine now\n")
    force_entry(launched, "L1", [entry], blobs=blobs)
    assert causes(launched) == ["scope"]


def test_r02_another_lanes_file_is_rejected(launched: RoundFolder) -> None:
    entry, blobs = written("knobs/L2.json", knob(0.9).encode())
    force_entry(launched, "L1", [entry], blobs=blobs)
    assert causes(launched) == ["scope"]


@pytest.mark.parametrize("path", ["bench/bench.py", "bench/new.py", "Bench/bench.py", "BENCH/BENCH.PY"])
def test_r03_an_edit_to_the_benchmark_forced_in_is_rejected(launched: RoundFolder, path: str) -> None:
    entry, blobs = written(path, b"print('cheat')\n")
    force_entry(launched, "L1", [entry], blobs=blobs)
    assert causes(launched) == ["protected-path"]


def test_r03_a_rename_of_a_protected_path_is_rejected(launched: RoundFolder) -> None:
    gone = {"path": "bench/bench.py", "mode": None, "deleted": True, "sha256": None}
    entry, blobs = written("knobs/L1.json", (launched.clone("L1") / "bench/bench.py").read_bytes())
    force_entry(launched, "L1", [gone, entry], blobs=blobs)
    assert causes(launched) == ["protected-path"]


def test_r03_a_mode_change_of_a_protected_path_is_rejected(launched: RoundFolder) -> None:
    content = (launched.clone("L1") / "bench/bench.py").read_bytes()
    entry, blobs = written("bench/bench.py", content, mode="100755")
    force_entry(launched, "L1", [entry], blobs=blobs)
    assert causes(launched) == ["protected-path"]


@pytest.mark.parametrize(
    "path",
    [
        "../escape.json",
        "knobs/../../escape.json",
        "/etc/passwd",
        "knobs/L1.json\0",
        "knobs/L1\n.json",
        "knobs/\udcff.json",
        "knobs//L1.json",
        "./knobs/L1.json",
        ".git/hooks/post-checkout",
        "knobs/.GIT/config",
        "",
    ],
)
def test_r03_a_path_that_is_no_clean_relative_path_is_rejected(launched: RoundFolder, path: str) -> None:
    entry, blobs = written(path, b"{}")
    force_entry(launched, "L1", [entry], blobs=blobs)
    assert causes(launched) in (["malformed"], ["protected-path"])


def test_r03_two_spellings_of_one_path_are_rejected(launched: RoundFolder) -> None:
    first, blobs = written("knobs/L1.json", b"{}")
    second, more = written("knobs/l1.json", b"[]")
    force_entry(launched, "L1", [first, second], blobs={**blobs, **more})
    assert causes(launched) == ["malformed"]


def test_r07_a_submission_past_the_cap_forced_in_is_rejected(launched: RoundFolder) -> None:
    for number in range(6):
        entry, blobs = written("knobs/L1.json", knob(number / 100).encode())
        force_entry(launched, "L1", [entry], blobs=blobs)
    other, blobs = written("knobs/L2.json", knob(0.1).encode())
    force_entry(launched, "L2", [other], blobs=blobs)
    assert sorted(causes(launched)) == ["cap", "cap", "queued", "queued", "queued", "queued", "queued"]


def test_a_submission_after_the_lanes_deadline_is_late(
    launched: RoundFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_deadline = intake_deadline(launched)
    entry, blobs = written("knobs/L1.json", knob(0.2).encode())
    force_entry(launched, "L1", [entry], blobs=blobs)
    monkeypatch.setattr("roundkit.rounds.intake.now_utc", lambda: plan_deadline)
    assert causes(launched) == ["late"]


def intake_deadline(folder: RoundFolder):  # type: ignore[no-untyped-def]
    from roundkit.rounds.layout import read_plan

    return read_plan(folder).lanes[0].deadline_utc


def test_r17_bytes_that_are_not_what_the_manifest_says_are_rejected(launched: RoundFolder) -> None:
    entry, blobs = written("knobs/L1.json", b"{}")
    force_entry(launched, "L1", [entry], blobs={next(iter(blobs)): b"[]"})
    assert causes(launched) == ["hash-mismatch"]


@pytest.mark.parametrize(
    ("raw", "cause"),
    [
        (b"{", "malformed"),
        (b'{"lane": "L1", "lane": "L2"}', "malformed"),
        (b'{"format": "roundkit-manifest/1", "lane": "L1", "entries": 7}', "malformed"),
        (b'{"format": "roundkit-manifest/1", "lane": "L1", "entries": NaN}', "malformed"),
        (b"[" * 100_000, "malformed"),
        (b" " * (4 << 20), "too-large"),
    ],
)
def test_r17_a_manifest_that_is_no_manifest_is_rejected(
    launched: RoundFolder, raw: bytes, cause: str
) -> None:
    force_entry(launched, "L1", [], raw=raw, name="0" * 64)
    assert causes(launched) == [cause]


def test_r17_special_files_in_place_of_a_manifest_are_rejected(launched: RoundFolder, tmp_path: Path) -> None:
    outbox = launched.outbox("L1")
    secret = tmp_path / "secret"
    secret.write_text("{}")
    makers: dict[str, Callable[[Path], object]] = {
        "link": lambda path: path.symlink_to(secret),
        "pipe": os.mkfifo,
        "folder": Path.mkdir,
        "hardlink": lambda path: path.hardlink_to(launched.plan_file),
        "sparse": lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 1 << 40),
    }
    for name, make in makers.items():
        (outbox / name).mkdir()
        make(outbox / name / "manifest.json")
    (outbox / "linked-entry").symlink_to(tmp_path)
    (outbox / "a-file").write_text("not an entry")
    found = causes(launched)
    assert len(found) == len(makers) + 2
    assert set(found) == {"malformed", "too-large"}


def test_r17_a_symlinked_outbox_is_an_empty_one(launched: RoundFolder, tmp_path: Path) -> None:
    entry, blobs = written("knobs/L1.json", knob(0.2).encode())
    force_entry(launched, "L1", [entry], blobs=blobs)
    launched.outbox("L1").rename(tmp_path / "moved")
    launched.outbox("L1").symlink_to(tmp_path / "moved")
    assert causes(launched) == []


@pytest.mark.parametrize(
    ("target", "cause"),
    [("/etc/passwd", "symlink"), ("../../outside", "symlink"), ("../.git/config", "symlink")],
)
def test_r17_a_symlink_that_leaves_the_checkout_is_rejected(
    launched: RoundFolder, target: str, cause: str
) -> None:
    entry, blobs = written("knobs/L1.json", target.encode(), mode="120000")
    force_entry(launched, "L1", [entry], blobs=blobs)
    assert causes(launched) == [cause]


@pytest.mark.parametrize(("mode", "cause"), [("160000", "submodule"), ("104755", "mode"), ("100664", "mode")])
def test_r17_modes_that_no_candidate_may_have_are_rejected(
    launched: RoundFolder, mode: str, cause: str
) -> None:
    entry, blobs = written("knobs/L1.json", b"{}", mode=mode)
    force_entry(launched, "L1", [entry], blobs=blobs)
    assert causes(launched) == [cause]


def test_r04_the_same_files_again_are_one_ticket_measured_once(launched: RoundFolder) -> None:
    first = scripted_lane(launched.clone("L1"), {"knobs/L1.json": knob(0.3)})
    assert serve(launched, until="idle", report=lambda _line: None).measured == 1
    again = scripted_lane(launched.clone("L1"), {"knobs/L1.json": knob(0.3)})
    assert again["ticket"] == first["ticket"]
    assert again["duplicate"] is True
    assert serve(launched, until="idle", report=lambda _line: None).measured == 1
    with open_store(launched.database) as store:
        assert len(store.experiments.records(first["ticket"])) == 1
