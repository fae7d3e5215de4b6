"""What a confined command is given: places, environment, streams, CPUs; and that the record says so."""

from __future__ import annotations

import os
import re
import sys
import threading
from pathlib import Path

import pytest

from roundkit.core.clock import Deadline
from roundkit.host.confine import Execution, Mount, confined_execute
from roundkit.host.confine.seccomp import architecture
from roundkit.host.confine.syscalls import ARCHITECTURES, DENIED


def test_the_record_describes_the_boundary(world):
    done = world.run("true", memory_bytes=1 << 30, cpus={0})

    assert (done.exit_code, done.signal, done.end_reason, done.detail) == (0, None, "exited", "")
    assert done.boundary.version.startswith("bubblewrap ")
    assert done.boundary.env_names == ("HOME", "LANG", "PATH")
    assert (done.boundary.seccomp, done.boundary.network, done.boundary.cpus) == (True, "none", (0,))
    modes = {mount.at: mount.mode for mount in done.boundary.mounts}
    assert modes["/usr"] == "ro"
    assert modes["/tmp"] == modes["/dev/shm"] == modes["/home/somebody"] == "private"
    assert modes[str(world.checkout)] == modes[str(world.trial)] == "rw"
    assert modes[str(world.checkout / "bench" / "benchmark.py")] == "ro"
    assert Execution.model_validate_json(done.model_dump_json()) == done


def test_c12_what_was_not_measured_is_null(world):
    done = world.run("true")

    assert done.peak_memory_bytes is None
    assert (done.cpu_s is None) == (done.cpu_source is None)


def test_places_nest_in_both_directions(world):
    (world.checkout / "scratch" / "old").write_text("before")
    told = world.run(
        "/bin/sh",
        "-c",
        'for f in "$0"/new "$0"/scratch/new "$0"/bench/new; do if (: > "$f") 2>/dev/null;'
        " then echo yes; else echo no; fi; done; cat scratch/old",
        str(world.checkout),
        writable=[world.scratch],
        readable=[world.checkout],
        cwd=world.checkout,
    )

    assert told.stdout_tail == "no\nyes\nno\nbefore", told.stderr_tail


def test_a_place_can_appear_elsewhere(world):
    told = world.run(
        "/bin/sh",
        "-c",
        "cat /place/input/benchmark.py; echo made > /place/out/file; ls /place",
        writable=[Mount(world.trial, Path("/place/out"))],
        readable=[Mount(world.protected.parent, Path("/place/input"))],
        cwd=Path("/place"),
    )

    assert told.stdout_tail == "print('honest')\ninput\nout\n", told.stderr_tail
    assert (world.trial / "file").read_text() == "made\n"


def test_an_interpreter_of_roots_home_can_be_executed(make_world):
    world = make_world("root")
    interpreter = Path(sys.executable).resolve()
    home = interpreter.parents[1]
    done = world.run(
        str(interpreter),
        "-c",
        "import ssl, sys; print(sys.version_info[0])",
        readable=[home],
    )

    assert (done.exit_code, done.stdout_tail) == (0, "3\n"), done.stderr_tail


def test_what_only_root_can_read_is_refused_with_the_remedy(make_world, refused):
    world = make_world("root")
    (world.root / "incumbent").chmod(0o700)

    assert refused(world.run, "true", readable=[world.root / "incumbent"]) == "source-unreadable"


def test_the_environment_is_exactly_what_was_given(world):
    given = {"A": "1", "SPACED": "a b\n'c'", "EMPTY": "", "PATH": "/usr/bin"}
    done = world.run("env", "-0", env=given)
    bare = world.run("/usr/bin/env", env={})

    assert dict(pair.split("=", 1) for pair in done.stdout_tail.split("\0") if pair) == given
    assert bare.stdout_tail == ""


@pytest.mark.parametrize("name", ["PWD", "IFS", "a.b", "", "A=B", "1A"])
def test_an_environment_that_cannot_be_passed_on_is_refused(any_world, refused, name):
    assert refused(any_world.run, "true", env={name: "x"}) == "env-name"


def test_a_missing_command_is_told_apart_from_one_that_exits_127(world):
    missing = world.run("no-such-command")
    absent = world.run("/usr/bin/no-such-command")
    left = world.run("/bin/sh", "-c", "exit 127")

    assert {(done.end_reason, done.exit_code) for done in (missing, absent, left)} == {("exited", 127)}
    assert "no-such-command" in missing.detail
    assert "no-such-command" in absent.detail
    assert left.detail == ""


def test_fault_27_cpus_that_do_not_exist_are_refused(any_world, refused):
    assert refused(any_world.run, "true", cpus={4096}) == "cpu-set"
    assert refused(any_world.run, "true", cpus=set()) == "cpu-set"


def test_the_command_stays_on_its_cpus(world):
    script = (
        "import os\nprint(sorted(os.sched_getaffinity(0)))\n"
        "try: os.sched_setaffinity(0, range(os.cpu_count()))\nexcept PermissionError: print('refused')"
    )
    last = max(os.sched_getaffinity(0))
    done = world.python(script, cpus={last})

    assert done.stdout_tail == f"[{last}]\nrefused\n", done.stderr_tail


def piped(world, command, place, results, **streams):
    return threading.Thread(
        target=lambda: results.append(
            confined_execute(
                ["/bin/sh", "-c", command],
                cwd=place,
                writable=[place],
                readable=[],
                deadline=Deadline.after(30),
                env={"PATH": "/usr/bin:/bin"},
                limits=world.limits(),
                **streams,
            )
        )
    )


def test_two_commands_talk_over_crossed_pipes(any_world):
    to_worker, from_driver = os.pipe()
    to_driver, from_worker = os.pipe()
    results = []
    driver = piped(
        any_world,
        'echo question; read -r answer; echo "$answer" > result; echo note >&2',
        any_world.trial,
        results,
        stdin=to_driver,
        stdout=from_driver,
    )
    worker = piped(
        any_world,
        'while read -r line; do echo "re: $line"; done; echo ended > end',
        any_world.scratch,
        results,
        stdin=to_worker,
        stdout=from_worker,
    )
    for thread in (driver, worker):
        thread.start()
    for thread in (driver, worker):
        thread.join()

    assert [done.end_reason for done in results] == ["exited", "exited"], results
    assert (any_world.trial / "result").read_text() == "re: question\n"
    assert (any_world.scratch / "end").read_text() == "ended\n"
    assert {done.stdout_tail for done in results} == {None}
    assert sorted(done.stderr_tail for done in results) == ["", "note\n"]


def test_c02_streams_are_pipes_only_and_taken_over(any_world):
    fd = os.open(any_world.trial / "log", os.O_CREAT | os.O_RDWR)
    with pytest.raises(Exception, match="stream-not-a-pipe"):
        confined_execute(
            ["true"],
            cwd=any_world.trial,
            writable=[any_world.trial],
            readable=[],
            deadline=Deadline.after(5),
            env={},
            limits=any_world.limits(),
            stdout=fd,
        )
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


@pytest.mark.parametrize("machine", sorted(ARCHITECTURES))
def test_system_call_numbers_agree_with_the_kernels_headers(machine):
    header = HEADERS[machine]
    if not header.exists():
        pytest.skip(f"no {header}")
    pattern = r"#define __NR(?:3264)?_(\w+) (\d+)"
    known = {match[1]: int(match[2]) for match in re.finditer(pattern, header.read_text())}
    table = architecture(machine)
    names = {name for name in (*DENIED, "socket", "clone", "openat", "chmod", "ioctl") if name in known}

    assert len(names) > 50
    assert {name: table.number(name) for name in names} == {name: known[name] for name in names}
