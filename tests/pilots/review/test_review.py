"""P09: a blinded review from start to finish, and everything that it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import run_roundkit
from support.pilot_folders import RECOVERED, REFUSED, REVIEWER, edit_json, eligibility_of, rebind, trial_of

from roundkit.audit import audit_pilot, read_pilot
from roundkit.core.canonical import digest_bytes
from roundkit.core.clock import host_clock
from roundkit.core.errors import Refused
from roundkit.evidence.pilot_reader import PilotReader
from roundkit.pilots.packet import Packet, all_packets, copy_packet, find_packet, make_all, make_packet
from roundkit.pilots.review import finish_review, mark_review, read_state, record_review, start_review
from roundkit.rules.pilot_labels import labels_of

_NS_IN_MS = 1_000_000


def finish(packet: Packet, **more: object) -> None:
    given = {"reviewer": REVIEWER, "blinded": True, "judgement": "accept", **more}
    finish_review(packet, **given)  # type: ignore[arg-type]


def review_reason(pilot: Path, tuple_id: str = RECOVERED) -> str | None:
    items = eligibility_of(pilot, tuple_id).items
    return next(result.reason for result in items if result.item == "review")


def cli(pilot: Path, *words: str, expect: int = 0) -> str:
    done = run_roundkit("pilot", *words[:2], pilot, *words[2:])
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout + done.stderr


def ticking(*milliseconds: int, boot_id: str | None = None) -> Iterator[tuple[int, str]]:
    """Give a clock's readings, one after the other."""
    _, boot = host_clock()
    for each in milliseconds:
        yield each * _NS_IN_MS, boot_id or boot


def test_p09_breaks_are_not_active_time(drifted: Path) -> None:
    packet = make_packet(drifted, RECOVERED)
    clock = ticking(1_000, 5_000, 65_000, 67_000, 100_000).__next__
    start_review(packet, REVIEWER, clock=clock)
    mark_review(packet, "pause", clock=clock)
    assert read_state(packet).state == "paused"
    mark_review(packet, "resume", clock=clock)
    assert read_state(packet).state == "running"
    mark_review(packet, "pause", clock=clock)
    finish(packet, clock=clock)
    review = read_state(packet).review
    assert review is not None
    assert review.active_ms == (5_000 - 1_000) + (67_000 - 65_000)
    assert eligibility_of(drifted, RECOVERED).active_ms == 6_000
    assert eligibility_of(drifted, RECOVERED).eligible


_AN_HOUR = 3_600_000


@pytest.mark.parametrize(
    ("clock", "active_ms"),
    [
        # The two clocks go apart in a break, as where a virtual machine slept: it has no part in the time.
        ((1_000, 2_000, _AN_HOUR, _AN_HOUR + 500), 1_500),
        # They go apart while somebody reviews: nobody knows for how long that was.
        ((1_000, 2_000, 3_000, _AN_HOUR), None),
    ],
)
def test_p09_an_honest_review_is_never_named_whatever_its_clocks_did(
    drifted: Path, clock: tuple[int, ...], active_ms: int | None
) -> None:
    packet, read = make_packet(drifted, RECOVERED), ticking(*clock).__next__
    start_review(packet, REVIEWER, clock=read)
    mark_review(packet, "pause", clock=read)
    mark_review(packet, "resume", clock=read)
    finish(packet, clock=read)
    review = read_state(packet).review
    assert review is not None
    assert review.active_ms == active_ms == eligibility_of(drifted, RECOVERED).active_ms
    assert (review.unclear is None) == (active_ms is not None)
    assert audit_pilot(drifted).failures == ()


@pytest.mark.slow
def test_p09_the_command_line_shows_no_label_and_no_tuple(drifted: Path) -> None:
    said = cli(drifted, "review", "start", RECOVERED, "--reviewer", REVIEWER)
    code = said.split(",")[0]
    said += cli(drifted, "review", "pause", code) + cli(drifted, "review", "resume", code)
    said += cli(drifted, "review", "packet", code, "--out", str(drifted.parent / "for the reviewer"))
    said += cli(drifted, "review", "packet")
    ended = ("--reviewer", REVIEWER, "--judgement", "accept", "--blinded")
    said += cli(drifted, "review", "finish", code, *ended)
    assert f"{code}: accept, " in said
    assert eligibility_of(drifted, RECOVERED).eligible
    shown = said.encode() + b"".join(
        path.read_bytes() for path in (drifted.parent / "for the reviewer").iterdir()
    )
    for label in labels_of(PilotReader(drifted).plan()):
        assert label.encode() not in shown, label
    assert b"before/alerts.py" in shown
    assert "[finished-already]" in cli(drifted, "review", "finish", code, *ended, expect=3)
    assert "[finished-already]" in cli(drifted, "review", "pause", code, expect=3)
    assert "[finished-already]" in cli(drifted, "review", "start", code, "--reviewer", REVIEWER, expect=3)
    assert "[no-packet]" in cli(drifted, "review", "pause", "packet-00000000", expect=3)


def test_p09_one_reviewers_time_runs_for_one_candidate(drifted: Path) -> None:
    first, second = (make_packet(drifted, tuple_id) for tuple_id in (RECOVERED, REFUSED))
    start_review(first, REVIEWER)
    with pytest.raises(Refused, match=rf"\[reviewing-already\].*{first.code}"):
        start_review(second, REVIEWER)
    start_review(second, "r-2")
    mark_review(second, "pause")
    mark_review(first, "pause")
    third = make_packet(drifted, "signature.guided.1")
    start_review(third, REVIEWER)
    with pytest.raises(Refused, match=rf"\[reviewing-already\].*{third.code}"):
        mark_review(first, "resume")
    finish(third)
    mark_review(first, "resume")
    finish(first)
    rows = {row.tuple_id: row.eligibility for row in read_pilot(drifted).cohort.observations}
    assert all(rows[name].active_ms is not None for name in (RECOVERED, "signature.guided.1"))


@pytest.mark.parametrize(
    ("spans", "other", "both"),
    [
        (((0, 60_000), (50_000, 90_000)), REVIEWER, False),
        (((0, 60_000), (10_000, 20_000)), REVIEWER, False),
        (((0, 60_000), (60_000, 90_000)), REVIEWER, True),
        (((0, 60_000), (50_000, 90_000)), "r-2", True),
        (((0, 10_000, 50_000, 60_000), (10_000, 50_000)), REVIEWER, True),
        (((0, 10_000, 50_000, 60_000), (20_000, 50_001)), REVIEWER, False),
    ],
)
def test_p09_time_that_would_count_twice_counts_for_neither(
    drifted: Path, spans: tuple[tuple[int, ...], ...], other: str, both: bool
) -> None:
    # What two terminals can do that look at the same moment, and whoever writes such files by hand.
    clocks = [ticking(*times).__next__ for times in spans]
    packets = [make_packet(drifted, tuple_id) for tuple_id in (RECOVERED, REFUSED)]
    for packet, clock, reviewer, times in zip(packets, clocks, (REVIEWER, other), spans, strict=True):
        start_review(packet, reviewer, clock=clock)
        for mark in ("pause", "resume")[: len(times) - 2]:
            mark_review(packet, mark, clock=clock)  # type: ignore[arg-type]
        finish(packet, reviewer=reviewer, clock=clock)
        assert eligibility_of(drifted, packet.slot.tuple_id).active_ms is not None
    rows = {row.tuple_id: row.eligibility for row in read_pilot(drifted).cohort.observations}
    assert [rows[name].active_ms is not None for name in (RECOVERED, REFUSED)] == [both, both]
    failed = [check.detail for check in audit_pilot(drifted).failures if check.name == "eligibility"]
    reason = "review: overlapping: its reviewer reviewed {} at the same time"
    assert failed == ([] if both else [reason.format(REFUSED), reason.format(RECOVERED)])


def test_p09_two_hosts_are_compared_by_date(drifted: Path) -> None:
    packets = [make_packet(drifted, tuple_id) for tuple_id in (RECOVERED, REFUSED)]
    for number, packet in enumerate(packets):
        clock = ticking(0, 1_000, boot_id=f"boot {number}").__next__
        start_review(packet, REVIEWER, clock=clock)
        finish(packet, clock=clock)
    rows = read_pilot(drifted).cohort.observations
    assert sum(row.eligibility.active_ms is not None for row in rows) == 2
    for tuple_id in (RECOVERED, REFUSED):
        review = trial_of(drifted, tuple_id) / "review"
        edit_json(review / "session.json", started_utc="2100-01-01T00:00:00.000000Z")
        edit_json(
            review / "review.json",
            session_sha256=digest_bytes((review / "session.json").read_bytes()),
            finished_utc="2100-01-01T00:05:00.000000Z",
        )
        assert eligibility_of(drifted, tuple_id).active_ms == 1_000
    rows = read_pilot(drifted).cohort.observations
    assert sum(row.eligibility.active_ms is not None for row in rows) == 0


@pytest.mark.parametrize("name", ["candidate.diff", "rubric.md", "packet.json"])
def test_p09_a_stale_packet_is_refused(drifted: Path, name: str) -> None:
    packet = make_packet(drifted, RECOVERED)
    start_review(packet, REVIEWER)
    folder = trial_of(drifted, RECOVERED) / "review"
    if name == "packet.json":
        edit_json(folder / name, candidate_sha256="0" * 64)
    else:
        (folder / "packet" / name).write_text("another one\n")
    with pytest.raises(Refused, match=r"\[stale-packet\]"):
        find_packet(drifted, packet.code)
    with pytest.raises(Refused, match=r"\[stale-packet\]"):
        make_packet(drifted, RECOVERED)
    assert (review_reason(drifted) or "").startswith("substituted: ")


def test_p09_a_packet_of_a_candidate_that_was_changed_is_stale(drifted: Path) -> None:
    packet = make_packet(drifted, RECOVERED)
    (trial_of(drifted, RECOVERED) / "candidate" / "alerts.py").write_text("something else\n")
    with pytest.raises(Refused, match=r"\[stale-packet\].*another candidate"):
        find_packet(drifted, packet.code)


def test_p09_a_wrong_digest_and_another_reviewer_are_refused(drifted: Path) -> None:
    packet = make_packet(drifted, RECOVERED)
    start_review(packet, REVIEWER)
    with pytest.raises(Refused, match=r"\[wrong-digest\]"):
        finish(packet, packet_sha256="0" * 64)
    with pytest.raises(Refused, match=r"\[other-reviewer\]"):
        finish(packet, reviewer="r-2")
    edit_json(trial_of(drifted, RECOVERED) / "review/session.json", packet_sha256="0" * 64)
    with pytest.raises(Refused, match=r"\[wrong-digest\]"):
        finish(packet)
    assert not (trial_of(drifted, RECOVERED) / "review/review.json").exists()


def test_p09_a_review_starts_once_and_ends_once(drifted: Path) -> None:
    packet = make_packet(drifted, RECOVERED)
    with pytest.raises(Refused, match=r"\[not-started\]"):
        finish(packet)
    with pytest.raises(Refused, match=r"\[not-started\]"):
        mark_review(packet, "pause")
    start_review(packet, REVIEWER)
    session = (trial_of(drifted, RECOVERED) / "review/session.json").read_bytes()
    for again in (lambda: start_review(packet, "r-2"), lambda: record_review(
        packet, reviewer="r-2", minutes=1, blinded=True, judgement="accept")):  # fmt: skip
        with pytest.raises(Refused, match=r"\[started-already\]"):
            again()
    with pytest.raises(Refused, match=r"\[not-paused\]"):
        mark_review(packet, "resume")
    mark_review(packet, "pause")
    with pytest.raises(Refused, match=r"\[paused-already\]"):
        mark_review(packet, "pause")
    finish(packet)
    with pytest.raises(Refused, match=r"\[finished-already\]"):
        finish(packet)
    with pytest.raises(Refused, match=r"\[finished-already\]"):
        mark_review(packet, "resume")
    assert (trial_of(drifted, RECOVERED) / "review/session.json").read_bytes() == session


def test_p09_a_clock_that_goes_backwards_gives_no_time(drifted: Path) -> None:
    packet = make_packet(drifted, RECOVERED)
    clock = ticking(9_000, 8_999).__next__
    start_review(packet, REVIEWER, clock=clock)
    finish(packet, clock=clock)
    review = read_state(packet).review
    assert review is not None
    assert (review.active_ms, review.unclear) == (None, "the host's clock went backwards during the review")
    assert review_reason(drifted) == "clock: the host's clock went backwards during the review"


def test_p09_a_host_that_was_started_anew_gives_no_time(drifted: Path) -> None:
    packet = make_packet(drifted, RECOVERED)
    start_review(packet, REVIEWER)
    finish(packet, clock=ticking(10**9, boot_id="another").__next__)
    assert review_reason(drifted) == "clock: the host was started anew during the review"


def test_p09_a_stated_duration_is_readable_and_never_eligible(drifted: Path) -> None:
    stated = ("--reviewer", REVIEWER, "--minutes", "12", "--judgement", "reject", "--blinded")
    assert "never eligible" in cli(drifted, "review", "record", RECOVERED, *stated)
    review = json.loads((trial_of(drifted, RECOVERED) / "review/review.json").read_bytes())
    assert (review["method"], review["active_ms"]) == ("stated", 720_000)
    assert review_reason(drifted) == "stated: the review's duration was stated by a person, not timed"


@pytest.mark.parametrize(
    ("place", "label"),
    [
        ("candidate.diff", "guided"),
        ("candidate.diff", "GUIDED"),
        ("candidate.diff", "see guided.md"),
        ("candidate.diff", "signature.plain.1"),
        ("rubric", "as the plain variant does"),
    ],
)
def test_p09_a_label_in_a_packet_is_refused_with_its_place(drifted: Path, place: str, label: str) -> None:
    trial = trial_of(drifted, RECOVERED)
    if place == "rubric":
        rubric = drifted / "inputs/tasks/signature/rubric"
        rubric.write_bytes(rubric.read_bytes() + label.encode() + b"\n")
    else:
        (trial / place).write_bytes((trial / place).read_bytes() + f"+# {label}\n".encode())
        rebind(trial)
    with pytest.raises(Refused, match=rf"\[label-leak\] {place.replace('rubric', 'rubric.md')} line \d+"):
        make_packet(drifted, RECOVERED)
    assert not (trial / "review").exists()
    assert review_reason(drifted) == "missing: review/packet.json is not there"


def test_p09_a_word_that_only_holds_a_label_is_none(drifted: Path) -> None:
    trial = trial_of(drifted, RECOVERED)
    (trial / "candidate.diff").write_bytes(b"+# misguided, plainly; explained\n")
    rebind(trial)
    assert make_packet(drifted, RECOVERED).read("candidate.diff").startswith(b"+# misguided")


def test_p09_every_packet_at_once_lists_codes_alone(drifted: Path) -> None:
    trial = trial_of(drifted, REFUSED)
    (trial / "candidate.diff").write_bytes(b"+# guided\n")
    rebind(trial)
    problems = make_all(drifted)
    assert problems == ["[label-leak] candidate.diff line 1"]
    packets = all_packets(drifted)
    assert len(packets) == 7
    assert [packet.code for packet in packets] == sorted(packet.code for packet in packets)
    files = copy_packet(packets[0], drifted.parent / "out")
    assert [file.name for file in files] == ["candidate.diff", "rubric.md", "fingerprints.json"]
    with pytest.raises(Refused, match=r"\[exists\]"):
        copy_packet(packets[0], drifted.parent / "out")


@pytest.mark.parametrize(
    ("words", "expect", "place"),
    [
        (("intervene", RECOVERED, "--kind", "restart", "--note", "\udcff"), 3, "--note"),
        (("intervene", RECOVERED, "--kind", "restart", "--note", "x" * 2001), 3, "--note"),
        (("intervene", RECOVERED, "--kind", "restart", "--by", "x" * 201), 3, "--by"),
        (("review start", RECOVERED, "--reviewer", ""), 3, "--reviewer"),
        (("review record", RECOVERED, "--reviewer", "r", "--minutes", "inf", "--judgement", "accept",
          "--blinded"), 2, "--minutes"),
        (("review record", RECOVERED, "--reviewer", "r", "--minutes", "1", "--judgement", "accept",
          "--blinded", "--note", "\udcff"), 3, "--note"),
    ],
)  # fmt: skip
def test_p09_words_that_fit_no_record_are_refused_with_their_place(
    drifted: Path, words: tuple[str, ...], expect: int, place: str
) -> None:
    command, *more = words
    done = subprocess.run(
        [sys.executable, "-m", "roundkit", "pilot", *command.split(), str(drifted), *more],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    printed = done.stdout + done.stderr
    assert "Traceback" not in printed
    assert (done.returncode, place in printed) == (expect, True), printed
    assert not list(drifted.glob("trials/*/review/[srm]*"))


def test_p09_packets_do_not_show_which_candidates_are_of_one_variant(drifted: Path) -> None:
    """Candidates of one variant had the same prompt: its digest, or its size, would put them together."""
    make_all(drifted)
    shown = [json.loads(packet.read("fingerprints.json")) for packet in all_packets(drifted)]
    records = [row["sha256"] for rows in shown for row in rows if row["of"] == "record"]
    assert len(set(records)) == len(shown) == 8
    assert {row["of"] for rows in shown for row in rows} == {"candidate", "record"}
    assert not any("size" in row for rows in shown for row in rows)
    trial = trial_of(drifted, RECOVERED)
    prompt = digest_bytes((trial / "prompt.md").read_bytes()).encode()
    assert not any(prompt in packet.read("fingerprints.json") for packet in all_packets(drifted))
    assert digest_bytes((trial / "record.json").read_bytes()) in records


def test_p09_a_packet_that_was_begun_and_not_written_whole_stays_so(drifted: Path) -> None:
    (trial_of(drifted, RECOVERED) / "review").mkdir()
    with pytest.raises(Refused, match=r"\[partial-packet\]"):
        make_packet(drifted, RECOVERED)
    with pytest.raises(Refused, match=r"\[no-tuple\]"):
        make_packet(drifted, "signature.plain.9")
