"""P05 and P07: what makes an observation ineligible, each way with its exact reason, over a real trial."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.pilot_folders import (
    RECOVERED,
    REFUSED,
    edit_json,
    edit_line,
    edit_message,
    eligibility_of,
    rebind,
    trial_of,
)

from roundkit.core.canonical import canonical_bytes, digest_bytes
from roundkit.models.pilot_trial import Eligibility
from roundkit.pilots.interventions import intervene
from roundkit.rules.pilot_eligibility import ITEMS

Change = Callable[[Path], object]
VALUES = {
    "presentation": "presented_bytes",
    "review": "active_ms",
    "recovery": "recovery",
    "interventions": "interventions",
}


def reasons(decided: Eligibility) -> dict[str, str | None]:
    return {result.item: result.reason for result in decided.items}


def remove(name: str) -> Change:
    return lambda trial: (trial / name).unlink()


def symlinked(name: str) -> Change:
    def change(trial: Path) -> None:
        (trial / name).rename(trial.parent.parent / "moved")
        (trial / name).symlink_to(trial.parent.parent / "moved")

    return change


def linked_twice(name: str) -> Change:
    return lambda trial: os.link(trial / name, trial.parent.parent / "second name")


def cut(name: str) -> Change:
    return lambda trial: (trial / name).write_bytes((trial / name).read_bytes()[:-7])


def flipped(name: str) -> Change:
    def change(trial: Path) -> None:
        data = bytearray((trial / name).read_bytes())
        data[len(data) // 2] ^= 1
        (trial / name).write_bytes(data)

    return change


def spaced(name: str) -> Change:
    """Write the same JSON another way."""
    return lambda trial: (trial / name).write_text(json.dumps(json.loads((trial / name).read_bytes())))


def forged(name: str, **changes: Any) -> Change:
    """Change a record's fields, and bind it anew."""

    def change(trial: Path) -> None:
        edit_json(trial / name, **changes)
        rebind(trial)

    return change


def bound(change: Change) -> Change:
    def both(trial: Path) -> None:
        change(trial)
        rebind(trial)

    return both


def review_forged(name: str, **changes: Any) -> Change:
    """Change a review's field and bind session and marks anew, as somebody who forges all of it would."""

    def change(trial: Path) -> None:
        folder = trial / "review"
        edit_json(folder / name, **changes)
        if name != "review.json":
            digests = {
                "session_sha256": digest_bytes((folder / "session.json").read_bytes()),
                "packet_sha256": digest_bytes((folder / "packet.json").read_bytes()),
            }
            edit_json(folder / "review.json", **digests)

    return change


def marks_forged(*marks: tuple[int, str, int]) -> Change:
    """Write marks, by number, kind and milliseconds after the start, and bind them."""

    def change(trial: Path) -> None:
        folder = trial / "review"
        session = json.loads((folder / "session.json").read_bytes())
        lines = b"".join(
            canonical_bytes(
                {
                    "sequence": number,
                    "mark": mark,
                    "at_utc": session["started_utc"],
                    "at_ns": session["started_ns"] + after * 1_000_000,
                    "boot_id": session["boot_id"],
                }
            )
            + b"\n"
            for number, mark, after in marks
        )
        (folder / "marks.jsonl").write_bytes(lines)
        edit_json(folder / "review.json", marks_sha256=digest_bytes(lines))

    return change


def of_another_boot(trial: Path) -> None:
    edit_json(
        trial / "review/review.json", boot_id="0" * 8, active_ms=None, unclear="the host was started anew"
    )


def backwards(trial: Path) -> None:
    session = json.loads((trial / "review/session.json").read_bytes())
    edit_json(trial / "review/review.json", finished_ns=session["started_ns"] - 1)


def before_the_end(trial: Path) -> None:
    started = json.loads((trial / "start.json").read_bytes())["started_utc"]
    review_forged("session.json", started_utc=started)(trial)


def stated(trial: Path) -> None:
    for name in ("session.json", "marks.jsonl"):
        (trial / "review" / name).unlink()
    nothing = dict.fromkeys(("session_sha256", "marks_sha256", "finished_ns", "boot_id"))
    edit_json(trial / "review/review.json", method="stated", **nothing)


def fewer_answers(trial: Path) -> None:
    """Drop the last message of the wire."""
    lines = (trial / "wire.jsonl").read_bytes().splitlines(keepends=True)
    (trial / "wire.jsonl").write_bytes(b"".join(lines[:-1]))
    rebind(trial)


def shorter_answer(trial: Path) -> None:
    """Show the agent less than it was shown, in wire and digest."""
    line = json.loads((trial / "calls.jsonl").read_bytes().splitlines()[0])["response_line"]
    edit_message(trial / "wire.jsonl", line, lambda value: value["result"]["content"].pop())
    rebind(trial)


def renumbered(trial: Path) -> None:
    edit_line(trial / "calls.jsonl", 2, lambda call: call.update(sequence=1))
    rebind(trial)


def other_digest(trial: Path) -> None:
    """Let the last call have named another digest than the wire shows."""
    count = len((trial / "calls.jsonl").read_bytes().splitlines())
    edit_line(trial / "calls.jsonl", count, lambda call: call.update(expected_sha256="0" * 64))
    rebind(trial)


def call_forged(number: int, **changes: Any) -> Change:
    """Change a call, and leave the wire as it is."""

    def change(trial: Path) -> None:
        edit_line(trial / "calls.jsonl", number, lambda call: call.update(changes))
        rebind(trial)

    return change


def reads_hidden(**changes: Any) -> Change:
    """Let calls have been no reads of the drift's file, and take away what the drift left."""

    def change(trial: Path) -> None:
        for number in (1, 2):
            edit_line(trial / "calls.jsonl", number, lambda call: call.update(changes))
        edit_json(
            trial / "record.json",
            files=[
                entry
                for entry in json.loads((trial / "record.json").read_bytes())["files"]
                if not entry["path"].startswith("drift")
            ],
        )
        for name in ("drift.json", "drift-preimage"):
            (trial / name).unlink()
        rebind(trial)

    return change


def cut_while_archived(trial: Path) -> None:
    edit_json(trial / "record.json", truncated=["wire.jsonl"])


def emptied_ledger(trial: Path) -> None:
    """Let the record bind one intervention, and take it away."""
    pilot = trial.parent.parent
    intervene(pilot, f"trials/{trial.name}", kind="restart", by="op", note="")
    rebind(trial)
    (trial / "interventions.jsonl").write_bytes(b"")


def gap(trial: Path) -> None:
    pilot = trial.parent.parent
    for _ in range(3):
        intervene(pilot, f"trials/{trial.name}", kind="restart", by="op", note="")
    lines = (trial / "interventions.jsonl").read_bytes().splitlines(keepends=True)
    (trial / "interventions.jsonl").write_bytes(lines[0] + lines[2])


def too_early(trial: Path) -> None:
    pilot = trial.parent.parent
    started = datetime.fromisoformat(json.loads((trial / "start.json").read_bytes())["started_utc"])
    intervene(pilot, f"trials/{trial.name}", kind="restart", by="op", note="")
    early = (started - timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    edit_line(trial / "interventions.jsonl", 1, lambda entry: entry.update(at_utc=early))


CASES: list[tuple[str, str, Change, str]] = [
    ("presentation", "missing", remove("presentation.json"), "missing: presentation.json is not there"),
    ("presentation", "symlinked", symlinked("presentation.json"), "linked: presentation.json is a link"),
    ("presentation", "hard link", linked_twice("presentation.json"), "linked: presentation.json"),
    ("presentation", "cut", cut("presentation.json"), "substituted: presentation.json is not the file"),
    ("presentation", "cut, bound", bound(cut("presentation.json")), "malformed: .* no Presentation"),
    ("presentation", "other JSON", bound(spaced("presentation.json")), "malformed: .* not canonical"),
    ("presentation", "other total", forged("presentation.json", total_bytes=1), "disagrees: .* says 1"),
    ("presentation", "zero", forged("presentation.json", total_bytes=0, responses=0),
     "disagrees: presentation.json says 0 bytes in 0 answers"),
    ("presentation", "other tuple", forged("presentation.json", tuple_id=REFUSED), "substituted: .* tuple"),
    ("presentation", "no wire", remove("wire.jsonl"), "missing: wire.jsonl is not there"),
    ("presentation", "wire linked", symlinked("wire.jsonl"), "linked: wire.jsonl is a link"),
    ("presentation", "wire flipped", flipped("wire.jsonl"), "substituted: wire.jsonl is not the file"),
    ("presentation", "wire cut", bound(cut("wire.jsonl")), "malformed: "),
    ("presentation", "wire without an answer", fewer_answers, "disagrees: presentation.json says"),
    ("presentation", "wire with a shorter answer", shorter_answer, "disagrees: presentation.json says"),
    ("presentation", "wire cut while archived", cut_while_archived, "truncated: wire.jsonl was cut off"),
    ("presentation", "no prompt", remove("prompt.md"), "missing: prompt.md is not there"),
    ("presentation", "other prompt", bound(lambda trial: (trial / "prompt.md").write_text("do well")),
     "substituted: prompt.md is not the frozen prompt"),
    ("presentation", "frozen prompt gone", lambda trial: (
        trial.parent.parent / "inputs/tasks/signature/prompt").unlink(), "missing: frozen prompt"),
    ("presentation", "frozen prompt changed", lambda trial: (
        trial.parent.parent / "inputs/tasks/signature/prompt").write_text("x"), "substituted: "),
    ("review", "none", lambda trial: (trial / "review").rename(trial.parent.parent / "moved"),
     "missing: review/packet.json is not there"),
    *(("review", f"no {name}", remove(f"review/{name}"), f"missing: review/{name} is not there")
      for name in ("packet.json", "session.json", "marks.jsonl", "review.json", "packet/candidate.diff")),
    *(("review", f"{name} linked", symlinked(f"review/{name}"), f"linked: review/{name} is a link")
      for name in ("packet.json", "session.json", "marks.jsonl", "review.json", "packet/rubric.md")),
    *(("review", f"{name} cut", cut(f"review/{name}"), f"malformed: review/{name} is no ")
      for name in ("packet.json", "session.json", "review.json")),
    ("review", "packet file flipped", flipped("review/packet/candidate.diff"), "substituted: review/pa"),
    ("review", "other packet", review_forged("packet.json", code="packet-00000000"),
     "substituted: the session began with another packet"),
    ("review", "other candidate", review_forged("packet.json", candidate_sha256="0" * 64),
     "substituted: .* another candidate"),
    ("review", "other rubric", review_forged("packet.json", rubric_sha256="0" * 64), "substituted: "),
    ("review", "session changed", lambda trial: edit_json(trial / "review/session.json", started_ns=1),
     "substituted: the review ended another session"),
    ("review", "session forged", review_forged("session.json", started_ns=1), "clock: .* two clocks"),
    ("review", "other reviewer", review_forged("session.json", reviewer="r-2"), "disagrees: another"),
    ("review", "a later end", review_forged("review.json", finished_ns=2**52), "clock: .* two clocks"),
    ("review", "another time", review_forged("review.json", active_ms=10**9), "disagrees: .* says"),
    ("review", "marks changed", lambda trial: (trial / "review/marks.jsonl").write_bytes(b"{}\n"),
     "substituted: the marks are not those"),
    ("review", "marks in no order", marks_forged((1, "resume", 0)), "clock: mark 1 is a second resume"),
    ("review", "marks with a gap", marks_forged((2, "pause", 0)), "clock: mark 1 has sequence 2"),
    ("review", "marks before the start", marks_forged((1, "pause", -5)), "clock: .* backwards"),
    ("review", "another boot", of_another_boot, "clock: the host was started anew"),
    ("review", "clock backwards", backwards, "clock: the host's clock went backwards"),
    ("review", "before the trial's end", before_the_end, "out-of-order: the review began before"),
    ("review", "not blinded", review_forged("review.json", blinded=False), "not-blinded: "),
    ("review", "stated", stated, "stated: the review's duration was stated"),
    ("recovery", "no receipt", remove("drift.json"), "missing: drift.json is not there"),
    ("recovery", "receipt linked", symlinked("drift.json"), "linked: drift.json is a link"),
    ("recovery", "receipt cut", bound(cut("drift.json")), "malformed: drift.json is no DriftReceipt"),
    ("recovery", "receipt changed", flipped("drift.json"), "substituted: drift.json is not the file"),
    ("recovery", "other trigger", forged("drift.json", trigger_sequence=2), "disagrees: call 2 is not"),
    ("recovery", "other file", forged("drift.json", path="notify.py"), "disagrees: the drift was made"),
    ("recovery", "other content after", forged("drift.json", after_sha256="0" * 64),
     "disagrees: the receipt's new content"),
    ("recovery", "other content before", forged("drift.json", before_sha256="0" * 64),
     "disagrees: the archived preimage"),
    ("recovery", "other tuple", forged("drift.json", tuple_id=REFUSED), "substituted: the drift rec"),
    ("recovery", "no preimage", remove("drift-preimage"), "missing: drift-preimage is not there"),
    ("recovery", "preimage changed", bound(flipped("drift-preimage")), "disagrees: the archived preimage"),
    ("recovery", "no calls", remove("calls.jsonl"), "missing: calls.jsonl is not there"),
    ("recovery", "calls linked", symlinked("calls.jsonl"), "linked: calls.jsonl is a link"),
    ("recovery", "calls cut", bound(cut("calls.jsonl")), "malformed: calls.jsonl ends within a line"),
    ("recovery", "calls renumbered", renumbered, "out-of-order: calls.jsonl is not numbered"),
    ("recovery", "another digest", other_digest, "disagrees: call 3 is not what wire.jsonl shows"),
    ("recovery", "reads listed", reads_hidden(tool="list", path=None), "disagrees: call 1 is not what wire"),
    ("recovery", "reads of nothing", reads_hidden(path=None), "disagrees: call 1 is not what wire"),
    ("recovery", "other content found", call_forged(1, found_sha256="0" * 64),
     "disagrees: call 1 was not answered with what calls.jsonl says"),
    ("interventions", "missing", remove("interventions.jsonl"), "missing: interventions.jsonl is not there"),
    ("interventions", "symlinked", symlinked("interventions.jsonl"), "linked: interventions.jsonl"),
    ("interventions", "hard link", linked_twice("interventions.jsonl"), "linked: interventions.jsonl"),
    ("interventions", "malformed", lambda trial: (trial / "interventions.jsonl").write_bytes(b"{}\n"),
     "malformed: interventions.jsonl line 1 is no Intervention"),
    ("interventions", "cut", lambda trial: (trial / "interventions.jsonl").write_bytes(b"{"),
     "malformed: interventions.jsonl ends within a line"),
    ("interventions", "emptied", emptied_ledger, "substituted: interventions.jsonl does not begin"),
    ("interventions", "gap", gap, "malformed: interventions.jsonl line 2 has sequence 3"),
    ("interventions", "before the trial", too_early, "out-of-order: an intervention is from before"),
]  # fmt: skip
SHARED = {"no wire", "wire linked", "wire flipped", "wire cut", "wire without an answer"}
SHARED |= {"wire with a shorter answer", "wire cut while archived", "no calls", "calls linked", "calls cut"}
SHARED |= {"calls renumbered", "another digest", "reads listed", "reads of nothing", "other content found"}
"""Cases that presentation and recovery share: both rest on wire and calls."""


def test_p05_a_whole_trial_is_eligible_with_its_figures(eligible: Path) -> None:
    decided = eligibility_of(eligible, RECOVERED)
    assert reasons(decided) == dict.fromkeys(ITEMS)
    assert decided.eligible
    trial = trial_of(eligible, RECOVERED)
    calls = [json.loads(line) for line in (trial / "calls.jsonl").read_bytes().splitlines()]
    wire = [json.loads(line) for line in (trial / "wire.jsonl").read_bytes().splitlines()]
    shown = sum(wire[call["response_line"] - 1]["bytes"] for call in calls)
    assert decided.presented_bytes == len((trial / "prompt.md").read_bytes()) + shown
    assert (decided.recovery, decided.interventions) == ("recovered", 0)
    assert decided.active_ms == json.loads((trial / "review/review.json").read_bytes())["active_ms"]
    intervene(eligible, f"trials/{trial.name}", kind="other", by="op", note="watered the plants")
    assert eligibility_of(eligible, RECOVERED).interventions == 1


@pytest.mark.parametrize(
    ("item", "name", "change", "reason"), CASES, ids=[f"{case[0]}: {case[1]}" for case in CASES]
)
def test_p05_what_is_not_as_it_is_to_be_has_its_exact_reason(
    eligible: Path, item: str, name: str, change: Change, reason: str
) -> None:
    change(trial_of(eligible, RECOVERED))
    decided = eligibility_of(eligible, RECOVERED)
    found = reasons(decided)
    assert re.match(reason, found[item] or "eligible"), found[item]
    assert getattr(decided, VALUES[item]) is None
    assert not decided.eligible
    others = {"presentation", "recovery"} if name in SHARED else {item}
    assert {key for key, value in found.items() if value is not None} == others, found


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (remove("record.json"), "missing: record.json is not there"),
        (cut("record.json"), "malformed: record.json is no TrialRecord"),
        (symlinked("record.json"), "linked: record.json is a link"),
        (remove("start.json"), "missing: start.json is not there"),
        (forged("start.json", tuple_id=REFUSED), f"substituted: start.json is of another tuple, {REFUSED}"),
        (forged("start.json", plan_sha256="0" * 64), "substituted: start.json is of another plan"),
    ],
)
def test_p05_without_its_record_nothing_of_a_trial_counts(
    eligible: Path, change: Change, reason: str
) -> None:
    change(trial_of(eligible, RECOVERED))
    decided = eligibility_of(eligible, RECOVERED)
    assert all((found or "").startswith(reason) for found in reasons(decided).values()), reasons(decided)


@pytest.mark.parametrize(
    ("tuple_id", "kind"),
    [
        ("signature.plain.1", "recovered"),
        ("signature.plain.2", "rejected-stale-write"),
        ("signature.plain.3", "no-trigger"),
        ("signature.plain.4", "no-next-write"),
        ("signature.guided.1", "wrong-digest"),
        ("signature.guided.2", "malformed"),
        ("signature.guided.3", "malformed"),
    ],
)
def test_p07_only_the_next_write_to_the_path_with_the_new_digest_is_recovery(
    drifted_once: Path, tuple_id: str, kind: str
) -> None:
    assert eligibility_of(drifted_once, tuple_id).recovery == kind


@pytest.mark.parametrize("way", ["code", "stdout", "stderr"])
def test_p07_a_stale_write_is_refused_with_exactly_the_gateways_answer(drifted: Path, way: str) -> None:
    trial = trial_of(drifted, REFUSED)
    call = json.loads((trial / "calls.jsonl").read_bytes().splitlines()[1])

    def other_answer(value: Any) -> None:
        head = json.loads(value["result"]["content"][0]["text"])
        texts = {"stderr": value["result"]["content"][1]["text"]}
        if way == "code":
            head["code"], head["exit_code"] = "ok", 0
        else:
            texts[way] = "stale, perhaps\n"
        head["parts"] = sorted(texts, reverse=True)
        parts = [json.dumps(head), *(texts[name] for name in head["parts"])]
        value["result"]["content"] = [{"type": "text", "text": text} for text in parts]

    edit_message(trial / "wire.jsonl", call["response_line"], other_answer)
    changes: dict[str, Any] = {
        "code": {"code": "ok", "exit_code": 0},
        "stdout": {"stdout_sha256": digest_bytes(b"stale, perhaps\n")},
        "stderr": {"stderr_sha256": digest_bytes(b"stale, perhaps\n")},
    }[way]
    edit_line(trial / "calls.jsonl", 2, lambda value: value.update(changes))
    rebind(trial)
    reason = reasons(eligibility_of(drifted, REFUSED))["recovery"]
    # A call that is said to have written what it did not write is caught before its answer is looked at.
    wrong = "is not what wire.jsonl shows" if way == "code" else "named the old content and was not refused"
    assert re.match(f"disagrees: call 2 {wrong}", reason or "")


def test_p07_a_receipt_where_the_task_has_no_drift_is_no_evidence(drifted: Path) -> None:
    trial = trial_of(drifted, "signature.plain.3")
    other = trial_of(drifted, RECOVERED)
    (trial / "drift.json").write_bytes((other / "drift.json").read_bytes())
    reason = reasons(eligibility_of(drifted, "signature.plain.3"))["recovery"]
    assert reason == "substituted: the record binds no drift.json"
