"""The audit agrees with every honest folder and names whatever was changed in it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console
from support.sample.lanes import NO_GAIN_LANES, Lane, Submission
from support.sample.plan import EPOCH
from support.sample_evidence import export_sample, sample_round

from roundkit.audit import AuditReport, audit_round, render
from roundkit.core.canonical import canonical_bytes, digest_bytes
from roundkit.core.errors import Refused
from roundkit.core.git import Repository, identity_environment


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("audit")
    return export_sample(base / "r01", sample_round(), base / "scratch")


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "r01"))


def failed(report: AuditReport) -> set[str]:
    return {check.name for check in report.failures}


def forge(folder: Path, name: str, change: Callable[[Any], object]) -> None:
    """Edit one record and mend every hash over it, as a forger with the tool would."""
    value = json.loads((folder / name).read_bytes())
    change(value)
    data = canonical_bytes(value)
    (folder / name).write_bytes(data)
    index = json.loads((folder / "index.json").read_bytes())
    for row in index["files"]:
        if row["path"] == name:
            row.update(size=len(data), sha256=digest_bytes(data))
    reseal(folder, index)


def reseal(folder: Path, index: Any) -> None:
    data = canonical_bytes(index)
    (folder / "index.json").write_bytes(data)
    (folder / "index.json.sha256").write_text(f"{digest_bytes(data)}  index.json\n")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fresh_standalone": True},
        {"lanes": NO_GAIN_LANES},
        {"lanes": (Lane("solo", (Submission(0.1),)),)},
        {"lanes": (Lane("silent", ()),)},
        {"rerun_gain": 0.0},
        {"forgeable": True, "provenance": "model", "harness": "claude"},
        {"counted": True},
    ],
    ids=[
        "standard",
        "fresh-standalone",
        "no-gain",
        "one-lane",
        "silent",
        "rerun-fails",
        "forgeable",
        "counted",
    ],
)
def test_n09_an_honest_round_passes(tmp_path: Path, options: dict[str, Any]) -> None:
    folder = export_sample(tmp_path / "r01", sample_round(**options), tmp_path / "scratch")
    report = audit_round(folder)
    assert report.passed, report.failures


def test_n09_tickets_that_the_deadline_left_unmeasured_need_no_check_of_the_machine(tmp_path: Path) -> None:
    left = tuple(Submission(late=True) for _ in range(8))
    sample = sample_round(lanes=(Lane("L1", (Submission(0.1),)), Lane("L2", left)))
    assert sample.plan.aa_interval + len(sample.plan.device_sets) < len(left)
    folder = export_sample(tmp_path / "r01", sample, tmp_path / "scratch")
    report = audit_round(folder)
    assert report.passed, report.failures


@pytest.mark.parametrize(
    ("where", "change"),
    [
        ("processes", lambda counted: counted["processes"][1].update(instructions=1)),
        ("total", lambda counted: counted.update(total=counted["total"] - 1)),
        ("tool", lambda counted: counted.update(tool="perf")),
        ("nothing", None),
    ],
)
def test_m13_n09_a_count_that_does_not_add_up_is_named(
    tmp_path: Path, where: str, change: Callable[[Any], object] | None
) -> None:
    folder = export_sample(tmp_path / "r01", sample_round(counted=True), tmp_path / "scratch")
    name = min(path.name for path in (folder / "experiments").iterdir())

    def forged(record: Any) -> None:
        trial = record["trials"][2]
        if change is None:
            del trial["counted"]
        else:
            change(trial["counted"])

    forge(folder, f"experiments/{name}", forged)
    found = [check for check in audit_round(folder).failures if check.name == "counts"]
    assert len(found) == 1, where
    assert "trial 2" in found[0].where


def test_n09_the_expected_digest_is_held_against_the_index(pristine: Path) -> None:
    digest = audit_round(pristine).digest
    assert audit_round(pristine, expect=digest).passed
    assert failed(audit_round(pristine, expect="0" * 64)) == {"index"}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_n09_any_flipped_byte_is_named(pristine: Path, data: st.DataObject) -> None:
    files = sorted(path for path in pristine.rglob("*") if path.is_file())
    victim = data.draw(st.sampled_from(files), label="file")
    before = victim.read_bytes()
    position = data.draw(st.integers(0, len(before) - 1), label="position")
    flipped = data.draw(st.integers(1, 255), label="bits")
    try:
        victim.write_bytes(before[:position] + bytes([before[position] ^ flipped]) + before[position + 1 :])
        report = audit_round(pristine)
    finally:
        victim.write_bytes(before)
    assert not report.passed
    name = victim.relative_to(pristine).as_posix()
    assert any(check.where.startswith(name.removesuffix(".sha256")) for check in report.failures)


@pytest.mark.parametrize("name", ["round-ledger.json", "index.json", "index.json.sha256", "events.jsonl"])
def test_n09_a_removed_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert [(check.name, check.where) for check in audit_round(folder).failures] == [("files", name)]


def test_n09_swapped_files_are_named(folder: Path) -> None:
    first, second, *_ = sorted((folder / "experiments").iterdir())
    keep = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(keep)
    where = {check.where for check in audit_round(folder).failures}
    assert {f"experiments/{first.name}", f"experiments/{second.name}"} <= where


def test_n09_an_added_file_is_named(folder: Path) -> None:
    name = f"blobs/{'0' * 64}"
    (folder / name).write_bytes(b"more")
    assert [(check.name, check.where) for check in audit_round(folder).failures] == [("files", name)]


def set_at(*path: str | int, value: object) -> Callable[[Any], None]:
    def change(record: Any) -> None:
        for step in path[:-1]:
            record = record[step]
        record[path[-1]] = value

    return change


FORGERIES = {
    "gain of a ticket": ("round-ledger.json", set_at("tickets", 0, "verdict", "gain", value=0.2), "verdicts"),
    "verdict of a ticket": (
        "round-ledger.json",
        set_at("tickets", 3, "verdict", "verdict", value="pass"),
        "verdicts",
    ),
    "sentence of a ticket": (
        "round-ledger.json",
        set_at("tickets", 0, "verdict", "sentence", value="splendid"),
        "verdicts",
    ),
    "gain of the round": ("round-ledger.json", set_at("gain", value=0.5), "result"),
    "head": ("round-ledger.json", set_at("head", value="0" * 40), "result"),
    "statement": ("round-ledger.json", set_at("statement", value="accepted"), "result"),
    "order": ("round-ledger.json", set_at("order", value=["L1", "L2", "L3"]), "selection and order"),
    "kept step": ("round-ledger.json", set_at("composition", 2, "kept", value=True), "composition"),
    "ratio": ("round-ledger.json", set_at("composition", 1, "ratio", "value", value=1.5), "ratios"),
    "rerun": ("round-ledger.json", set_at("rerun", 0, "verdict", "gain", value=0.4), "close verdicts"),
    "lane outcome": ("round-ledger.json", set_at("lanes", 3, "outcome", value="composed"), "lane outcomes"),
    "A/A check": ("round-ledger.json", set_at("aa_checks", 0, "z", value=0.0), "A/A checks"),
    "path of a candidate": (
        "round-ledger.json",
        set_at("tickets", 0, "manifest", "entries", 0, "path", value="bench/driver.py"),
        "scope",
    ),
    "intake after the deadline": (
        "round-ledger.json",
        set_at("tickets", 0, "intake_utc", value="2026-03-02T10:45:00.000000Z"),
        "deadlines",
    ),
    "identity of an attempt": (
        "round-ledger.json",
        set_at("attempts", 0, "binding", "plan_digest", value="0" * 64),
        "attempts",
    ),
    "ordinal of an attempt": (
        "round-ledger.json",
        set_at("attempts", 4, "binding", "ordinal", value=3),
        "attempts",
    ),
    "run of an attempt": (
        "round-ledger.json",
        set_at("attempts", 4, "binding", "run_id", value="run-1/1"),
        "attempts",
    ),
    "charge of an attempt": (
        "round-ledger.json",
        set_at("attempts", 0, "binding", "worst_case", "micro_usd", value=1),
        "attempts",
    ),
    "a crash that cost nothing": (
        "round-ledger.json",
        set_at("attempts", 3, "phase", value="cancelled"),
        "attempts",
    ),
    "an attempt after the deadline": (
        "round-ledger.json",
        set_at("attempts", 0, "claimed_utc", value="2026-03-02T10:30:00.000000Z"),
        "attempts",
    ),
    "a dropped attempt": ("round-ledger.json", lambda ledger: ledger["attempts"].pop(), "lane outcomes"),
    "cost of a lane": ("round-ledger.json", set_at("lanes", 0, "cost_micro_usd", value=1), "lane outcomes"),
    "revealed secret": ("secret.json", set_at("secret_hex", value="ab" * 32), "secret"),
    "minimum gain of the run spec": ("run-spec.json", set_at("gates", "min_gain", value=0.5), "run spec"),
    "a command taken out": ("round-ledger.json", set_at("tickets", 0, "commands", value=[]), "commands"),
    "a command that failed": (
        "round-ledger.json",
        set_at("tickets", 0, "commands", 0, "exit_code", value=1),
        "commands",
    ),
    "order of attempts": ("round-ledger.json", lambda ledger: ledger["attempts"].reverse(), "attempts"),
    "when the round was opened": (
        "round-ledger.json",
        set_at("opened_utc", value="2026-03-02T08:00:00.000000Z"),
        "plan digest",
    ),
    "deadline of the plan": (
        "round-plan.json",
        set_at("deadline_utc", value="2026-03-02T12:00:00.000000Z"),
        "plan digest",
    ),
}


@pytest.mark.parametrize("case", FORGERIES)
def test_n09_an_edited_record_is_caught_though_every_hash_was_mended(folder: Path, case: str) -> None:
    name, change, family = FORGERIES[case]
    forge(folder, name, change)
    report = audit_round(folder)
    assert family in failed(report), report.checks
    assert not any(check.name == "files" for check in report.failures)


EXPERIMENT_FORGERIES = {
    "sample": (lambda row: row["trials"][5]["metrics"].__setitem__("latency_ms", [1, 1, 1]), "medians"),
    "value": (lambda row: row["trials"][5].__setitem__("value", 9.0), "medians"),
    "seed": (lambda row: row["trials"][5]["planned"].__setitem__("seed", 7), "schedule"),
    "dropped trial": (lambda row: row["trials"].pop(), "schedule"),
    "files changed": (
        lambda row: row["candidate"].__setitem__("files_sha256_after", "0" * 64),
        "sides",
    ),
    "lease": (
        lambda row: row["lease"].__setitem__("acquired_utc", "2026-03-02T09:00:00.000000Z"),
        "leases",
    ),
    "baseline": (lambda row: row["baseline"].__setitem__("commit", "0" * 40), "verdicts"),
    "another device": (lambda row: row["devices_before"][0].__setitem__("device", "99"), "devices"),
    "a device that did not qualify": (
        lambda row: row["devices_after"][0].__setitem__("problem", "it is hot"),
        "devices",
    ),
    "another machine": (lambda row: row.__setitem__("machine", "another one"), "devices"),
    "the driver's run": (lambda row: row["trials"][3]["executions"].pop("driver"), "confinement"),
    "a driver that failed": (set_at("trials", 3, "executions", "driver", "exit_code", value=1), "ends"),
    "a worker that crashed": (
        lambda row: row["trials"][3]["executions"]["worker"].update(
            exit_code=None, signal=11, end_reason="signal"
        ),
        "ends",
    ),
    "a crash of nobody": (set_at("trials", 3, "problem", value="candidate-crashed"), "ends"),
}


@pytest.mark.parametrize("case", EXPERIMENT_FORGERIES)
def test_n09_an_edited_experiment_is_caught_though_every_hash_was_mended(folder: Path, case: str) -> None:
    change, family = EXPERIMENT_FORGERIES[case]
    ledger = json.loads((folder / "round-ledger.json").read_bytes())
    experiment = ledger["tickets"][4]["experiments"][-1]
    forge(folder, f"experiments/{experiment}.json", change)
    assert family in failed(audit_round(folder))


def test_n09_a_deleted_experiment_is_missed(folder: Path) -> None:
    victim = next(path for path in (folder / "experiments").iterdir() if path.name.startswith("r01-L2"))
    victim.unlink()
    index = json.loads((folder / "index.json").read_bytes())
    index["files"] = [row for row in index["files"] if row["path"] != f"experiments/{victim.name}"]
    reseal(folder, index)
    assert "verdicts" in failed(audit_round(folder))


def reuse_for_the_rerun(ledger: Any) -> None:
    """Let the ticket's own measurement stand as the fresh rerun, in everything that follows from it."""
    ticket, rerun = ledger["tickets"][0], ledger["rerun"][0]
    rerun.update(experiment=ticket["experiments"][-1], verdict=ticket["verdict"])
    ledger["gain"] = ticket["verdict"]["gain"]


def reuse_for_the_fallback(ledger: Any) -> None:
    ticket = next(row for row in ledger["tickets"] if row["ticket"] == ledger["composition"][0]["ticket"])
    rerun = ledger["rerun"][1]
    rerun.update(experiment=ticket["experiments"][-1], verdict=ticket["verdict"])
    ledger["gain"] = ticket["verdict"]["gain"]


def reuse_for_an_aa_check(ledger: Any) -> None:
    ledger["aa_checks"][1]["experiment"] = ledger["aa_checks"][0]["experiment"]


@pytest.mark.parametrize(
    ("options", "change"),
    [
        ({"lanes": (Lane("solo", (Submission(0.1),)),)}, reuse_for_the_rerun),
        ({"rerun_gain": 0.0}, reuse_for_the_fallback),
        ({}, reuse_for_an_aa_check),
        ({}, set_at("composition", 0, "experiment", value="rerun.1")),
        ({}, set_at("composition", 1, "experiment", value="rerun.1")),
        ({}, set_at("tickets", 0, "experiments", 0, value="rerun.1")),
    ],
    ids=["rerun", "fallback", "aa", "step 1", "step 2", "ticket"],
)
def test_n09_a_reused_experiment_is_no_fresh_one(
    tmp_path: Path, options: dict[str, Any], change: Callable[[Any], None]
) -> None:
    folder = export_sample(tmp_path / "r01", sample_round(**options), tmp_path / "scratch")
    assert audit_round(folder).passed
    forge(folder, "round-ledger.json", change)
    assert "roles" in failed(audit_round(folder))


@pytest.mark.parametrize("key", ["purpose", "subject", "lane"])
@pytest.mark.parametrize(
    "subject", ["ticket", "step-2", "alone", "rerun", "fallback", "aa-1"], ids=lambda name: name
)
def test_n09_an_experiment_for_something_else_is_named(tmp_path: Path, subject: str, key: str) -> None:
    options: dict[str, Any] = {"fresh_standalone": True, "rerun_gain": 0.0}
    folder = export_sample(tmp_path / "r01", sample_round(**options), tmp_path / "scratch")
    prefix = "r01-L1" if subject == "ticket" else subject
    victim = min(path for path in (folder / "experiments").iterdir() if path.name.startswith(prefix))
    other = {"purpose": "ticket" if subject != "ticket" else "rerun", "subject": "else", "lane": "L4"}
    forge(folder, f"experiments/{victim.name}", lambda record: record.update({key: other[key]}))
    found = failed(audit_round(folder))
    assert "roles" in found


def drop_file(folder: Path, name: str) -> None:
    (folder / name).unlink()
    index = json.loads((folder / "index.json").read_bytes())
    index["files"] = [row for row in index["files"] if row["path"] != name]
    reseal(folder, index)


def forge_events(folder: Path, keep: Callable[[Any], bool]) -> None:
    lines = (folder / "events.jsonl").read_bytes().splitlines(keepends=True)
    data = b"".join(line for line in lines if keep(json.loads(line)))
    (folder / "events.jsonl").write_bytes(data)
    index = json.loads((folder / "index.json").read_bytes())
    row = next(row for row in index["files"] if row["path"] == "events.jsonl")
    row.update(size=len(data), sha256=digest_bytes(data))
    reseal(folder, index)


def leave_out_a_ticket(folder: Path) -> None:
    """Leave a failing ticket out of everything that names it, but for the numbers of the others."""
    ledger = json.loads((folder / "round-ledger.json").read_bytes())
    victim = next(row for row in ledger["tickets"] if row["verdict"] and row["verdict"]["verdict"] == "fail")
    forge(folder, "round-ledger.json", lambda text: _without(text, victim["ticket"]))
    for experiment in victim["experiments"]:
        drop_file(folder, f"experiments/{experiment}.json")
    forge_events(folder, lambda event: victim["ticket"] not in json.dumps(event))


def _without(ledger: Any, ticket: str) -> None:
    ledger["tickets"] = [row for row in ledger["tickets"] if row["ticket"] != ticket]
    for lane in ledger["lanes"]:
        lane["tickets"] = [name for name in lane["tickets"] if name != ticket]


def leave_out_the_checks(folder: Path) -> None:
    ledger = json.loads((folder / "round-ledger.json").read_bytes())
    for check in ledger["aa_checks"]:
        drop_file(folder, f"experiments/{check['experiment']}.json")
    forge(folder, "round-ledger.json", lambda text: text.update(aa_checks=[]))
    forge_events(folder, lambda event: "aa-" not in json.dumps(event))


def raise_sequences(folder: Path) -> None:
    def change(ledger: Any) -> None:
        for ticket in ledger["tickets"]:
            ticket["sequence"] += 100

    forge(folder, "round-ledger.json", change)


def pretend_a_resume(folder: Path) -> None:
    forge(folder, "round-ledger.json", lambda text: text["aa_checks"][1].update(resumes=True))


@pytest.mark.parametrize(
    ("forgery", "named"),
    [
        (leave_out_a_ticket, "sequence"),
        (leave_out_the_checks, "A/A interval"),
        (raise_sequences, "sequence"),
        (pretend_a_resume, "events"),
        (lambda folder: forge_events(folder, lambda _event: False), "events"),
        (lambda folder: forge_events(folder, lambda event: event["kind"] != "verdict"), "events"),
    ],
    ids=["a-ticket", "the-aa-checks", "sequences", "a-resume", "all-events", "verdict-events"],
)
def test_n09_what_was_left_out_is_missed(folder: Path, forgery: Callable[[Path], None], named: str) -> None:
    assert audit_round(folder).passed
    forgery(folder)
    assert named in failed(audit_round(folder))


def test_n09_events_that_follow_from_records_cannot_be_left_out(folder: Path) -> None:
    whole = (folder / "events.jsonl").read_bytes()
    kinds = {json.loads(line)["kind"] for line in whole.splitlines()}
    assert len(kinds) >= 9
    for kind in sorted(kinds - {"closed"}):
        forge_events(folder, lambda event, kind=kind: event["kind"] != kind)
        assert "events" in failed(audit_round(folder)), kind
        (folder / "events.jsonl").write_bytes(whole)


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("verdict", "gain", 0.9),
        ("verdict", "reason", "none at all"),
        ("intake", "lane", "L9"),
        ("intake", "state", "rejected"),
        ("aa", "passed", False),
        ("experiment-started", "purpose", "rerun"),
        ("attempt-reserved", "run_id", "another"),
        ("attempt-reserved", "ordinal", 7),
        ("closed", "head", "0" * 40),
        ("closed", "kind", "opened"),
    ],
)
def test_n09_a_log_that_tells_something_else_is_named(
    folder: Path, kind: str, field: str, value: object
) -> None:
    lines = [json.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]
    event = next((line for line in lines if line["kind"] == kind), None)
    if event is None:
        event = {"kind": kind, "time": lines[-1]["time"], "fields": {"experiment": "aa-1.1"}}
        lines.append(event)
    (event if field == "kind" else event["fields"])[field] = value
    data = b"".join(canonical_bytes(line) + b"\n" for line in lines)
    (folder / "events.jsonl").write_bytes(data)
    index = json.loads((folder / "index.json").read_bytes())
    row = next(row for row in index["files"] if row["path"] == "events.jsonl")
    row.update(size=len(data), sha256=digest_bytes(data))
    reseal(folder, index)
    assert "log" in failed(audit_round(folder))


def test_n09_the_chain_of_rounds_is_followed(tmp_path: Path) -> None:
    first = sample_round()
    export_sample(tmp_path / "rounds" / "r01", first, tmp_path / "scratch")
    digest = audit_round(tmp_path / "rounds" / "r01").digest
    options: dict[str, Any] = {
        "round_id": "r02", "incumbent": first.ledger.head, "opened": EPOCH + timedelta(days=1),
    }  # fmt: skip
    second = sample_round(**options)
    linked = export_sample(tmp_path / "rounds" / "r02", second, tmp_path / "scratch", previous=digest)
    assert audit_round(linked).passed
    shutil.rmtree(linked)
    unlinked = export_sample(tmp_path / "rounds" / "r02", second, tmp_path / "scratch")
    assert failed(audit_round(unlinked)) == {"chain"}
    shutil.rmtree(unlinked)
    wrong = export_sample(tmp_path / "rounds" / "r02", second, tmp_path / "scratch", previous="0" * 64)
    assert failed(audit_round(wrong)) == {"chain"}


@pytest.mark.parametrize("evidence", [None, "evidence/demo/rounds/r01/round-ledger.json"])
def test_n09_an_owner_may_start_from_a_commit_of_their_own_and_the_audit_says_so(
    tmp_path: Path, evidence: str | None
) -> None:
    export_sample(tmp_path / "rounds" / "r01", sample_round(), tmp_path / "scratch")
    digest = audit_round(tmp_path / "rounds" / "r01").digest
    second = sample_round(
        round_id="r02", incumbent="c" * 40, opened=EPOCH + timedelta(days=1), incumbent_evidence=evidence
    )
    linked = export_sample(tmp_path / "rounds" / "r02", second, tmp_path / "scratch", previous=digest)
    report = audit_round(linked)
    if evidence is None:
        assert report.passed
        chain = next(check for check in report.checks if check.name == "chain")
        assert (
            chain.detail == "follows r01, but starts from an incumbent that no round made, as its plan says"
        )
    else:  # the plan says that r01 made it
        assert failed(report) == {"chain"}


def test_what_is_no_repository_is_refused_and_blames_no_evidence(tmp_path: Path) -> None:
    folder = export_sample(tmp_path / "r01", sample_round(), tmp_path / "scratch")
    for place in (tmp_path / "none", tmp_path, folder / "index.json"):
        with pytest.raises(Refused, match="no-repository"):
            audit_round(folder, repository=place)


def test_the_repository_is_compared_and_not_written_to(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.mkdir()
    repository = Repository(program)
    repository.git("init", "--quiet", "--initial-branch=main")
    who = identity_environment("someone", "someone@localhost", "2026-01-01T00:00:00Z")
    repository.git("commit", "--quiet", "--allow-empty", "-m", "start", env=who)
    stranger = export_sample(tmp_path / "r01", sample_round(), tmp_path / "scratch")
    assert failed(audit_round(stranger, repository=program)) == {"repository"}
    head = repository.resolve("HEAD")
    options: dict[str, Any] = {"round_id": "r02", "campaign_id": "other", "incumbent": head}
    related = export_sample(tmp_path / "r02", sample_round(**options), tmp_path / "scratch")
    before = sorted(path for path in program.rglob("*"))
    assert {"incumbent", "candidate trees", "commits"} <= failed(audit_round(related, repository=program))
    assert sorted(path for path in program.rglob("*")) == before


def test_an_audit_prints_hostile_text_inert(tmp_path: Path) -> None:
    text = {"entry": "[bold]x[/bold]\x1b[31m", "detail": "\x1b]0;owned\x07"}
    folder = export_sample(tmp_path / "r01", sample_round(text=text), tmp_path / "scratch")
    (folder / "ev\x1b[31mil").write_bytes(b"")
    console = Console(width=200, record=True, force_terminal=False)
    render(audit_round(folder), console)
    assert "\x1b" not in console.export_text()
    assert audit_round(folder).to_json_value()["passed"] is False


def test_m05_selected_tickets_stand_beside_what_selection_leaves_of_them(pristine: Path) -> None:
    rows = [check for check in audit_round(pristine).checks if check.name == "selection"]
    assert rows
    for row in rows:
        measured, corrected = map(float, re.findall(r"(-?[\d.]+) %", row.detail))
        assert 0.0 <= corrected <= measured


def test_k02_a_late_record_is_in_the_log_and_nothing_rests_on_it(folder: Path) -> None:
    experiment = sorted((folder / "experiments").iterdir())[0]
    late = json.loads(experiment.read_bytes())
    late["detail"] = "came in late"
    data = canonical_bytes(late)
    name = f"duplicates/{digest_bytes(data)}.json"
    (folder / "duplicates").mkdir()
    (folder / name).write_bytes(data)
    index = json.loads((folder / "index.json").read_bytes())
    row = {"path": name, "size": len(data), "sha256": digest_bytes(data)}
    index["files"] = sorted([*index["files"], row], key=lambda one: str(one["path"]))
    reseal(folder, index)
    assert failed(audit_round(folder)) == {"events"}

    events = (folder / "events.jsonl").read_bytes().splitlines()
    last = json.loads(events[-1])
    fields = {"experiment": late["experiment_id"], "outcome": late["outcome"], "sha256": digest_bytes(data)}
    events.append(canonical_bytes({**last, "kind": "late-record", "fields": fields}))
    log = b"".join(line + b"\n" for line in events)
    (folder / "events.jsonl").write_bytes(log)
    for one in index["files"]:
        if one["path"] == "events.jsonl":
            one.update(size=len(log), sha256=digest_bytes(log))
    reseal(folder, index)
    assert failed(audit_round(folder)) == set()
