"""P02, P06 and what else a stranger finds in a pilot's folder, on a copy of it elsewhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.pilot_folders import (
    RECOVERED,
    edit_json,
    edit_line,
    edit_message,
    rebind,
    rebind_alone,
    trial_of,
)

from roundkit.audit import AuditReport, audit_pilot
from roundkit.core.canonical import canonical_bytes, digest_bytes

Change = Callable[[Path], object]
OTHER = "signature.guided.2"


def failed(report: AuditReport) -> list[str]:
    return [f"{check.name} | {check.where} | {check.detail}" for check in report.failures]


def test_a_stranger_audits_a_copy_of_the_folder(reviewed_once: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(reviewed_once, tmp_path / "häuser & gärten" / "copied", symlinks=True)
    shutil.rmtree(copy / "work", ignore_errors=True)
    digest = digest_bytes((copy / "plan.json").read_bytes())
    done = subprocess.run(
        [sys.executable, "-m", "roundkit", "pilot", "audit", copy, "--expect", digest, "--json"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (report,) = json.loads(done.stdout)
    assert report["passed"]
    assert report["evidence_digest"] == digest
    details = {(check["name"], check["where"]): check["detail"] for check in report["checks"]}
    assert details["eligibility", ""] == "1 of 8 observations are eligible"
    assert details["tuples", ""] == "8 tuples, each exactly once, in the frozen order"
    assert details["acceptance", ""] == "8 candidates, each decided twice"
    assert str(tmp_path) not in done.stdout


def test_p02_a_missing_tuple_is_named(drifted: Path) -> None:
    trial = trial_of(drifted, OTHER)
    shutil.rmtree(trial)
    (replay,) = (drifted / "replays").glob(f"{OTHER}-*")
    found = failed(audit_pilot(drifted))
    assert [line.partition(" | names")[0] for line in found if line.startswith("chain")] == [
        f"chain | {after.name}"
        for after in (drifted / "trials").iterdir()
        if after.name.startswith(f"{number_of(drifted, OTHER) + 1:03}-")
    ]
    assert [line for line in found if not line.startswith("chain")] == [
        "tuples | signature.guided.2 | [missing] signature.guided.2, number "
        f"{number_of(drifted, OTHER)}, has no attempt",
        f"acceptance | replays/{replay.name} | is of no attempt that was decided: {OTHER}, {trial.name}",
    ]


def test_p02_a_duplicate_tuple_is_named(drifted: Path) -> None:
    trial = trial_of(drifted, OTHER)
    shutil.copytree(trial, trial.with_name(f"099-{OTHER}"))
    found = failed(audit_pilot(drifted))
    assert any(line.startswith("tuples | signature.guided.2 | [duplicate]") for line in found), found


def test_p02_an_extra_tuple_is_named(drifted: Path) -> None:
    trial = trial_of(drifted, OTHER)
    extra = shutil.copytree(trial, trial.with_name("009-signature.guided.9"))
    for name in ("start.json", "record.json"):
        edit_json(extra / name, tuple_id="signature.guided.9", order=9, attempt=extra.name)
    rebind(extra)
    found = failed(audit_pilot(drifted))
    assert any(line.startswith("tuples | signature.guided.9 | [extra]") for line in found), found


@pytest.mark.parametrize("way", ["folder", "records"])
def test_p02_a_renamed_tuple_is_named(drifted: Path, way: str) -> None:
    trial = trial_of(drifted, OTHER)
    if way == "folder":
        trial.rename(trial.with_name(f"077-{OTHER}"))
    else:
        for name in ("start.json", "record.json"):
            edit_json(trial / name, order=7)
        rebind(trial)
    found = failed(audit_pilot(drifted))
    assert any(line.startswith("tuples | signature.guided.2 | [renamed]") for line in found), found


def number_of(pilot: Path, tuple_id: str) -> int:
    plan = json.loads((pilot / "plan.json").read_bytes())
    return next(
        slot["order"]
        for slot in plan["schedule"]
        if f"{slot['task']}.{slot['variant']}.{slot['repetition']}" == tuple_id
    )


def other_order(pilot: Path) -> None:
    plan = json.loads((pilot / "plan.json").read_bytes())
    first, second = plan["schedule"][:2]
    first["variant"], second["variant"] = second["variant"], first["variant"]
    (pilot / "plan.json").write_bytes(canonical_bytes(plan))


def no_replay(pilot: Path) -> None:
    next((pilot / "replays").glob(f"{OTHER}-*")).unlink()


def disagreeing(pilot: Path) -> None:
    path = next((pilot / "replays").glob(f"{OTHER}-*"))
    replay = json.loads(path.read_bytes())
    outcome = "failed" if replay["acceptance"]["outcome"] == "passed" else "passed"
    replay["acceptance"]["outcome"] = outcome
    path.write_bytes(canonical_bytes({**replay, "agrees": False}))


def quietly_disagreeing(pilot: Path) -> None:
    """Let a replay say that it agrees where one of its checks came out another way."""
    path = next((pilot / "replays").glob(f"{OTHER}-*"))
    replay = json.loads(path.read_bytes())
    replay["acceptance"]["checks"][0].update(outcome="unavailable", reason="it was not made")
    path.write_bytes(canonical_bytes(replay))


def unreadable_replay(pilot: Path) -> None:
    path = next((pilot / "replays").glob(f"{OTHER}-*"))
    (pilot / "replays" / f"{OTHER}-2.json").write_bytes(path.read_bytes()[:-9])


def replay_of_another(pilot: Path) -> None:
    path = next((pilot / "replays").glob(f"{OTHER}-*"))
    edit_json(path, tuple_id=RECOVERED)
    path.rename(path.with_name(f"{OTHER}-2.json"))


def other_time(pilot: Path) -> None:
    edit_json(next((pilot / "replays").glob(f"{OTHER}-*")), replayed_utc="2026-01-01T00:00:00.000000Z")


def other_output(pilot: Path) -> None:
    path = next((pilot / "replays").glob(f"{OTHER}-*"))
    replay = json.loads(path.read_bytes())
    replay["acceptance"]["checks"][0]["stdout_sha256"] = "0" * 64
    path.write_bytes(canonical_bytes(replay))


def older_replay(pilot: Path) -> None:
    path = next((pilot / "replays").glob(f"{OTHER}-*"))
    edit_json(path, format="roundkit-pilot-replay/1")
    path.rename(path.with_name(f"{OTHER}-1.json"))


def set_aside(pilot: Path) -> None:
    """Put an attempt that went wrong among the setup attempts, with another in its slot."""
    trial = trial_of(pilot, OTHER)
    shutil.copytree(trial, pilot / "setup" / "signature.guided-1")


def unchained(pilot: Path) -> None:
    """Make a trial anew, whole in itself."""
    edit_json(trial_of(pilot, OTHER) / "start.json", previous_sha256="0" * 64)
    rebind_alone(trial_of(pilot, OTHER))


def other_outcome(pilot: Path) -> None:
    path = trial_of(pilot, OTHER) / "record.json"
    record = json.loads(path.read_bytes())
    record["acceptance"]["outcome"] = "unavailable"
    path.write_bytes(canonical_bytes(record))


def in_agent(**changes: Any) -> Change:
    """Change what a record says of its agent."""

    def change(pilot: Path) -> None:
        path = trial_of(pilot, OTHER) / "record.json"
        record = json.loads(path.read_bytes())
        record["agent"].update(changes)
        path.write_bytes(canonical_bytes(record))

    return change


def more_tokens(pilot: Path) -> None:
    """Say that an agent used tokens of which its stream tells nothing."""
    path = trial_of(pilot, OTHER) / "record.json"
    record = json.loads(path.read_bytes())
    record["agent"]["usage"]["tokens"]["input"] = 5
    path.write_bytes(canonical_bytes(record))


def with_reason(pilot: Path) -> None:
    path = trial_of(pilot, OTHER) / "record.json"
    record = json.loads(path.read_bytes())
    record["acceptance"]["checks"][0]["reason"] = "for no reason"
    path.write_bytes(canonical_bytes(record))


def in_trial(name: str, content: bytes | None = None) -> Change:
    def change(pilot: Path) -> None:
        path = trial_of(pilot, OTHER) / name
        path.write_bytes(content if content is not None else path.read_bytes() + b"#")

    return change


def candidate_linked(pilot: Path) -> None:
    path = trial_of(pilot, OTHER) / "candidate/alerts.py"
    path.unlink()
    path.symlink_to("notify.py")


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (other_order, "plan | plan.json | the schedule is not the one that follows"),
        (lambda pilot: edit_json(pilot / "plan.json", schedule_sha256="0" * 64),
         "plan | plan.json | schedule_sha256"),
        (lambda pilot: (pilot / "plan.json").write_bytes(b"{}"), "files | plan.json | [malformed]"),
        (lambda pilot: (pilot / "inputs/tasks/signature/fixture/alerts.py").write_text("x"),
         "inputs | inputs/tasks/signature/fixture | tree digest"),
        (lambda pilot: (pilot / "inputs/variants/guided/guide").write_text("x"),
         "inputs | inputs/variants/guided/guide | SHA-256"),
        (lambda pilot: (pilot / "inputs/tasks/signature/hidden/behaviour/check.py").unlink(),
         "inputs | inputs/tasks/signature/hidden/behaviour | tree digest"),
        (lambda pilot: (pilot / "inputs/tools/more").write_text("x"),
         "inputs | inputs/tools/more | is no input that the plan binds"),
        (in_agent(exit_code=3), f"agents | {OTHER} | its process is completed"),
        (in_agent(ended_utc="2020-01-01T00:00:00.000000Z"), f"agents | {OTHER} | its agent did not run"),
        (in_agent(stdout={"sha256": "0" * 64, "bytes": 9, "kept_bytes": 9}),
         f"agents | {OTHER} | agent/stdout has "),
        (lambda pilot: edit_json(trial_of(pilot, OTHER) / "record.json", wall_ms=None),
         f"agents | {OTHER} | an agent without its time"),
        (more_tokens, f"agents | {OTHER} | its usage's tokens is input=5"),
        (with_reason, f"acceptance | {OTHER} | check "),
        (in_trial("candidate/alerts.py"), "archives | trials/"),
        (in_trial("candidate/new.py", b"x"), "archives | trials/"),
        (in_trial("agent/stdout"), "archives | trials/"),
        (candidate_linked, "archives | trials/"),
        (in_trial("record.json", b"{}"), "archives | trials/"),
        (lambda pilot: edit_json(trial_of(pilot, OTHER) / "record.json", provenance="model"),
         f"sameness | {OTHER} | provenance is model, recomputed scripted"),
        (lambda pilot: edit_json(trial_of(pilot, OTHER) / "record.json", failed_calls=0),
         f"calls | {OTHER} | record.json is 2 calls, 0 failed, recomputed 2 calls, 1 failed"),
        (no_replay, f"acceptance | {OTHER} | [not-replayed]"),
        (disagreeing, f"acceptance | {OTHER} | acceptance is "),
        (quietly_disagreeing, f"acceptance | {OTHER} | a replay says that it agrees"),
        (unreadable_replay, f"acceptance | replays/{OTHER}-2.json | [malformed]"),
        (other_time, f"acceptance | replays/{OTHER}-"),
        (other_output, f"acceptance | replays/{OTHER}-"),
        (older_replay, f"acceptance | replays/{OTHER}-1.json | is of roundkit-pilot-replay/1"),
        (replay_of_another, f"acceptance | replays/{OTHER}-2.json | is of no attempt"),
        (lambda pilot: (pilot / "trials/.note").write_text("mine"), "tuples | trials/.note | [extra]"),
        (lambda pilot: (pilot / "setup/link").symlink_to(trial_of(pilot, OTHER)),
         "tuples | setup/link | [extra]"),
        (unchained, "chain | "),
        (set_aside, "tuples | setup/signature.guided-1 | [renamed]"),
        (other_outcome, f"acceptance | {OTHER} | acceptance is unavailable"),
        (lambda pilot: (pilot / "findings.yaml").write_text("findings: 3\n"), "files | findings.yaml:"),
    ],
)  # fmt: skip
def test_p06_whatever_was_changed_is_found(drifted: Path, change: Change, wanted: str) -> None:
    assert audit_pilot(drifted).passed
    change(drifted)
    found = failed(audit_pilot(drifted))
    assert any(line.startswith(wanted) for line in found), found


def test_p05_evidence_that_is_there_and_wrong_fails_the_audit(eligible: Path) -> None:
    trial = trial_of(eligible, RECOVERED)
    edit_json(trial / "presentation.json", total_bytes=1)
    rebind(trial)
    found = failed(audit_pilot(eligible))
    assert any(line.startswith(f"eligibility | {RECOVERED} | presentation: disagrees") for line in found), (
        found
    )


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("packet/fingerprints.json", f"reviews | {RECOVERED} | review/packet/fingerprints.json is not there"),
        ("marks.jsonl", "reviews | trials/"),
        ("session.json", "reviews | trials/"),
        ("packet.json", "reviews | trials/"),
    ],
)
def test_p05_what_is_gone_of_a_review_is_missed(eligible: Path, name: str, wanted: str) -> None:
    assert "reviews" not in {check.name for check in audit_pilot(eligible).failures}
    (trial_of(eligible, RECOVERED) / "review" / name).unlink()
    found = failed(audit_pilot(eligible))
    assert any(line.startswith(wanted) for line in found), found


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [({"unclear": "nobody knows"}, "its review has a time and says why not"),
     ({"boot_id": "another"}, "its review's time is ")],
)  # fmt: skip
def test_p09_a_review_that_contradicts_itself_fails_the_audit(
    eligible: Path, changes: dict[str, str], wanted: str
) -> None:
    edit_json(trial_of(eligible, RECOVERED) / "review/review.json", **changes)
    found = failed(audit_pilot(eligible))
    assert any(line.startswith(f"reviews | {RECOVERED} | {wanted}") for line in found), found


def test_findings_of_people_are_checked_against_the_folder(drifted: Path) -> None:
    trial = trial_of(drifted, OTHER)
    artifact = trial.relative_to(drifted) / "calls.jsonl"
    finding = {
        "failure_class": "incorrect-proposal",
        "tuple_id": OTHER,
        "artifact": str(artifact),
        "sha256": digest_bytes((drifted / artifact).read_bytes()),
        "sentence": "The write lacks its content.",
        "reproduction": f"grep malformed PILOT_DIR/{artifact}",
        "maps_to": "a follow-up: say in the guide what a write takes",
    }
    path = drifted / "findings.yaml"
    path.write_text(json.dumps({"format": "roundkit-pilot-findings/1", "findings": [finding]}))
    report = audit_pilot(drifted)
    assert report.passed, failed(report)
    wrong = {**finding, "tuple_id": "signature.plain.9", "sha256": "0" * 64}
    path.write_text(json.dumps({"format": "roundkit-pilot-findings/1", "findings": [wrong]}))
    found = failed(audit_pilot(drifted))
    assert "findings | findings.yaml: findings[0] | the pilot has no tuple 'signature.plain.9'" in found
    assert any("SHA-256 is 000" in line for line in found), found


def test_nothing_found_in_a_folder_raises(tmp_path: Path) -> None:
    assert not audit_pilot(tmp_path / "nothing").passed
    (tmp_path / "plan.json").symlink_to(os.devnull)
    assert not audit_pilot(tmp_path).passed


@pytest.mark.parametrize(
    "change",
    [
        lambda pilot: forge_answer(pilot, {"result": {"content": [{"text": 5}, {"text": {}}]}}),
        lambda pilot: forge_answer(pilot, {"result": {"content": [{"text": '{"parts": [[]]}'}]}}),
        lambda pilot: forge_answer(pilot, {"result": [1, 2]}),
        lambda pilot: edit_line(
            trial_of(pilot, RECOVERED) / "calls.jsonl", 1, lambda call: call.update(request_line=99)
        ),
        lambda pilot: plan_without_its_task(pilot),
    ],
)
def test_nothing_that_somebody_forges_raises(drifted: Path, change: Change) -> None:
    change(drifted)
    rebind(trial_of(drifted, RECOVERED))
    report = audit_pilot(drifted)
    assert not report.passed


def forge_answer(pilot: Path, value: dict[str, Any]) -> None:
    trial = trial_of(pilot, RECOVERED)
    line = json.loads((trial / "calls.jsonl").read_bytes().splitlines()[0])["response_line"]

    def forged(answer: dict[str, Any]) -> None:
        answer.clear()
        answer.update({"jsonrpc": "2.0", "id": 3, **value})

    edit_message(trial / "wire.jsonl", line, forged)


def plan_without_its_task(pilot: Path) -> None:
    plan = json.loads((pilot / "plan.json").read_bytes())
    plan["tasks"][0]["task"]["id"] = "another"
    (pilot / "plan.json").write_bytes(canonical_bytes(plan))
