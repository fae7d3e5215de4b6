"""Intake trusts nothing that a lane writes: forced entries are rejected with their cause."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.synthetic import campaign_repo, commit_all, knob, scripted_lane

from roundkit.measure.trees import remove_tree
from roundkit.rounds.intake import open_intake, take_in
from roundkit.rounds.layout import RoundFolder, read_plan
from roundkit.rounds.serve import serve
from roundkit.rounds.waiting_submissions import FLOOD, Outboxes, unseen_submissions
from roundkit.store import open_store

from .conftest import causes, force_entry, intake_of, written


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
        "knobs/.git:x",
        "knobs/GIT~1 .:x/y",
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


@pytest.mark.parametrize(
    ("entries", "cause"),
    [
        (b",".join([b"{}"] * 290_000), "too-large"),
        (b",".join([b"1"] * 430_000), "too-large"),
        (b"{" + b",".join(b'"%x":1' % number for number in range(90_000)) + b"}", "malformed"),
    ],
    ids=["empty-entries", "numbers", "fields"],
)
def test_r17_a_manifest_with_very_many_errors_costs_little_memory(
    launched: RoundFolder, entries: bytes, cause: str
) -> None:
    """As large as the plan's 200 files may be: every error told would take gigabytes."""
    raw = b'{"format":"roundkit-manifest/1","lane":"L1","entries":[' + entries + b"]}"
    assert (3 << 18) < len(raw) < 65536 + 4096 * 200
    force_entry(launched, "L1", [], raw=raw, name="0" * 64)
    tracemalloc.start()
    try:
        found = causes(launched)
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
        assert found == [cause]
    finally:
        tracemalloc.stop()


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


def test_r17_links_that_leave_the_checkout_one_through_another_are_rejected(launched: RoundFolder) -> None:
    plan = read_plan(launched)
    lanes = (plan.lanes[0].model_copy(update={"globs": ("src/**",)}), *plan.lanes[1:])
    intake = replace(intake_of(launched), plan=plan.model_copy(update={"lanes": lanes}))
    expected = {}
    for cause, targets in (
        ("symlink", {"src/b/d": "..", "src/b/c/x": "../d/../../etc/passwd"}),
        ("symlink", {"src/b/d": "..", "src/b/c/x": "../d/../.git/config"}),
        ("symlink", {"src/b/d": "../b/d"}),
        (None, {"src/b/d": "..", "src/b/c/x": "../d/b/file"}),
    ):
        made = [written(path, target.encode(), mode="120000") for path, target in targets.items()]
        blobs = {digest: content for _, kept in made for digest, content in kept.items()}
        expected[force_entry(launched, "L1", [entry for entry, _ in made], blobs=blobs)] = cause
    with open_store(launched.database) as store:
        take_in(intake, store)
        assert {ticket.key: ticket.reject_cause for ticket in store.tickets.all()} == expected


def test_r17_a_link_that_leaves_the_checkout_through_one_of_the_incumbent_is_rejected(
    open_folder: Path, lease_root: Path
) -> None:
    repo = campaign_repo(open_folder, ["L1"], files={"shared/deep/kept": "x"})
    for name, target in (("up", "../.."), ("out", "up/../../..")):
        (repo.root / "shared/deep" / name).symlink_to(target)
    repo.start_from(commit_all(repo.repository, ["shared"], "links"))
    globs = ["knobs/L1.json", "src/**", "shared/deep/up"]
    repo.edit_round(lambda draft: draft["lanes"][0].update(globs=globs, creates=True))
    folder, _ = repo.launched(open_folder / "round")
    expected = {}
    for cause, links in (
        ("symlink", {"src/a": "../shared/deep/up/../etc/passwd"}),
        ("symlink", {"src/a": "../shared/deep/out"}),
        (None, {"src/a": "../shared/deep/up/knobs"}),
        (None, {"src/a": "../shared/deep/up/x", "shared/deep/up": "."}),
    ):
        made = [written(path, target.encode(), mode="120000") for path, target in links.items()]
        blobs = {digest: content for _, kept in made for digest, content in kept.items()}
        expected[force_entry(folder, "L1", [entry for entry, _ in made], blobs=blobs)] = cause
    plan = read_plan(folder)
    with open_store(folder.database) as store:
        take_in(open_intake(folder, plan, plan.digest()), store)
        assert {ticket.key: ticket.reject_cause for ticket in store.tickets.all()} == expected


def test_r17_a_clone_that_goes_while_it_is_read_stops_nobody(launched: RoundFolder, tmp_path: Path) -> None:
    for number in range(120):
        (launched.outbox("L1") / hashlib.sha256(b"%d" % number).hexdigest()).mkdir()
    intake = intake_of(launched)
    with open_store(launched.database) as store:
        outboxes = Outboxes(launched, intake.plan, store)
        take_in(intake, store, outboxes)
        launched.clone("L1").rename(tmp_path / "elsewhere")
        entry, blobs = written("knobs/L2.json", b"{}")
        force_entry(launched, "L2", [entry], blobs=blobs)
        while not outboxes.caught_up:
            take_in(intake, store, outboxes)
        assert [ticket.lane for ticket in store.tickets.all()] == ["L2"]
        (tmp_path / "elsewhere").rename(launched.clone("L1"))
        for _ in range(9):
            take_in(intake, store, outboxes)
        assert len(store.tickets.rejected_submissions()) == 120


def test_r17_what_no_disk_can_hold_is_the_lanes_fault_and_never_the_hosts(launched: RoundFolder) -> None:
    """It would break while the candidate is laid on the disk, which pauses the queue for every lane."""
    for target in (b"", b"gone\0/../L1.json", b"./" * 510 + b"L1", b"./" * 511 + b"L1"):
        entry, blobs = written("knobs/L1.json", target, mode="120000")
        force_entry(launched, "L1", [entry], blobs=blobs)
    for path in (
        f"knobs/{'x' * 256}",
        f"knobs/{'é' * 128}",
        "knobs/" + "x/" * 40 + "x" * 255,
        "x/" * 512 + "x",
    ):
        entry, blobs = written(path, b"{}")
        force_entry(launched, "L2", [entry], blobs=blobs)
    # Bytes that are no text are refused too: the audit would hold them against the evidence.
    entry, blobs = written("knobs/L3.json", b"\xff", mode="120000")
    force_entry(launched, "L3", [entry], blobs=blobs)
    with open_store(launched.database) as store:
        take_in(intake_of(launched), store)
        found: dict[str, list[str]] = {"L1": [], "L2": [], "L3": []}
        for ticket in store.tickets.all():
            found[ticket.lane].append(ticket.reject_cause or ticket.state)
    assert sorted(found["L1"]) == ["queued", "symlink", "symlink", "symlink"]
    assert found["L3"] == ["symlink"]
    assert sorted(found["L2"]) == ["malformed", "malformed", "malformed", "scope"]


@pytest.mark.parametrize(("mode", "cause"), [("160000", "submodule"), ("104755", "mode"), ("100664", "mode")])
def test_r17_modes_that_no_candidate_may_have_are_rejected(
    launched: RoundFolder, mode: str, cause: str
) -> None:
    entry, blobs = written("knobs/L1.json", b"{}", mode=mode)
    force_entry(launched, "L1", [entry], blobs=blobs)
    assert causes(launched) == [cause]


def test_r17_a_device_node_is_rejected(launched: RoundFolder) -> None:
    (launched.outbox("L1") / "device").mkdir()
    try:
        os.mknod(launched.outbox("L1") / "device" / "manifest.json", 0o600 | stat.S_IFBLK, os.makedev(7, 0))
    except PermissionError:
        if "ROUNDKIT_CI" in os.environ:
            raise
        pytest.skip("making a device node needs root")
    assert causes(launched) == ["malformed"]


def test_r17_deep_nesting_is_one_rejected_entry(launched: RoundFolder) -> None:
    here = os.open(launched.outbox("L1"), os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("deep", dir_fd=here)
        below = os.open("deep", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    try:
        assert causes(launched) == ["malformed"]
    finally:
        remove_tree(launched.outbox("L1") / "deep")


def hand_over_anew(outbox: Path, names: list[str]) -> None:
    """Put entries into an outbox one after the other, as the wrapper does: by a rename of what lay beside."""
    last_ns = 0
    for name in names:
        handed_ns = last_ns
        while handed_ns <= last_ns:  # the clock of file systems may stand still for milliseconds
            (outbox / name).rename(outbox.parent / "made")
            (outbox.parent / "made").rename(outbox / name)
            handed_ns = (outbox / name).stat().st_ctime_ns
        last_ns = handed_ns


@pytest.mark.parametrize("backwards", [False, True])
def test_a_lanes_tickets_are_taken_in_as_they_were_handed_over(
    launched: RoundFolder, *, backwards: bool
) -> None:
    """Whatever their names are, which follow from the candidates: a cap is for the last ones."""
    for share in range(5):
        entry, blobs = written("knobs/L1.json", knob(0.1 + share / 100).encode())
        force_entry(launched, "L1", [entry], blobs=blobs)
    outbox = launched.outbox("L1")
    names = sorted((path.name for path in outbox.iterdir()), reverse=backwards)
    hand_over_anew(outbox, names)
    # A time that the lane sets itself is none.
    os.utime(outbox / names[-1], (0, 0))
    with open_store(launched.database) as store:
        take_in(intake_of(launched), store)
        tickets = store.tickets.all()
        assert [ticket.key for ticket in tickets] == names
        assert [ticket.reject_cause for ticket in tickets] == [None] * 4 + ["cap"]


@pytest.mark.slow
def test_r17_a_flood_hides_nothing_and_costs_each_turn_little(launched: RoundFolder) -> None:
    """100,000 entries that are no submissions, and some that look like one, around two good ones."""
    outbox = launched.outbox("L1")
    for number in range(100_000):
        os.close(os.open(outbox / f"garbage-{number}", os.O_CREAT | os.O_WRONLY))
    for number in range(300):
        (outbox / f"{number:064x}").mkdir()
    good = [
        force_entry(launched, lane, [entry], blobs=blobs)
        for lane in ("L1", "L2")
        for entry, blobs in [written(f"knobs/{lane}.json", knob(0.3).encode())]
    ]
    intake = intake_of(launched)
    with open_store(launched.database) as store:
        outboxes = Outboxes(launched, intake.plan, store)
        assert {ticket.lane for ticket in take_in(intake, store, outboxes)} >= {"L2"}
        while not outboxes.caught_up:
            take_in(intake, store, outboxes)
        assert {ticket.key for ticket in store.tickets.all("queued")} == set(good)
        rejected = store.tickets.rejected_submissions()
        assert [one.lane for one in rejected if one.entry == FLOOD] == ["L1"]
        assert len(rejected) == 1001
        # What was seen is not looked at again, and nothing of it waits.
        events = len(store.events.all())
        for _ in range(25):
            assert take_in(intake, store, outboxes) == []
        assert len(store.events.all()) == events
        assert unseen_submissions(launched, intake.plan, store) == []


def test_r17_large_manifests_over_the_cap_fill_neither_store_nor_ledger(launched: RoundFolder) -> None:
    """The first four use up the cap; of what comes after, 16 MiB are recorded and one line says the rest."""
    deep = "/".join(["d" * 250] * 15)
    large = [
        {"path": f"{deep}/{number}", "mode": None, "deleted": True, "sha256": None} for number in range(199)
    ]
    for number in range(4):
        entry, blobs = written("knobs/L1.json", knob(number / 10).encode())
        force_entry(launched, "L1", [entry], blobs=blobs)
    intake = intake_of(launched)
    with open_store(launched.database) as store:
        assert len(take_in(intake, store)) == 4
    for number in range(30):
        force_entry(launched, "L1", [*large, {**large[0], "path": f"{deep}/more-{number}"}])
    entry, blobs = written("knobs/L2.json", knob(0.3).encode())
    good = force_entry(launched, "L2", [entry], blobs=blobs)
    for _ in range(2):  # a serve that starts again counts what its predecessor recorded
        with open_store(launched.database) as store:
            outboxes = Outboxes(launched, intake.plan, store)
            while not outboxes.caught_up:
                take_in(intake, store, outboxes)
            over = [ticket for ticket in store.tickets.all("rejected") if ticket.reject_cause == "cap"]
            assert (15 << 20) < sum(len(ticket.manifest.to_bytes()) for ticket in over) < (17 << 20)
            assert [(one.lane, one.entry) for one in store.tickets.rejected_submissions()] == [("L1", FLOOD)]
            assert store.tickets.get(good).state == "queued"
            assert store.tickets.count_toward_cap("L1") == 4


def test_r17_bytes_swapped_between_hash_and_copy_are_never_kept(launched: RoundFolder) -> None:
    """A process swaps the bytes as fast as it can while entries are taken in."""
    entry, blobs = written("knobs/L1.json", knob(0.2).encode())
    digest, content = next(iter(blobs.items()))
    key = force_entry(launched, "L1", [entry], blobs=blobs)
    blob = launched.outbox("L1") / key / "blobs" / digest
    swap = (
        "import os, sys\nblob, good = sys.argv[1], bytes.fromhex(sys.argv[2])\nprint('on', flush=True)\n"
        "while True:\n"
        "    for data in (b'x' * len(good), good):\n"
        "        open(blob + '.new', 'wb').write(data)\n"
        "        os.replace(blob + '.new', blob)\n"
    )
    racing = subprocess.Popen([sys.executable, "-c", swap, blob, content.hex()], stdout=subprocess.PIPE)
    assert racing.stdout is not None
    racing.stdout.readline()
    seen = set()
    try:
        for number in range(60):
            database = launched.store / f"race-{number}.sqlite3"
            with open_store(database) as store:
                take_in(intake_of(launched), store)
                (ticket,) = store.tickets.all()
                seen.add(ticket.reject_cause or ticket.state)
            for kept in launched.blobs.glob("[0-9a-f]*"):
                assert hashlib.sha256(kept.read_bytes()).hexdigest() == kept.name
                kept.unlink()
    finally:
        racing.kill()
        racing.communicate()
    assert seen <= {"queued", "hash-mismatch", "malformed", "too-large"}


def test_r04_the_same_files_again_are_one_ticket_measured_once(launched: RoundFolder) -> None:
    first = scripted_lane(launched.clone("L1"), {"knobs/L1.json": knob(0.3)})
    assert serve(launched, until="idle", report=lambda _line: None).measured == 1
    again = scripted_lane(launched.clone("L1"), {"knobs/L1.json": knob(0.3)})
    assert again["ticket"] == first["ticket"]
    assert again["duplicate"] is True
    # What a killed process tried a layer in goes with the rest that it left.
    (launched.checkouts / ".overlay-killed/base").mkdir(parents=True)
    assert serve(launched, until="idle", report=lambda _line: None).measured == 1
    with open_store(launched.database) as store:
        assert len(store.experiments.records(first["ticket"])) == 1
    assert not list(launched.checkouts.glob(".overlay-*"))
