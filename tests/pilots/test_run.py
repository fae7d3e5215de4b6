"""Running tuples: real agents behind their boundary, every end kept, no slot used twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.command_line import run_roundkit
from support.pilots import MEND, calls_of, record_of, small

from roundkit.audit import audit_pilot
from roundkit.core.canonical import digest_bytes, digest_file
from roundkit.core.errors import Refused
from roundkit.evidence.pilot_reader import PilotReader
from roundkit.models.pilot_plan import PairedPlan
from roundkit.models.pilot_trial import Presentation, TrialStart
from roundkit.pilots.cohort import run_cohort, run_setup, standing
from roundkit.pilots.folder import PilotFolder, slot_place
from roundkit.pilots.replay import replay
from roundkit.pilots.trial import Trial
from roundkit.rules.pilot_calls import checked_calls
from roundkit.rules.pilot_matrix import matrix_findings
from roundkit.rules.pilot_reading import bind
from roundkit.rules.pilot_wire import message_of, presentation_of, read_wire

WAIT_S = 60.0


def trials(folder: PilotFolder) -> list[Path]:
    return sorted(folder.trials.iterdir())


def await_state(what: object, seconds: float = WAIT_S) -> None:
    """Wait for a state; the limit is for a test that broke."""
    until = time.monotonic() + seconds
    while not what():  # type: ignore[operator]
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_tuple_leaves_everything_that_it_takes_to_judge_it(open_folder: Path) -> None:
    folder, plan = small(open_folder, MEND + 'print("done")').freeze()
    records = run_cohort(folder, plan)
    assert [(record.process, record.order) for record in records] == [("completed", 1), ("completed", 2)]
    for trial, record in zip(trials(folder), records, strict=True):
        assert record_of(trial) == record
        assert record.acceptance is not None
        assert record.acceptance.outcome == "passed"
        assert (record.calls, record.failed_calls, record.truncated) == (2, 0, ())
        assert (trial / "interventions.jsonl").read_bytes() == b""
        assert (trial / "agent" / "stdout").read_text() == "done\n"
        bound = {file.path: file.sha256 for file in record.files}
        found = {path.relative_to(trial).as_posix() for path in trial.rglob("*") if path.is_file()}
        assert found - bound.keys() == {"record.json"}
        assert all(digest_bytes((trial / path).read_bytes()) == sha256 for path, sha256 in bound.items())
        prompt, wire = ((trial / name).read_bytes() for name in ("prompt.md", "wire.jsonl"))
        shown = Presentation.from_bytes((trial / "presentation.json").read_bytes(), place="")
        assert shown == presentation_of(record.tuple_id or "", prompt, wire)
        diff = (trial / "candidate.diff").read_text()
        assert "+    return (items + size - 1) // size" in diff
        assert not any(word in diff for word in ("plain", "guided", str(open_folder)))
    guided, plain = sorted(trials(folder), key=lambda trial: "plain" in trial.name)
    assert (plain / "prompt.md").read_bytes() == (folder.root / "inputs/tasks/off-by-one/prompt").read_bytes()
    assert (guided / "prompt.md").read_bytes().endswith((plain / "prompt.md").read_bytes())
    assert matrix_findings(plan, standing(folder, plan).attempts, plan_sha256=plan.digest()) == []
    assert {path.name for path in folder.work.iterdir()} <= {"run.lock", "run.holder"}
    assert run_cohort(folder, plan) == []


def test_an_agent_sees_neither_the_candidate_nor_the_pilot_nor_a_hidden_file(open_folder: Path) -> None:
    body = f"""
print(json.dumps({{"cwd": os.getcwd(), "here": os.listdir("."), "pilot": sorted(os.listdir("/pilot")),
                  "host": os.path.exists({str(open_folder)!r}), "prompt": prompt}}))
"""
    folder, plan = small(open_folder, body).freeze()
    run_cohort(folder, plan, only="off-by-one.plain.1")
    (trial,) = trials(folder)
    seen = json.loads((trial / "agent" / "stdout").read_text())
    assert (seen["cwd"], seen["here"], seen["host"]) == ("/pilot/scratch", [], False)
    assert seen["pilot"] == ["gateway", "scratch", "scripts"]
    assert seen["prompt"].encode() == (trial / "prompt.md").read_bytes()


def test_every_end_of_an_agent_is_kept_with_its_candidate_and_the_cohort_goes_on(open_folder: Path) -> None:
    body = (
        MEND
        + """
if "plain" in label:
    raise RuntimeError("the agent broke")
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True)
time.sleep(3600)
"""
    )
    folder, plan = small(open_folder, body, trial_s=8).freeze()
    records = {record.tuple_id: record for record in run_cohort(folder, plan)}
    crashed, hung = records["off-by-one.plain.1"], records["off-by-one.guided.1"]
    assert (crashed.process, hung.process) == ("error", "timeout")
    assert "the agent broke" in crashed.detail
    for record in records.values():
        assert record.agent is not None
        assert record.acceptance is not None
        assert record.acceptance.outcome == "passed"
        assert record.calls == 2
    assert not processes_in(open_folder)


def test_output_that_was_cut_is_said_to_be(open_folder: Path) -> None:
    files = small(open_folder, 'print("x" * 5000); print("y" * 5000, file=sys.stderr)')
    files.edit(lambda content: content["policy"]["limits"].update(output_bytes=1000))
    folder, plan = files.freeze()
    record = run_cohort(folder, plan, only="off-by-one.plain.1")[0]
    assert record.truncated == ("agent/stdout", "agent/stderr")
    assert "agents" not in {check.name for check in audit_pilot(folder.root).failures}


def test_what_is_no_text_on_standard_error_is_kept_and_audits(open_folder: Path) -> None:
    folder, plan = small(open_folder, 'sys.stderr.buffer.write(b"\\xff" * 9)').freeze()
    record = run_cohort(folder, plan, only="off-by-one.plain.1")[0]
    assert record.agent is not None
    assert (record.agent.stderr.bytes, record.agent.stderr.kept_bytes) == (9, 9)
    assert "agents" not in {check.name for check in audit_pilot(folder.root).failures}


def test_a_setup_attempt_is_kept_outside_the_matrix(open_folder: Path) -> None:
    folder, plan = small(open_folder).freeze()
    for number in (1, 2):
        record = run_setup(folder, plan, "off-by-one", "plain")
        assert (record.tuple_id, record.order, record.attempt) == (None, None, f"off-by-one.plain-{number}")
        assert record_of(folder.setup / record.attempt) == record
    found = standing(folder, plan)
    assert (len(found.open), len(found.setup), found.attempts) == (2, 2, ())
    with pytest.raises(Refused, match="unknown-tuple"):
        run_setup(folder, plan, "off-by-one", "nothing")


def test_a_slot_is_used_once_whatever_came_of_it(open_folder: Path) -> None:
    folder, plan = small(open_folder, "sys.exit(3)").freeze()
    assert run_cohort(folder, plan, only="off-by-one.plain.1")[0].process == "error"
    with pytest.raises(Refused, match="slot-used"):
        run_cohort(folder, plan, only="off-by-one.plain.1")
    with pytest.raises(Refused, match="unknown-tuple"):
        run_cohort(folder, plan, only="off-by-one.plain.2")
    run_cohort(folder, plan)
    assert len(trials(folder)) == 2


ALLOWED = {"by": "Ada", "micro_usd": 1000, "until_utc": "2999-01-01T00:00:00Z", "models": ["some-model"]}


def paid_pilot(root: Path, allowed: dict[str, object] | None) -> tuple[PilotFolder, PairedPlan]:
    """Freeze a pilot of agents that can spend, under this authorization."""
    files = small(root)

    def paid(content: dict[str, dict[str, object]]) -> None:
        content["model"].update(model="some-model")
        content["model"]["agent"].update(provenance="model")  # type: ignore[attr-defined]
        content["policy"].update(caps={"micro_usd": 100})
        if allowed is not None:
            content.update(authorization=allowed)

    files.edit(paid)
    return files.freeze()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, "authorizes nobody"),
        ({"until_utc": "2020-01-01T00:00:00Z"}, "ended at"),
        ({"models": ["another"]}, "not among the authorized"),
        ({"micro_usd": 99}, "one more trial may cost 100"),
    ],
)
def test_without_an_authorization_a_pilot_that_can_spend_is_blocked_and_says_so(
    open_folder: Path, change: dict[str, object], why: str
) -> None:
    folder, plan = paid_pilot(open_folder, {**ALLOWED, **change} if change else None)
    for attempt in (lambda: run_cohort(folder, plan), lambda: run_setup(folder, plan, "off-by-one", "plain")):
        with pytest.raises(Refused, match=why) as refused:
            attempt()
        assert refused.value.refusals[0].code == "not-authorized"
    assert not trials(folder)
    assert why in (standing(folder, plan).blocked or "")
    if not change:
        assert "blocked" in cli("status", folder.root)
        assert "not-authorized" in cli("run", folder.root, expect=3)


def test_an_authorization_that_ends_while_an_agent_is_made_ready_uses_no_slot(open_folder: Path) -> None:
    folder, plan = paid_pilot(open_folder, {**ALLOWED, "until_utc": "2020-01-01T00:00:00Z"})
    trial = Trial(folder, plan, slot_place(folder, plan.schedule[0]))  # as if it had held until here
    with pytest.raises(Refused, match="ended at") as refused:
        trial.run()
    assert refused.value.refusals[0].code == "not-authorized"
    assert not trials(folder)


PROVIDER = """
print(json.dumps({"type": "system", "subtype": "init", "session_id": "s-1", "model": "model-a"}), flush=True)
print(json.dumps({"type": "result", "subtype": "success", "is_error": True, "session_id": "s-1",
                  "result": "API Error: %d overloaded", "usage": {"input_tokens": 5, "output_tokens": 0},
                  "total_cost_usd": 0.001, "modelUsage": {}}), flush=True)
sys.exit(1)
"""


@pytest.mark.parametrize("status", [429, 500])
def test_p04_a_providers_error_is_kept_and_no_other_model_is_asked(open_folder: Path, status: int) -> None:
    files = small(open_folder, MEND + PROVIDER % status)

    def told(content: dict[str, dict[str, dict[str, dict[str, object]]]]) -> None:
        content["model"].update(model="model-a")  # type: ignore[arg-type]
        content["model"]["agent"]["command"]["usage"] = {
            "take": "last", "rows": {"type": "result"}, "usd": "total_cost_usd", "model": "model",
            "input": "usage.input_tokens", "failed": {"type": "result", "is_error": "true"},
        }  # fmt: skip

    files.edit(told)
    folder, plan = files.freeze()
    records = run_cohort(folder, plan)
    assert [record.process for record in records] == ["error", "error"]
    for record in records:
        assert record.agent is not None
        assert record.agent.end_reason == "provider-error"
        assert "provider-error" in record.detail
        assert (record.agent.usage.model, record.agent.usage.micro_usd) == ("model-a", 1000)
        assert record.acceptance is not None
        assert record.calls == 2
    argv = {record.agent.argv_sha256 for record in records if record.agent is not None}
    assert len(argv) == len(records)  # each tuple's own label, and nothing else, differs
    assert run_cohort(folder, plan) == []


CLAUDE = """#!/usr/bin/python3
import json, sys
if sys.argv[1:] == ["--version"]:
    print("9.9.1 (Claude Code)")
elif "--help" in sys.argv:
    print("--output-format --verbose --model --permission-mode --strict-mcp-config --setting-sources")
    print("--allowedTools --mcp-config --tools")
else:
    asked = sys.argv[sys.argv.index("--model") + 1]
    servers = json.load(open(sys.argv[sys.argv.index("--mcp-config") + 1]))["mcpServers"]
    own = sys.argv[sys.argv.index("--tools") + 1]
    told = {"servers": list(servers), "tools": own, "prompt": sys.stdin.read()}
    print(json.dumps({"type": "system", "session_id": "12345678", "model": asked, "told": told}))
    print(json.dumps({"type": "result", "subtype": "success", "is_error": True, "result": "API Error: 500",
                      "total_cost_usd": 0.002}))
"""


def test_p04_the_same_from_the_driver_of_a_known_tool(open_folder: Path) -> None:
    files = small(open_folder)
    stub = open_folder / "claude"
    stub.write_text(CLAUDE)
    stub.chmod(0o755)

    def known(content: dict[str, dict[str, object]]) -> None:
        agent = {"provenance": "stub", "executable": str(stub.resolve())}
        content["model"] = {
            "harness": "claude",
            "model": "model-a",
            "token_accounting": "cli",
            "agent": agent,
        }

    files.edit(known)
    folder, plan = files.freeze()
    records = run_cohort(folder, plan)
    for trial, record in zip(trials(folder), records, strict=True):
        assert record.agent is not None
        assert (record.process, record.detail) == ("error", "provider-error: API Error: 500")
        assert (record.agent.cli_version, record.agent.usage.model) == ("9.9.1 (Claude Code)", "model-a")
        first, _ = (trial / "agent" / "stdout").read_text().splitlines()
        told = json.loads(first)["told"]
        assert (told["servers"], told["tools"]) == (["task"], "")
        assert told["prompt"].encode() == (trial / "prompt.md").read_bytes()


def test_a_key_that_an_agent_sends_through_the_gateway_is_in_no_file(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-0123456789abcdef0123456789"
    monkeypatch.setenv("SOME_KEY", key)
    files = small(
        open_folder, 'server.call("write", path="k", content=os.environ["SOME_KEY"], expected_sha256=None)'
    )
    files.edit(lambda content: content["model"]["agent"].update(key_variables=["SOME_KEY"]))
    folder, plan = files.freeze()
    run_cohort(folder, plan, only="off-by-one.plain.1")
    (trial,) = trials(folder)
    assert (trial / "candidate" / "k").read_text() == "[SOME_KEY]"
    everything = b"".join(path.read_bytes() for path in folder.root.rglob("*") if path.is_file())
    lines = read_wire((trial / "wire.jsonl").read_bytes())
    assert key.encode() not in everything + b"".join(map(message_of, lines))


def test_a_candidate_that_a_program_locked_is_archived_all_the_same(open_folder: Path) -> None:
    body = """
lock = "import os; os.mkdir('d'); open('d/f', 'w').write('x'); os.chmod('d/f', 0); os.chmod('d', 0)"
lock += "; os.mkfifo('p')"
server.call("call", program="python", argv=[lock])
"""
    files = small(open_folder, body)
    python = {"name": "python", "argv": ["{python}", "-c"], "about": "runs a line"}

    def tools(content: dict[str, list[dict[str, object]]]) -> None:
        content["tools"].append(python)
        content["variants"][1].update(tools=["python"])

    files.edit(tools)
    folder, plan = files.freeze()
    (record,) = run_cohort(folder, plan, only="off-by-one.guided.1")
    (trial,) = trials(folder)
    assert record.failed_calls == 0
    assert (trial / "candidate" / "d").stat().st_mode & 0o700 == 0o700
    assert {"candidate/d/f", "candidate/p"} <= {file.path for file in record.files}
    assert "d/f" in (trial / "candidate.diff").read_text()
    assert all(made.agrees for made in replay(folder, plan))


def test_a_candidate_too_deep_to_be_copied_is_cut_and_the_cohort_goes_on(open_folder: Path) -> None:
    body = """
deep = "import os\\nfor _ in range(25): os.mkdir('d' * 240); os.chdir('d' * 240)"
server.call("write", path="test_deep.py", expected_sha256=None, content=deep)
server.call("call", program="test", argv=[])
print(server.call("list")["code"], flush=True)
"""
    files = small(open_folder, body)
    files.edit(lambda content: content["variants"][0].update(tools=["test"]))
    folder, plan = files.freeze()
    records = run_cohort(folder, plan)
    assert [record.truncated for record in records] == [("candidate",), ("candidate",)]
    assert all(record.acceptance is not None for record in records)
    assert (trials(folder)[0] / "agent" / "stdout").read_text() == "refused\n"
    assert all(made.agrees for made in replay(folder, plan))
    assert audit_pilot(folder.root).passed


def test_p05_every_call_that_an_agent_can_make_is_what_the_audit_finds_on_the_wire(open_folder: Path) -> None:
    body = """
def ask(name, given):
    params = {"name": name, "arguments": given}
    server.send({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
    server.receive()

there = server.call("read", path="pages.py")["sha256"]
odd = [None, [], {}, 3, "", "..", "none", "pages.py", "x" * 300, "\\ud800", "read", "write", "call", "test"]
for one in odd:
    for name in ("read", "write", "delete", "list", "call", "test", "none", "x" * 300, "\\ud800"):
        ask(name, one)
        ask(name, {"path": one})
    ask("write", {"path": one, "content": "x", "expected_sha256": None})
    ask("write", {"path": "pages.py", "content": one, "expected_sha256": there})
    ask("delete", {"path": one, "expected_sha256": "0" * 64})
    ask("call", {"program": one, "argv": []})
    ask("call", {"program": "test", "argv": one})
    ask(one, {})
ask("call", {"program": "test", "argv": ["x", "\\ud800"]})
ask("call", {"program": "test", "argv": ["-h"]})
ask("call", {"program": "test", "argv": ["x" * 200000]})
"""
    files = small(open_folder, body)
    files.edit(lambda content: content["variants"][0].update(tools=["test"]))
    files.edit(lambda content: content["policy"].update(calls=330))
    folder, plan = files.freeze()
    (record,) = run_cohort(folder, plan, only=plan.schedule[0].tuple_id)
    assert (record.process, record.calls) == ("completed", 336), record.detail
    reader = PilotReader(folder.root)
    files_of = reader.trial_files(f"trials/{record.attempt}", plan.schedule[0])
    assert len(checked_calls(bind(files_of))) == record.calls


def test_p06_a_name_that_is_no_text_is_the_same_to_record_and_audit(open_folder: Path) -> None:
    body = """
odd = "import os; open(b'\\\\xff.txt', 'w').close()"
server.call("write", path="test_odd.py", expected_sha256=None, content=odd)
server.call("call", program="test", argv=[])
"""
    files = small(open_folder, body)
    files.edit(lambda content: content["variants"][0].update(tools=["test"]))
    folder, plan = files.freeze()
    run_cohort(folder, plan)
    replay(folder, plan)
    assert all((trial / "candidate" / os.fsdecode(b"\xff.txt")).exists() for trial in trials(folder))
    report = audit_pilot(folder.root)
    assert report.passed, report.failures


def test_p03_a_killed_run_leaves_its_attempt_as_aborted_and_the_cohort_goes_on(open_folder: Path) -> None:
    folder, plan = small(open_folder, MEND + 'if "plain" in label: time.sleep(3600)').freeze()
    with running(folder) as process:
        slot = next(slot for slot in plan.schedule if slot.variant == "plain")
        trial = folder.trials / f"{slot.order:03d}-{slot.tuple_id}"
        calls = trial / "calls.jsonl"
        await_state(lambda: calls.exists() and calls.read_bytes().count(b"\n") == 2)
        assert processes_in(open_folder)
        process.send_signal(signal.SIGKILL)
        process.wait()
    await_state(lambda: not processes_in(open_folder))
    left = {path: path.read_bytes() for path in trial.rglob("*") if path.is_file()}
    assert trial / "record.json" not in left
    assert "no record yet" in cli("status", folder.root)

    printed = cli("run", folder.root)
    assert "off-by-one.plain.1: aborted" in printed
    record = record_of(trial)
    assert (record.process, record.acceptance, record.wall_ms, record.ended_utc) == (
        "aborted",
        None,
        None,
        None,
    )
    assert (record.calls, record.failed_calls) == (2, 0)
    start = TrialStart.from_bytes((trial / "start.json").read_bytes(), place="")
    assert record.started_utc == start.started_utc
    assert {path: path.read_bytes() for path in left} == left
    bound = {file.path for file in record.files}
    assert bound >= {"candidate/pages.py", "wire.jsonl", "calls.jsonl", "start.json"}
    assert {path.name for path in folder.work.iterdir()} <= {"run.lock", "run.holder"}
    found = standing(folder, plan)
    assert found.open == []
    assert matrix_findings(plan, found.attempts, plan_sha256=plan.digest()) == []
    with pytest.raises(Refused, match="slot-used"):
        run_cohort(folder, plan, only="off-by-one.plain.1")


@pytest.mark.parametrize("left", ["folder", "starting", "start"])
def test_p03_whatever_moment_a_runner_died_at_its_slot_is_either_free_or_used(
    open_folder: Path, left: str
) -> None:
    folder, plan = small(open_folder).freeze()
    slot = plan.schedule[0]
    trial = folder.trials / f"{slot.order:03d}-{slot.tuple_id}"
    trial.mkdir()
    if left == "starting":
        begun = folder.work / f"{trial.name}.starting"
        begun.mkdir(parents=True)
        (begun / "start.json").write_bytes(b"{")
    if left == "start":
        (trial / "start.json").write_bytes(start_bytes(plan.digest(), slot.order, trial.name))
    records = run_cohort(folder, plan)
    record = record_of(trial)
    assert record.process == ("aborted" if left == "start" else "completed")
    assert len(records) == (1 if left == "start" else 2)
    assert len(trials(folder)) == 2
    assert standing(folder, plan).chain.problems == ()


@pytest.mark.slow
def test_p02_a_trial_that_was_taken_out_is_neither_hidden_nor_run_again(open_folder: Path) -> None:
    folder, plan = small(open_folder).freeze()
    setup = cli("run", folder.root, "--setup", "off-by-one.plain")
    printed = cli("run", folder.root)
    head = printed.rpartition("head ")[2].strip()
    assert head == digest_file(trials(folder)[1] / "record.json") != setup.rpartition("head ")[2].strip()
    assert f"head {head}" in cli("status", folder.root)
    replay(folder, plan)
    for posted in (head, setup.rpartition("head ")[2].strip()):
        cli("audit", folder.root, "--head", posted)

    first, last = trials(folder)
    kept = shutil.copytree(first, open_folder / "kept")
    shutil.rmtree(first)
    next(folder.replays.glob(f"{plan.schedule[0].tuple_id}-*")).unlink()
    said = cli("run", folder.root, expect=3)
    assert "[chain-broken]" in said
    assert last.name in said
    assert not first.exists()
    assert "broken chain" in cli("status", folder.root)
    chain = [check for check in audit_pilot(folder.root).failures if check.name == "chain"]
    assert [check.where for check in chain] == [last.name]

    # The last one can be made again without a trace in the folder, and the posted head tells.
    kept.rename(first)
    shutil.rmtree(last)
    run_cohort(folder, plan)
    replay(folder, plan)
    assert audit_pilot(folder.root).failures == ()
    [check] = audit_pilot(folder.root, head=head).failures
    assert (check.name, head in check.detail) == ("head", True)


def test_p02_a_start_that_nobody_can_read_ends_the_pilot_and_its_attempt_stays(open_folder: Path) -> None:
    folder, plan = small(open_folder).freeze()
    slot = plan.schedule[0]
    trial = folder.trials / f"{slot.order:03d}-{slot.tuple_id}"
    trial.mkdir()
    (trial / "start.json").write_bytes(b"{")
    with pytest.raises(Refused, match=r"\[chain-broken\].*no start"):
        run_cohort(folder, plan)
    assert record_of(trial).process == "aborted"


def start_bytes(plan_sha256: str, order: int, attempt: str) -> bytes:
    tuple_id, moment = attempt.partition("-")[2], datetime(2026, 1, 1, tzinfo=UTC)
    start = TrialStart(
        format="roundkit-pilot-start/1", plan_sha256=plan_sha256, tuple_id=tuple_id, order=order,
        attempt=attempt, started_utc=moment, previous_sha256=None,
    )  # fmt: skip
    return start.to_bytes()


def test_two_runs_of_one_pilot_exclude_each_other(open_folder: Path) -> None:
    folder, plan = small(open_folder, "time.sleep(3600)").freeze()
    with running(folder) as process:
        await_state(lambda: any((trial / "calls.jsonl").exists() for trial in trials(folder)))
        with pytest.raises(Refused, match=f"pid {process.pid}") as refused:
            run_cohort(folder, plan)
        assert refused.value.refusals[0].code == "pilot-running"
        assert "somebody runs it now" in cli("status", folder.root)
        assert "no record yet" in cli("status", folder.root)


def test_ctrl_c_leaves_a_sentence_and_the_next_run_goes_on(open_folder: Path) -> None:
    body = MEND + 'if "plain" in label: time.sleep(3600)'
    folder, plan = small(open_folder, body).freeze()
    slot = next(slot for slot in plan.schedule if slot.variant == "plain")
    trial = folder.trials / f"{slot.order:03d}-{slot.tuple_id}"
    with running(folder) as process:
        await_state(lambda: (trial / "calls.jsonl").exists() and (trial / "calls.jsonl").stat().st_size > 0)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
        assert process.returncode == 1
        assert b"interrupted" in said
        assert b"Traceback" not in said
    assert not processes_in(open_folder)
    assert record_of(trial).process == "aborted"
    run_cohort(folder, plan)
    assert standing(folder, plan).open == []


def test_inputs_that_changed_since_they_were_frozen_are_not_run(open_folder: Path) -> None:
    folder, plan = small(open_folder).freeze()
    (folder.root / "inputs/tasks/off-by-one/hidden/edges/check.py").write_text("")
    with pytest.raises(Refused, match="hidden/edges"):
        run_cohort(folder, plan)
    assert not trials(folder)


def test_nothing_is_used_up_where_the_agent_cannot_run_at_all(open_folder: Path) -> None:
    files = small(open_folder)
    files.edit(lambda content: content["model"]["agent"].update(executable="/nowhere/agent"))
    folder, plan = files.freeze()
    with pytest.raises(Refused, match="program-missing"):
        run_cohort(folder, plan)
    assert not trials(folder)


def test_a_drift_is_made_in_a_real_trial_and_a_good_agent_recovers(open_folder: Path) -> None:
    body = """
read = server.call("read", path="alerts.py")
stale = server.call("write", path="alerts.py", content="mine", expected_sha256=read["sha256"])
again = server.call("read", path="alerts.py")
server.call("write", path="alerts.py", content=again["stdout"] + "# mine", expected_sha256=again["sha256"])
print(stale["code"], stale["exit_code"])
"""
    folder, plan = small(open_folder, body, task="signature").freeze()
    run_cohort(folder, plan, only="signature.plain.1")
    (trial,) = trials(folder)
    assert (trial / "agent" / "stdout").read_text() == "stale 3\n"
    assert [call.code for call in calls_of(trial)] == ["ok", "stale", "ok", "ok"]
    assert "power_lost" in (trial / "candidate" / "alerts.py").read_text()
    fixture = folder.root / "inputs/tasks/signature/fixture/alerts.py"
    assert (trial / "drift-preimage").read_bytes() == fixture.read_bytes()


def cli(*words: str | Path, expect: int = 0) -> str:
    done = run_roundkit("pilot", *words)
    printed = done.stdout + done.stderr
    assert done.returncode == expect, printed
    assert "Traceback" not in printed
    return printed


@contextmanager
def running(folder: PilotFolder) -> Iterator[subprocess.Popen[bytes]]:
    """Run a pilot in a process of its own, which is gone at the end."""
    words = [sys.executable, "-m", "roundkit", "pilot", "run", folder.root]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def processes_in(folder: Path) -> list[int]:
    """Return the processes behind a boundary that shows something of a folder."""
    here, shown = Path("/proc/self/ns/mnt").readlink(), str(folder.resolve())
    found = []
    for place in (place for place in Path("/proc").iterdir() if place.name.isdigit()):
        with suppress(OSError):
            confined = (place / "ns" / "mnt").readlink() != here
            if confined and shown in (place / "mountinfo").read_text():
                found.append(int(place.name))
    return found
