"""P05, P06: lies about a pilot that its own records contradict, though every digest over them was mended."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.pilot_folders import RECOVERED, REFUSED, edit_json, edit_line, rebind, trial_of

from roundkit.audit import audit_pilot
from roundkit.core.canonical import canonical_bytes, digest_bytes
from roundkit.core.clock import format_utc
from roundkit.pilots.packet import make_packet

Lie = Callable[[Path], None]
Change = Callable[[Any], object]


def moved(record: Any, field: str, seconds: float) -> None:
    """Move a time of a record."""
    moment = datetime.fromisoformat(record[field]) + timedelta(seconds=seconds)
    record[field] = format_utc(moment)


def in_record(change: Change, tuple_id: str = REFUSED, *, name: str = "record.json") -> Lie:
    """Change a record of one trial, and bind and chain everything anew."""

    def lie(pilot: Path) -> None:
        path = trial_of(pilot, tuple_id) / name
        record = json.loads(path.read_bytes())
        change(record)
        path.write_bytes(canonical_bytes(record))
        rebind(trial_of(pilot, tuple_id))

    return lie


def in_call(number: int, tuple_id: str = REFUSED, **changes: Any) -> Lie:
    def lie(pilot: Path) -> None:
        edit_line(trial_of(pilot, tuple_id) / "calls.jsonl", number, lambda call: call.update(changes))
        rebind(trial_of(pilot, tuple_id))

    return lie


def in_plan(change: Change) -> Lie:
    """Change the plan, seal it, and let every attempt name it."""

    def lie(pilot: Path) -> None:
        plan = json.loads((pilot / "plan.json").read_bytes())
        change(plan)
        data = canonical_bytes(plan)
        (pilot / "plan.json").write_bytes(data)
        (pilot / "plan.json.sha256").write_text(f"{digest_bytes(data)}  plan.json\n")
        for trial in sorted((pilot / "trials").iterdir()):
            edit_json(trial / "start.json", plan_sha256=digest_bytes(data))
            edit_json(trial / "record.json", plan_sha256=digest_bytes(data))
            rebind(trial)

    return lie


def in_replay(change: Change) -> Lie:
    def lie(pilot: Path) -> None:
        (path,) = (pilot / "replays").glob(f"{REFUSED}-*")
        replay = json.loads(path.read_bytes())
        change(replay)
        data = canonical_bytes(replay)
        path.write_bytes(data)
        path.rename(path.with_name(f"{REFUSED}-{digest_bytes(data)}.json"))

    return lie


def in_candidate(pilot: Path) -> None:
    (trial_of(pilot, REFUSED) / "candidate/alerts.py").write_bytes(b"x = 1\n")
    rebind(trial_of(pilot, REFUSED))


def at_its_deadline(record: Any) -> None:
    record.update(process="timeout")
    record["agent"].update(end_reason="deadline", exit_code=None)


def of_a_model(plan: Any) -> None:
    plan.update(provenance="model")
    plan["model"]["agent"].update(provenance="model")


def in_clock(clock: str, date: str, seconds: float) -> Change:
    """Move a moment of a record on both clocks alike."""

    def change(record: Any) -> None:
        moved(record, date, seconds)
        moved(record[clock], "utc", seconds)
        for name in ("from_us", "to_us"):
            record[clock][name] += round(seconds * 1e6)

    return change


def files_swapped(record: Any) -> None:
    record["files"][:2] = reversed(record["files"][:2])


NOBODY = "ab" * 32
LIES: dict[str, tuple[Lie, str]] = {
    "started before the plan was frozen": (
        in_plan(lambda plan: moved(plan, "frozen_utc", 86400)),
        "chain | trials/001-signature.guided.1/start.json"),
    "started before the one before it had ended": (
        in_record(lambda record: moved(record, "ended_utc", 1200)), "a clock was set, or one is forged"),
    "a start of another date than its clocks": (
        in_record(lambda start: moved(start, "started_utc", 0.5), name="start.json"), "both clocks' date is"),
    "started before the one before it had ended, by both clocks": (
        in_record(in_clock("ended_clock", "ended_utc", 1200)), "a clock was set, or one is forged"),
    "an agent of more time than its trial": (
        in_record(lambda record: record.update(wall_ms=90_000)), "took 90"),
    "an agent that was never ended": (
        in_record(lambda record: record.update(wall_ms=10_000_000)), "was to be ended within"),
    "checks of more time than their trial": (
        in_record(lambda record: record.update(validation_ms=90_000)), "its agent and its checks took 90"),
    "a deadline that had not come": (in_record(at_its_deadline), "was ended at its deadline after"),
    "an end that nobody knows": (
        in_record(lambda record: record.update(ended_utc=None)), "nobody knows when it ended"),
    "aborted, and it came to its end": (
        in_record(lambda record: record.update(process="aborted")), "it was aborted, and its agent"),
    "an error of nobody": (
        in_record(lambda record: record.update(process="error")), "and nothing says why"),
    "another word about an end": (
        in_record(lambda record: record.update(detail="all is well")), "it says of its end: 'all is well'"),
    "files in another order": (in_record(files_swapped), "does not list its files once, in their order"),
    "more calls than the plan lets be": (
        in_plan(lambda plan: plan["policy"].update(calls=1)), "was carried out, and the plan lets 1 be"),
    "calls of more time than their agent": (in_call(1, wall_ms=90_000), "its calls took 90"),
    "a file that nobody had left there": (
        in_call(2, found_sha256=NOBODY, after_sha256=NOBODY), f"call 2 found {NOBODY} at alerts.py"),
    "a refused write that changed the file": (
        in_call(2, after_sha256=NOBODY), "call 2 changed nothing at alerts.py"),
    "a reading that changed the file": (
        in_call(1, after_sha256=None), "call 1 changed nothing at alerts.py"),
    "a candidate that no call left": (in_candidate, "its calls left"),
    "a model that nobody authorized": (in_plan(of_a_model), "[not-authorized]"),
    "agents of another kind than the plan's": (
        in_plan(lambda plan: plan["model"]["agent"].update(provenance="stub")),
        "plan | plan.json | provenance is scripted, recomputed stub"),
    "decided again before it was decided": (
        in_replay(lambda replay: moved(replay, "replayed_utc", -86400)), "replayed_utc is"),
    "decided again by what was never run": (
        in_replay(lambda replay: replay["acceptance"]["checks"][0].update(stdout_sha256=None)),
        "check behaviour is failed without what it printed"),
    "a check that could not be made": (
        in_plan(lambda plan: plan["tasks"][0]["task"]["checks"][0].update(unavailable="no such tool")),
        "check behaviour is failed, recomputed no such tool"),
}  # fmt: skip


def failed(pilot: Path) -> list[str]:
    return [f"{check.name} | {check.where} | {check.detail}" for check in audit_pilot(pilot).failures]


@pytest.mark.parametrize("lie", LIES)
def test_p06_a_lie_about_a_pilot_is_named(drifted: Path, lie: str) -> None:
    change, words = LIES[lie]
    assert failed(drifted) == []
    change(drifted)
    found = failed(drifted)
    assert any(words in line for line in found), found
    assert not any("is not the file that the record binds" in line for line in found)


@pytest.mark.parametrize("during", [True, False])
def test_p09_a_clock_that_was_set_back_makes_no_liar_of_an_honest_pilot(drifted: Path, during: bool) -> None:
    """As if it had been half a minute ahead, and was set while the first agent ran, or after it had ended."""
    trial = min((drifted / "trials").iterdir())
    start, record = (json.loads((trial / name).read_bytes()) for name in ("start.json", "record.json"))
    ahead = [(start, "started_utc"), (start["started_clock"], "utc"), (record, "started_utc")]
    ahead += [(record["agent"], "started_utc")]
    if not during:
        ahead += [(record["agent"], "ended_utc"), (record, "ended_utc"), (record["ended_clock"], "utc")]
    for part, name in ahead:
        moved(part, name, 30)
    (trial / "start.json").write_bytes(canonical_bytes(start))
    (trial / "record.json").write_bytes(canonical_bytes(record))
    rebind(trial)
    assert failed(drifted) == []


@pytest.mark.parametrize("seconds", [-86400, 1200])
def test_p09_a_review_has_one_time_on_both_clocks(eligible: Path, seconds: float) -> None:
    path = trial_of(eligible, RECOVERED) / "review/review.json"
    review = json.loads(path.read_bytes())
    moved(review, "finished_utc", seconds)
    path.write_bytes(canonical_bytes(review))
    wanted = f"reviews | trials/{trial_of(eligible, RECOVERED).name}/review/review.json | its review's time"
    found = failed(eligible)
    assert any(line.startswith(wanted) for line in found), found


def in_packet(pilot: Path, change: Change) -> None:
    """Change a packet, and let its session and its review name it."""
    review = trial_of(pilot, RECOVERED) / "review"
    packet = json.loads((review / "packet.json").read_bytes())
    change(packet)
    data = canonical_bytes(packet)
    (review / "packet.json").write_bytes(data)
    edit_json(review / "session.json", packet_sha256=digest_bytes(data))
    session = digest_bytes((review / "session.json").read_bytes())
    edit_json(review / "review.json", packet_sha256=digest_bytes(data), session_sha256=session)


def test_p09_a_packet_shows_diff_rubric_and_fingerprints(eligible: Path) -> None:
    in_packet(eligible, lambda packet: packet["files"].pop())
    wanted = "files is candidate.diff, rubric.md, recomputed candidate.diff, rubric.md, fingerprints.json"
    found = [line for line in failed(eligible) if line.startswith("reviews")]
    assert found == [f"reviews | trials/{trial_of(eligible, RECOVERED).name}/review/packet.json | {wanted}"]


def test_p09_fingerprints_are_those_of_the_packets_own_trial(eligible: Path) -> None:
    prints = trial_of(eligible, RECOVERED) / "review/packet/fingerprints.json"
    rows = json.loads(prints.read_bytes())
    rows[1]["sha256"] = NOBODY
    data = canonical_bytes(rows)
    prints.write_bytes(data)
    in_packet(eligible, lambda packet: packet["files"][2].update(sha256=digest_bytes(data), size=len(data)))
    found = [line for line in failed(eligible) if line.startswith("reviews")]
    assert len(found) == 1
    assert f"SHA-256 of fingerprints.json is {digest_bytes(data)}" in found[0]


def test_p09_two_packets_have_two_codes(reviewed_once: Path, tmp_path: Path) -> None:
    pilot = shutil.copytree(reviewed_once, tmp_path / "pilot", symlinks=True)
    code = make_packet(pilot, REFUSED).code
    in_packet(pilot, lambda packet: packet.update(code=code))
    found = [line for line in failed(pilot) if line.startswith("reviews")]
    assert len(found) == 1
    assert f"has the code {code} of trials/" in found[0]
