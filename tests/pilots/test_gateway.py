"""The gateway alone: a real shim at the real pipes, programs really confined, agents that mean no good."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from roundkit.core.canonical import digest_bytes
from roundkit.host.confine import Limits
from roundkit.models.pilot_draft import PilotTool
from roundkit.models.pilot_trial import DriftReceipt, GatewayCall
from roundkit.models.round_plan import FrozenRuntime
from roundkit.pilots.gateway.drift import Drift
from roundkit.pilots.gateway.files import CandidateFiles
from roundkit.pilots.gateway.programs import Program
from roundkit.pilots.gateway.service import GatewayService
from roundkit.pilots.gateway.tools import Tools
from roundkit.pilots.gateway.wire import SHIM, Wire, furnish
from roundkit.rules.pilot_answers import EXIT_CODES, STALE_STDERR
from roundkit.rules.pilot_wire import message_of, presentation_of, read_wire

RUNTIME = FrozenRuntime(python="/usr/bin/python3", readable=())
LIMITS = Limits(
    output_bytes=2000,
    output_kill_bytes=1_000_000,
    file_bytes=1_000_000,
    disk_bytes=10_000_000,
    open_files=64,
    tmp_bytes=1_000_000,
)
EMPTY = digest_bytes(b"")
MOST_BYTES = 5000


@dataclass
class Talk:
    """An agent's side of the wire: a real shim as its server."""

    folder: Path
    process: subprocess.Popen[bytes]
    service: GatewayService
    numbers: list[int] = field(default_factory=lambda: [0])

    @property
    def candidate(self) -> Path:
        return self.folder / "candidate"

    def raw(self, content: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(content)
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def ask(self, method: str, params: Any = None, **changes: Any) -> dict[str, Any]:
        """Send a request and return the whole answer."""
        self.numbers[0] += 1
        message = {
            "jsonrpc": "2.0",
            "id": self.numbers[0],
            "method": method,
            "params": params or {},
            **changes,
        }
        self.raw(json.dumps(message).encode() + b"\n")
        return self.receive()

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its head with what it printed."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        head, *texts = [part["text"] for part in result["content"]]
        told = {"stdout": "", "stderr": "", **json.loads(head)}
        assert result["isError"] == (told["exit_code"] != 0)
        return {**told, **dict(zip(told["parts"], texts, strict=True))}

    def write(self, path: str, content: str, expected: str | None) -> dict[str, Any]:
        return self.call("write", path=path, content=content, expected_sha256=expected)

    def calls(self) -> list[GatewayCall]:
        rows = (self.folder / "calls.jsonl").read_bytes().splitlines()
        return [GatewayCall.from_bytes(row, place="calls.jsonl") for row in rows]

    def messages(self) -> list[tuple[str, bytes]]:
        return [(line.way, message_of(line)) for line in read_wire((self.folder / "wire.jsonl").read_bytes())]


@contextmanager
def talk(
    folder: Path,
    *,
    drift: str | None = None,
    most_calls: int = 100,
    most_bytes: int = 10_000_000,
    most_message_bytes: int = 50_000,
) -> Iterator[Talk]:
    """Serve an agent over a candidate with ``a.py`` and ``b.py``."""
    candidate = folder / "candidate"
    candidate.mkdir()
    (candidate / "a.py").write_text("a = 1\n")
    (candidate / "b.py").write_text("b = 1\n")
    furnish(folder / "gateway")
    wire = Wire(
        folder / "gateway",
        folder / "wire.jsonl",
        most_message_bytes=most_message_bytes,
        most_bytes=most_bytes,
    )
    programs = {"python": Program(("{python}", "-c"), None), "shell": Program(("sh", "-c"), None)}
    tools = Tools(CandidateFiles(candidate, MOST_BYTES), programs, RUNTIME, LIMITS, 20.0, wire.stop_read)
    made = None if drift is None else Drift("t.v.1", "a.py", drift.encode(), folder)
    offered = [PilotTool(name="python", argv=("{python}", "-c"), about="runs a line")]
    service = GatewayService(wire, tools, offered, folder / "calls.jsonl", most_calls=most_calls, drift=made)
    with service.serving():
        shim = [sys.executable, "-I", folder / "gateway" / SHIM]
        with subprocess.Popen(shim, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            try:
                yield Talk(folder, process, service)
            finally:
                process.kill()


def test_p07_a_stale_write_is_refused_with_its_exact_code_and_words(open_folder: Path) -> None:
    with talk(open_folder) as agent:
        told = agent.call("read", path="a.py")["sha256"]
        assert agent.write("a.py", "a = 2\n", told)["code"] == "ok"
        again = agent.write("a.py", "a = 3\n", told)
        assert (again["code"], again["exit_code"], again["stdout"], again["stderr"]) == (
            "stale", EXIT_CODES["stale"], "", STALE_STDERR,
        )  # fmt: skip
        assert (agent.candidate / "a.py").read_text() == "a = 2\n"
    stale = agent.calls()[-1]
    assert (stale.expected_sha256, stale.found_sha256) == (told, digest_bytes(b"a = 2\n"))
    assert (stale.after_sha256, stale.stdout_sha256) == (stale.found_sha256, EMPTY)
    assert stale.stderr_sha256 == digest_bytes(STALE_STDERR.encode())


def test_p07_the_drift_comes_after_the_identifying_read_and_leaves_receipt_and_preimage(
    open_folder: Path,
) -> None:
    with talk(open_folder, drift="a = 10\n") as agent:
        agent.call("read", path="b.py")
        agent.call("list")
        assert agent.call("read", path="missing.py")["code"] == "missing"
        assert not (open_folder / "drift.json").exists()
        read = agent.call("read", path="a.py")
        assert read["stdout"] == "a = 1\n"
        assert agent.write("a.py", "a = 2\n", read["sha256"])["code"] == "stale"
        again = agent.call("read", path="a.py")
        assert again["stdout"] == "a = 10\n"
        assert agent.write("a.py", "a = 11\n", again["sha256"])["code"] == "ok"
        assert agent.call("read", path="a.py")["stdout"] == "a = 11\n"
    receipt = DriftReceipt.from_bytes((open_folder / "drift.json").read_bytes(), place="drift.json")
    assert agent.calls()[receipt.trigger_sequence - 1].path == "a.py"
    assert receipt.before_sha256 == read["sha256"]
    assert receipt.before_sha256 == digest_bytes((open_folder / receipt.preimage).read_bytes())
    assert receipt.after_sha256 == again["sha256"]


def test_p07_calls_on_other_paths_and_malformed_ones_are_recorded_as_what_they_are(open_folder: Path) -> None:
    with talk(open_folder, drift="a = 10\n") as agent:
        agent.call("read", path="a.py")
        other = agent.call("read", path="b.py")["sha256"]
        assert agent.write("b.py", "b = 2\n", other)["code"] == "ok"
        for given in (
            {"path": "a.py", "content": "x"},
            {"path": "a.py", "content": "x", "expected_sha256": "abc"},
            {"path": 3, "content": "x", "expected_sha256": None},
            {"path": "a.py", "content": None, "expected_sha256": None},
            {"path": "a.py", "content": "\ud800", "expected_sha256": None},
            {"path": "a.py", "content": "x", "expected_sha256": None, "force": True},
            [],
        ):
            result = agent.ask("tools/call", {"name": "write", "arguments": given})["result"]
            assert json.loads(result["content"][0]["text"])["code"] == "malformed"
        assert (agent.candidate / "a.py").read_text() == "a = 10\n"
    assert [call.code for call in agent.calls()[3:]] == ["malformed"] * 7
    assert {call.path for call in agent.calls()[3:]} == {None}


def test_files_are_created_deleted_and_listed_and_a_digest_is_always_asked_for(open_folder: Path) -> None:
    with talk(open_folder) as agent:
        assert agent.write("deep/er/c.py", "c = 1\n", None)["code"] == "ok"
        assert agent.write("deep/er/c.py", "c = 2\n", None)["code"] == "stale"
        assert agent.write("d.py", "", "0" * 64)["code"] == "stale"
        found = agent.call("read", path="deep/er/c.py")
        assert agent.call("list")["stdout"] == "a.py\nb.py\ndeep/er/c.py\n"
        assert agent.call("delete", path="deep/er/c.py", expected_sha256="0" * 64)["code"] == "stale"
        assert agent.call("delete", path="deep/er/c.py", expected_sha256=found["sha256"])["code"] == "ok"
        assert agent.call("read", path="deep/er/c.py")["code"] == "missing"
        assert agent.write("a.py/inside", "x", None)["code"] == "refused"
        assert agent.write("deep", "x", None)["code"] == "refused"
    assert not list(open_folder.rglob("*.tmp"))


@pytest.mark.parametrize(
    "path",
    ["../outside", "/etc/passwd", "a/../../outside", "./a.py", "", "a//b", ".git/config", "a\\b", "a\nb"],
)
def test_a_path_that_leaves_the_folder_or_is_not_normal_is_refused(open_folder: Path, path: str) -> None:
    (open_folder / "outside").write_text("secret")
    with talk(open_folder) as agent:
        assert agent.call("read", path=path)["code"] == "refused"
        assert agent.write(path, "x", None)["code"] == "refused"
    assert (open_folder / "outside").read_text() == "secret"


def test_links_that_a_program_plants_are_neither_read_nor_written_through(open_folder: Path) -> None:
    (open_folder / "outside").mkdir()
    (open_folder / "outside" / "f").write_text("secret")
    with talk(open_folder) as agent:
        made = agent.call(
            "call",
            program="python",
            argv=[
                "import os; os.symlink('../outside/f', 'link'); os.symlink('../outside', 'folder');"
                "os.mkfifo('pipe'); os.link('a.py', 'twice'); os.symlink('nowhere', 'dangling')"
            ],
        )
        assert made["exit_code"] == 0
        for path in ("link", "folder/f", "pipe", "twice", "dangling"):
            assert agent.call("read", path=path)["code"] == "refused"
            assert agent.write(path, "x", None)["code"] == "refused"
        assert agent.write("folder/new", "x", None)["code"] == "refused"
    assert [path.name for path in (open_folder / "outside").iterdir()] == ["f"]
    assert (open_folder / "outside" / "f").read_text() == "secret"


def test_programs_run_without_a_shell_confined_bounded_and_in_the_candidate(open_folder: Path) -> None:
    with talk(open_folder) as agent:
        said = agent.call("call", program="python", argv=["import sys; print(sys.argv)", "$HOME;", "`id`"])
        assert "['-c', '$HOME;', '`id`']" in said["stdout"]
        assert (
            agent.call("call", program="python", argv=["print(open('a.py').read())"])["stdout"] == "a = 1\n\n"
        )
        outside = agent.call("call", program="python", argv=[f"open({str(open_folder / 'calls.jsonl')!r})"])
        assert "FileNotFoundError" in outside["stderr"]
        long = agent.call("call", program="python", argv=["print('x' * 100000)"])
        assert "bytes left out" in long["stdout"]
        assert len(long["stdout"]) < 3000
        failed = agent.call("call", program="python", argv=["raise SystemExit(7)"])
        assert (failed["code"], failed["exit_code"]) == ("program", 7)
        flood = agent.call("call", program="python", argv=["while True: print('x' * 10000)"])
        assert (flood["exit_code"], flood["ended"]) == (None, "output-limit")
        for argv in ("text", [1], ["a\0b"], None):
            assert agent.call("call", program="python", argv=argv)["code"] == "malformed"
        assert agent.call("call", program="rm", argv=[])["code"] == "malformed"
    assert agent.service.calls == 11
    assert agent.service.failed_calls == 8


def test_the_protocol_is_spoken_as_it_is_written(open_folder: Path) -> None:
    with talk(open_folder) as agent:
        for wanted, spoken in {
            "2025-06-18": "2025-06-18", "2024-11-05": "2024-11-05", "2025-03-26": "2024-11-05",
            "2099-01-01": "2025-11-25", "1999-01-01": "2025-11-25",
        }.items():  # fmt: skip
            assert agent.ask("initialize", {"protocolVersion": wanted})["result"]["protocolVersion"] == spoken
        agent.raw(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n\n')
        assert agent.ask("ping")["result"] == {}
        tools = agent.ask("tools/list")["result"]["tools"]
        assert [tool["name"] for tool in tools] == ["read", "list", "write", "delete", "call"]
        assert agent.ask("resources/list")["error"]["code"] == -32601
        assert agent.ask("tools/call", {"name": "nothing"})["error"]["code"] == -32602
        assert agent.ask("tools/call", {"name": 3})["error"]["code"] == -32602
        assert agent.ask("tools/call", [1])["error"]["code"] == -32602
        assert agent.ask("ping", jsonrpc="1.0")["error"]["code"] == -32600
        assert agent.ask("ping", id=None)["error"]["code"] == -32600
        assert agent.ask("ping", id=[1])["error"]["code"] == -32600
        assert agent.ask("ping", id="a name")["id"] == "a name"
    assert [call.tool for call in agent.calls()] == ["nothing"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700), (b"\xff\xfe", -32700), (b'{"a":1,"a":2}', -32700), (b"[" * 40_000, -32700),
        (b"[]", -32600), (b"3", -32600), (b"{}", -32600), (b'{"jsonrpc":"2.0","id":1,"method":3}', -32600),
        (b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}', -32600), (b"NaN", -32700), (b"x" * 200_000, -32600),
    ],
)  # fmt: skip
def test_what_is_no_message_is_answered_with_an_error_and_the_next_one_works(
    open_folder: Path, line: bytes, code: int
) -> None:
    with talk(open_folder) as agent:
        agent.raw(line + b"\n")
        answer = agent.receive()
        assert answer["error"]["code"] == code
        assert agent.call("read", path="a.py")["code"] == "ok"
    way, kept = agent.messages()[0]
    assert (way, kept) == ("in", line[:50_000])


def test_answers_that_nobody_asked_for_are_archived_and_ignored(open_folder: Path) -> None:
    with talk(open_folder) as agent:
        agent.raw(b'{"jsonrpc":"2.0","id":1,"result":{}}\n')
        agent.raw(b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"list"}}\n')
        assert agent.ask("ping")["result"] == {}
    assert agent.calls() == []
    assert len(agent.messages()) == 4


def test_calls_beyond_the_plans_number_are_refused_and_recorded(open_folder: Path) -> None:
    with talk(open_folder, most_calls=3) as agent:
        codes = [agent.call("list")["code"] for _ in range(5)]
        told = agent.call("read", path="a.py")
        assert (told["code"], told["stdout"]) == ("refused", "")
    assert codes == ["ok"] * 3 + ["refused"] * 2
    assert len(agent.calls()) == 6


def flood(pipe: int) -> None:
    """Write until nobody is left who reads, to a descriptor of one's own, which nobody else closes."""
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"%s"}}\n' % (b"x" * 100)
    with suppress(BrokenPipeError):
        while True:
            os.write(pipe, ping)
    os.close(pipe)


def test_a_wire_that_is_full_ends_the_trial_and_what_was_done_is_recorded(open_folder: Path) -> None:
    with talk(open_folder, most_bytes=20_000) as agent:
        assert agent.process.stdin is not None
        # Beside: once the gateway has had enough, it reads no more, and who still writes is held up.
        writer = threading.Thread(target=flood, args=[os.dup(agent.process.stdin.fileno())])
        writer.start()
        while agent.service.halt() is None:
            time.sleep(0.01)
        assert agent.service.halt() == "killed"
    writer.join()
    assert agent.service.failure == "more than 20000 bytes crossed the wire"
    assert sum(len(data) for _, data in agent.messages()) <= 20_000


def test_a_file_that_is_too_large_is_neither_read_nor_written(open_folder: Path) -> None:
    with talk(open_folder) as agent:
        (agent.candidate / "large").write_bytes(b"x" * (MOST_BYTES + 1))
        (agent.candidate / "binary").write_bytes(b"\xff\xfe")
        assert agent.call("read", path="large")["code"] == "refused"
        assert agent.call("read", path="binary")["code"] == "refused"
        assert agent.write("new", "x" * (MOST_BYTES + 1), None)["code"] == "refused"
        assert agent.write("new", "x" * MOST_BYTES, None)["code"] == "ok"


def test_an_agent_that_never_reads_does_not_keep_the_gateway_from_ending(open_folder: Path) -> None:
    with talk(open_folder, most_bytes=1_000_000_000) as agent:
        agent.process.kill()
        (agent.candidate / ("long" * 50)).touch()
        asked = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list"}}\n'
        requests = os.open(open_folder / "gateway" / "requests", os.O_WRONLY | os.O_NONBLOCK)
        answers = os.open(open_folder / "gateway" / "answers", os.O_RDWR | os.O_NONBLOCK)
        room = select.poll()
        room.register(answers, select.POLLOUT)
        # Until the gateway waits for somebody to read.
        while room.poll(0):
            with suppress(BlockingIOError):
                os.write(requests, asked)
        os.close(answers)
        os.close(requests)
    calls = agent.calls()
    assert [call.response_line for call in calls].count(None) <= 1
    assert len(calls) == agent.service.calls


def test_a_program_ends_with_the_trial_and_its_call_is_recorded(open_folder: Path) -> None:
    with talk(open_folder) as agent:
        asked = {"name": "call", "arguments": {"program": "shell", "argv": ["echo > started; sleep 3600"]}}
        agent.raw(
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}).encode() + b"\n"
        )
        while not (agent.candidate / "started").exists():
            os.sched_yield()
    (call,) = agent.calls()
    assert (call.code, call.exit_code, call.response_line) == ("program", None, None)


def test_an_agent_that_closes_early_may_connect_again_and_sees_no_older_answer(open_folder: Path) -> None:
    with talk(open_folder) as agent:
        agent.process.kill()
        agent.process.wait()
        # What a connection leaves that breaks off: an answer that it did not read, and half a message.
        with (open_folder / "gateway" / "requests").open("wb") as requests:
            requests.write(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n{"jsonrpc":"2.0","id":2,"meth')
        while not (open_folder / "wire.jsonl").read_bytes().count(b"\n"):
            os.sched_yield()
        again = [sys.executable, "-I", open_folder / "gateway" / SHIM]
        with subprocess.Popen(again, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            second = Talk(open_folder, process, agent.service)
            assert second.ask("initialize")["result"]["serverInfo"]["name"] == "roundkit-pilot"
            assert second.ask("ping")["result"] == {}
            process.kill()
    told = [json.loads(data) for way, data in agent.messages() if way == "out"]
    assert [answer.get("error", {}).get("code") for answer in told] == [None, -32700, None, None]


def test_a_second_connection_beside_the_first_is_turned_away(open_folder: Path) -> None:
    with talk(open_folder) as agent:
        assert agent.ask("ping")["result"] == {}
        shim = [sys.executable, "-I", open_folder / "gateway" / SHIM]
        done = subprocess.run(shim, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "another connection" in done.stderr


def test_every_byte_that_crossed_is_in_the_archive_and_answers_to_calls_are_counted_with_repeats(
    open_folder: Path,
) -> None:
    with talk(open_folder) as agent:
        agent.ask("initialize", {})
        read = {"name": "read", "arguments": {"path": "a.py"}}
        answers = [agent.ask("tools/call", given) for given in (read, read, read, {"name": "nothing"})]
    wire = (open_folder / "wire.jsonl").read_bytes()
    sizes = [
        len(json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode()) for answer in answers
    ]
    counted = presentation_of("t.v.1", b"prompt", wire)
    assert (counted.responses, counted.response_bytes) == (4, sum(sizes))
    assert counted.total_bytes == sum(sizes) + len(b"prompt")
    assert counted.wire_sha256 == digest_bytes(wire)
