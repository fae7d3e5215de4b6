"""One attempt of one agent: how it ends, what it is charged, and when it may be made again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.agent_rounds import TEMPLATE, AgentRound, agent_round
from support.agent_stubs import CLAUDE_MODEL, CODEX_MODEL, seen
from support.killing import start, wait_for
from support.synthetic import knob

from roundkit.agents.agent_state import state_reader
from roundkit.agents.redaction import Redaction
from roundkit.audit import audit_round
from roundkit.models.agent_run import AgentRun
from roundkit.models.attempts import AttemptRecord
from roundkit.models.round_plan import HarnessName
from roundkit.rounds import control
from roundkit.rounds.close import close
from roundkit.rounds.intake import take_in
from roundkit.rounds.locks import hold_lock
from roundkit.store import open_store

from ..conftest import intake_of
from .conftest import Alone

_OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in ("codex", "command")]
"""They go the same way but for how they are spoken to."""
BOTH = pytest.mark.parametrize("harness", ["claude", *_OTHERS[:1]])
EVERY = pytest.mark.parametrize("harness", ["claude", *_OTHERS])
PRICES = {"input": 1_000_000, "cached_input": 100_000, "cache_write": 0, "output": 10_000_000}
"""One answer of a stub, by this list: 100 + 4 + 500 micro-USD."""


def run_of(record: AttemptRecord) -> AgentRun:
    assert record.run is not None
    return record.run


def intake_tickets(made: AgentRound) -> list[str]:
    with open_store(made.folder.database) as store:
        return [ticket.ticket for ticket in take_in(intake_of(made.folder), store)]


def write(value: float) -> dict[str, Any]:
    return {"write": {"knobs/L1.json": knob(value)}}


def serve_is_said_to_run(made: AgentRound) -> Any:
    return hold_lock(made.folder.serve_lock, code="serve-running", what="serve")


@BOTH
def test_a_token_cap_ends_an_agent_that_does_not_stop_by_itself(alone: Alone, harness: str) -> None:
    made = alone(harness, [{"forever": True}], lane={"attempt_worst_case": {"tokens": 1000, "wall_s": 60}})
    driven, lines = made.drive()
    record = made.only("L1")
    run = run_of(record)
    assert (record.phase, run.end_reason, run.exit_code) == ("settled", "budget", None)
    assert record.actual is not None
    assert record.actual.tokens is not None
    assert record.actual.tokens >= 1000
    assert run.usage.partial
    assert f"at least {record.actual.tokens} tokens" in lines[-1]
    assert driven.failed == ()
    assert any("L1 ended: budget" in line for line in lines)
    assert made.drive()[1] == [f"L1: already driven ({lines[-1].removeprefix('L1: ')})"]


def test_a_dollar_cap_ends_codex_by_list_price(alone: Alone) -> None:
    caps = {"micro_usd": 3000, "wall_s": 60}
    made = alone("codex", [{"forever": True}], lane={"attempt_worst_case": caps}, agent={"prices": PRICES})
    made.drive()
    run = run_of(made.only("L1"))
    assert (run.end_reason, run.usage.basis) == ("budget", "list-price")
    assert run.usage.micro_usd is not None
    assert run.usage.micro_usd >= 3000
    assert run.usage.micro_usd % 604 == 0
    outcome = close(made.folder, report=lambda line: None)
    assert audit_round(outcome.evidence).passed


@pytest.mark.parametrize("subtype", ["error_max_turns", "error_max_budget_usd"])
def test_a_cap_that_claude_holds_itself_is_a_budget_end(alone: Alone, subtype: str) -> None:
    made = alone("claude", [{"cap": subtype}])
    made.drive()
    run = run_of(made.only("L1"))
    assert (run.end_reason, run.detail) == ("budget", subtype)
    assert (run.usage.turns, run.usage.basis, run.usage.partial) == (1, "reported", False)


@BOTH
def test_fault_21_a_provider_that_fails_may_be_tried_again(alone: Alone, harness: str) -> None:
    attempts = ([{"fail": "overloaded (529)"}], [write(0.2), {"submit": True}])
    made = alone(harness, *attempts, lane={"attempts": 2})
    driven, _ = made.drive()
    first = made.only("L1")
    run = run_of(first)
    assert (first.phase, run.end_reason, run.detail, run.exit_code) == (
        "settled", "provider-error", "overloaded (529)", 1,
    )  # fmt: skip
    assert driven.failed == ("L1",)
    made.drive()
    assert [run_of(record).end_reason for record in made.book("L1")] == ["provider-error", "exited"]
    assert len(intake_tickets(made)) == 1


def own_rows(number: int, *rows: Mapping[str, Any]) -> dict[str, Any]:
    """Return the step in which a stub leaves rows in a file of its own, one file an attempt."""
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    folder = "os.environ['HOME'] + '/.own'"
    name = f"{folder} + '/{number}.jsonl'"
    return {"python": f"os.makedirs({folder}, exist_ok=True); open({name}, 'a').write({lines!r})"}


def test_a_retry_is_charged_with_its_own_rows_and_not_with_those_of_the_attempt_before(alone: Alone) -> None:
    rule = {"take": "sum", "of": ".own/*.jsonl", "input": "in", "failed": {"type": "error"}}
    attempts = (
        [own_rows(1, {"in": 700}, {"in": 10}, {"type": "error"}), {"quit": 1}],
        [own_rows(2, {"in": 700}, {"in": 20}), write(0.2), {"submit": True}],
    )
    agent = {"command": {**TEMPLATE, "usage": rule}}
    lane = {"attempts": 2, "attempt_worst_case": {"tokens": 1000, "wall_s": 60}}
    made = alone("command", *attempts, agent=agent, lane=lane)
    assert made.drive()[0].failed == ("L1",)
    assert made.drive()[0].failed == ()
    runs = [run_of(record) for record in made.book("L1")]
    assert [(run.end_reason, run.usage.tokens.input) for run in runs] == [
        ("provider-error", 710),
        ("exited", 720),
    ]
    assert len(intake_tickets(made)) == 1


def test_an_error_that_codex_recovers_from_is_no_end(alone: Alone) -> None:
    made = alone("codex", [{"error": "Reconnecting... 1/5"}])
    made.drive()
    assert run_of(made.only("L1")).end_reason == "exited"


@BOTH
def test_an_agent_that_ends_without_a_word_is_not_believed(alone: Alone, harness: str) -> None:
    made = alone(harness, [{"quit": 0}])
    made.drive()
    run = run_of(made.only("L1"))
    assert (run.end_reason, run.exit_code, run.usage.partial) == ("exited", 0, True)
    assert "exit code 0, no" in run.detail
    model = CLAUDE_MODEL if harness == "claude" else CODEX_MODEL
    assert (run.usage.model, run.usage.turns) == (model, 1)


@BOTH
def test_a_stopped_lane_ends_its_agent(alone: Alone, harness: str) -> None:
    made = alone(harness, [{"touch": "here"}, {"hang": True}])
    here = made.folder.clone("L1") / ".roundkit/scratch/here"

    def stop() -> None:
        wait_for(here.exists, "the agent")
        control.stop_lane(made.folder, "L1")

    thread = threading.Thread(target=stop)
    thread.start()
    driven, _ = made.drive()
    thread.join()
    record = made.only("L1")
    assert (record.phase, run_of(record).end_reason, record.actual) == ("claimed", "killed", None)
    assert driven.failed == ("L1",)
    outcome = close(made.folder, report=lambda line: None)
    report = audit_round(outcome.evidence)
    assert report.passed, report.failures


def test_an_agent_that_floods_its_output_is_ended_and_its_log_is_bounded(alone: Alone) -> None:
    limits = {
        "output_bytes": 4096, "output_kill_bytes": 200_000, "file_bytes": 1 << 26, "disk_bytes": 1 << 26,
        "disk_files": 10_000, "open_files": 256, "tmp_bytes": 1 << 24,
    }  # fmt: skip
    flood = "[print('x' * 1000, flush=True) for _ in range(100_000)]"
    made = alone("claude", [{"python": flood}], agent={"limits": limits})
    made.drive()
    run = run_of(made.only("L1"))
    assert run.end_reason == "killed"
    assert run.stdout.bytes > 200_000
    assert run.stdout.kept_bytes == 4096
    assert (made.folder.attempt_log("L1", 1) / "stdout").stat().st_size < 5000


@EVERY
def test_d04_children_that_detach_are_gone_after_the_deadline(alone: Alone, harness: str) -> None:
    marker = f"rk-driver-{harness}-{os.getpid()}"
    steps = [{"detach": marker}, {"touch": "detached"}, {"hang": True}]
    made = alone(harness, steps, lane={"attempt_worst_case": {"wall_s": 5}})
    made.drive()
    assert (made.folder.clone("L1") / ".roundkit/scratch/detached").exists()
    run = run_of(made.only("L1"))
    assert (run.end_reason, run.exit_code) == ("deadline", None)
    commands = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    assert [command for command in commands if marker in command] == []


def test_d04_what_detached_is_gone_when_its_agent_ends_by_itself(alone: Alone) -> None:
    marker = f"rk-exited-{os.getpid()}"
    made = alone("claude", [{"detach": marker}])
    made.drive()
    assert run_of(made.only("L1")).end_reason == "exited"
    commands = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    assert [command for command in commands if marker in command] == []


@BOTH
def test_r11_an_attempt_that_times_out_after_a_submit_is_retried_on_the_same_budget(
    alone: Alone, harness: str
) -> None:
    made = alone(
        harness,
        [write(0.1), {"submit": True}, {"hang": True}],
        [write(0.2), {"submit": True}],
        lane={
            "attempts": 3,
            "budget": {"micro_usd": 250, "wall_s": 100},
            "attempt_worst_case": {"micro_usd": 100, "wall_s": 6},
        },
        agent={"prices": {**PRICES, "input": 0, "output": 0, "cached_input": 0}},
    )
    made.drive()
    lost = made.only("L1")
    assert (lost.phase, lost.actual, run_of(lost).end_reason) == ("claimed", None, "deadline")
    made.drive()
    first, second = made.book("L1")
    assert first == lost
    assert (second.phase, run_of(second).end_reason) == ("settled", "exited")
    assert second.binding.plan_digest != first.binding.plan_digest
    assert len(intake_tickets(made)) == 2
    assert seen(made.root, "L1", 2)["stdin"] != ""
    with serve_is_said_to_run(made):
        assert made.book("L1")[0].binding.worst_case.micro_usd == 100
    with open_store(made.folder.database, read_only=True) as store:
        assert [record.phase for record in store.attempts.all("L1")] == ["claimed", "settled"]


def agents_in(clone: Path) -> set[int]:
    """Return the process namespaces, by inode, that have a lane's clone mounted."""
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            mounts = (entry / "mountinfo").read_text()
            namespace = (entry / "ns/pid").stat().st_ino
        except OSError:
            continue
        if any(line.split()[4] == str(clone) for line in mounts.splitlines()):
            found.add(namespace)
    return found


@EVERY
def test_d10_a_killed_driver_leaves_its_attempt_charged_and_no_second_agent_beside_it(
    alone: Alone, harness: str, lease_root: Path
) -> None:
    attempts = ([{"touch": "one"}, {"hang": True}], [{"touch": "two"}, {"hang": True}])
    made = alone(harness, *attempts, lane={"attempts": 3})
    clone = made.folder.clone("L1")
    scratch = clone / ".roundkit/scratch"
    with serve_is_said_to_run(made):
        first = start(lease_root, "launch", made.folder.root, "--drive", harness)
        wait_for((scratch / "one").exists, "the first agent")
        assert len(agents_in(clone)) == 1
        beside = start(lease_root, "launch", made.folder.root, "--drive", harness)
        said, _ = beside.communicate(timeout=60)
        assert "[lane-driven]" in said
        assert beside.returncode == 3
        first.send_signal(signal.SIGKILL)
        first.wait()
        second = start(lease_root, "launch", made.folder.root, "--drive", harness)
        most = 0
        while not (scratch / "two").exists():
            assert second.poll() is None, second.communicate()
            most = max(most, len(agents_in(clone)))
            time.sleep(0.01)
        assert most <= 1
        assert [record.phase for record in made.book("L1")] == ["claimed", "claimed"]
        second.send_signal(signal.SIGTERM)
        said, _ = second.communicate(timeout=60)
        assert "L1 ended: killed" in said
        assert second.returncode == 1
    lost, ended = made.book("L1")
    assert lost.run is None
    assert run_of(ended).end_reason == "killed"
    assert agents_in(clone) == set()


@pytest.mark.parametrize("command", ["status", "serve", "launch", "close"])
def test_d09_a_killed_launch_leaves_no_credential_past_the_next_command(
    alone: Alone, command: str, lease_root: Path, open_folder: Path
) -> None:
    secret = open_folder / "auth.json"
    secret.write_text("a secret of somebody")
    made = alone(
        "codex",
        [{"touch": "one"}, {"hang": True}],
        agent={"credentials": [{"source": str(secret), "at": ".codex/auth.json"}]},
    )
    copies = made.folder.homes / "L1.credentials"
    with serve_is_said_to_run(made):
        launch = start(lease_root, "launch", made.folder.root, "--drive", "codex")
        wait_for((made.folder.clone("L1") / ".roundkit/scratch/one").exists, "the agent")
        # While it runs its copies stay, whoever looks.
        start(lease_root, "status", made.folder.root).communicate(timeout=60)
        assert any(secret.read_bytes() == path.read_bytes() for path in copies.iterdir())
        launch.send_signal(signal.SIGKILL)
        launch.wait()
    assert any(secret.read_bytes() == path.read_bytes() for path in copies.iterdir())
    more = {"serve": ("--until-idle",)}.get(command, ())
    start(lease_root, command, made.folder.root, *more).communicate(timeout=120)
    assert not copies.exists()


REACH = """
import glob
def attempt(name, action):
    try:
        got = action()
    except BaseException as error:
        told.append([name, type(error).__name__])
    else:
        told.append([name, "SUCCEEDED" if got is None else got])
def write(path):
    with open(path, "w") as stream:
        stream.write("owned")
attempt("allowed: clone", lambda: write("knobs/new.json"))
attempt("allowed: home", lambda: write(os.environ["HOME"] + "/x"))
attempt("allowed: tmp", lambda: write(os.environ["TMPDIR"] + "/x"))
for place in PLACES:
    attempt("list " + place, lambda: os.listdir(place))
    attempt("read " + place, lambda: open(place).read())
    attempt("vanishes: write " + place, lambda: write(place))
    attempt("vanishes: write in " + place, lambda: write(place + "/x"))
for name in ("lane.json", "round", "status/x"):
    attempt("write " + name, lambda: write(".roundkit/" + name))
for name in ("config", "hooks/post-checkout", "objects/x"):
    attempt("write " + name, lambda: write(".git/" + name))
for tool in ("claude", "codex", "command", "script.json"):
    attempt("write " + tool, lambda: write(TOOLS + "/" + tool))
attempt("system", lambda: write("/usr/x"))
attempt("device", lambda: [os.stat("/dev/" + name) for name in ("nvidia0", "kvm", "sda", "vda", "dri")])
attempt("network", lambda: __import__("socket").create_connection(("127.0.0.1", PORT), 2) and None)
"""


@EVERY
def test_d03_an_agent_reaches_its_lane_and_nothing_else(
    open_folder: Path, lease_root: Path, harness: HarnessName
) -> None:
    owner = open_folder / "owner"
    owner.mkdir()
    (owner / "key").write_text("an owner's key")
    (owner / "key").chmod(0o600)
    names = (
        "round/lanes/L2", "round/store", "round/store/secret", "round/round-plan.json", "round/launch.json",
        "round/homes/L2", "program", "owner/key",
    )  # fmt: skip
    code = REACH.replace("PLACES", repr([str(open_folder / name) for name in names])).replace("PORT", "9")
    code = code.replace("TOOLS", repr(str(open_folder / "tools")))
    made = agent_round(open_folder, {"L1": harness, "L2": "none"}, {"L1": [[{"python": code}]]})
    made.drive()
    answers = dict(json.loads((made.folder.homes / "L1/told-1.json").read_bytes()))
    through = {name for name, answer in answers.items() if not str(answer).endswith("Error")}
    # The folder of this test lies below /tmp, and /tmp is private inside: what lands there is gone.
    kept = {name for name in through if not name.startswith("vanishes: ")}
    assert kept == {"allowed: clone", "allowed: home", "allowed: tmp"}, answers
    assert len(answers) > 40
    owned = [path for path in open_folder.rglob("*") if path.is_file() and path.read_bytes() == b"owned"]
    clone, home = made.folder.clone("L1"), made.folder.homes / "L1"
    assert set(owned) == {clone / "knobs/new.json", clone / ".roundkit/scratch/x", home / "x"}
    assert run_of(made.only("L1")).end_reason == "exited"


@BOTH
def test_d09_a_key_given_by_variable_appears_nowhere(
    alone: Alone, harness: str, lease_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = 'sk-"stub"-7Zq4Wk9fT2xR8mB1'
    monkeypatch.setenv("STUB_KEY", key)
    steps = [
        {"print": "dict(os.environ)"},
        {"print": "json.dumps(dict(os.environ))"},
        {"print": "os.environ['STUB_KEY']"},
        {"touch": "here"},
        {"hang": True},
    ]
    attempts = (steps, [{"fail": f"bad key {key}"}])
    made = alone(harness, *attempts, lane={"attempts": 2}, agent={"key_variables": ["STUB_KEY"]})
    here = made.folder.clone("L1") / ".roundkit/scratch/here"
    with serve_is_said_to_run(made):
        process = start(lease_root, "launch", made.folder.root, "--drive", harness)
        wait_for(here.exists, "the agent")
        shown = subprocess.run(
            ["ps", "axeww", "-o", "args"], capture_output=True, text=True, check=True,
            env={"PATH": "/usr/bin"},
            **({"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}),
        )  # fmt: skip
        assert str(made.tools / harness) in shown.stdout
        if os.geteuid() == 0:
            assert key not in shown.stdout
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
        again, _ = start(lease_root, "launch", made.folder.root, "--drive", harness).communicate(timeout=60)
    assert seen(made.root, "L1")["env"]["STUB_KEY"] == key
    outcome = close(made.folder, report=lambda line: None)
    forms = (key.encode(), json.dumps(key)[1:-1].encode())
    shutil.rmtree(made.folder.homes)  # where the stub itself wrote down its variables
    tops = (made.folder.root, outcome.evidence)
    files = [file for top in tops for file in top.rglob("*") if file.is_file()]
    assert made.folder.launch_file in files
    assert made.folder.database in files
    assert [file for file in files if any(form in file.read_bytes() for form in forms)] == []
    assert key not in said + again
    assert "bad key [STUB_KEY]" in again
    for stream in ("stdout", "stderr"):
        assert "[STUB_KEY]" in (made.folder.attempt_log("L1", 1) / stream).read_text()


def test_d09_a_credential_file_is_read_by_its_agent_and_kept_out_of_the_log(
    alone: Alone, open_folder: Path
) -> None:
    token = "tok_0123456789abcdefghijKLMN"
    secret = open_folder / "auth.json"
    secret.write_text(json.dumps({"tokens": {"access": token}}))
    secret.chmod(0o600)
    made = alone(
        "codex",
        [{"print": "open(os.environ['CODEX_HOME'] + '/auth.json').read()"}],
        agent={"credentials": [{"source": str(secret), "at": ".codex/auth.json"}]},
    )
    made.drive()
    log = (made.folder.attempt_log("L1", 1) / "stdout").read_text()
    assert token not in log
    assert "[a credential]" in log
    assert not (made.folder.homes / "L1.credentials").exists()


def test_a_state_that_an_agent_linked_elsewhere_is_not_read(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "rollout-x.jsonl").write_text("secret")
    home = tmp_path / "home"
    (home / ".codex").mkdir(parents=True)
    (home / ".codex/sessions").symlink_to(outside)
    read = state_reader(home, Redaction({}))
    assert read(".codex/sessions/**/rollout-*.jsonl", 1000) == []
    (home / ".codex/sessions").unlink()
    (home / ".codex/sessions/a").mkdir(parents=True)
    (home / ".codex/sessions/a/rollout-1.jsonl").symlink_to(outside / "rollout-x.jsonl")
    os.mkfifo(home / ".codex/sessions/a/rollout-2.jsonl")
    (home / ".codex/sessions/a/rollout-3.jsonl").write_text("x" * 2000)
    (home / ".codex/sessions/a/rollout-4.jsonl").write_text("mine")
    assert read(".codex/sessions/**/rollout-*.jsonl", 1000) == [b"mine"]
