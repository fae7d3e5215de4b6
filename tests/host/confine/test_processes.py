"""Other processes and more rights (C04), users of slots (C13), and what outlives a command (C06)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from roundkit.host.confine.slots import FIRST_UID, SLOTS, _wait_until_unused


def alive(marker):
    """Return the processes of the host whose command line holds a marker that only one test uses."""
    processes = psutil.process_iter(["cmdline"])
    return [process.pid for process in processes if marker in " ".join(process.info["cmdline"] or ())]


def test_c04_other_processes_and_rights_are_out_of_reach(attacked):
    with subprocess.Popen(["sleep", "600"]) as other:
        told = attacked.attempts("processes.py", str(os.getpid()), str(other.pid))
        assert other.poll() is None
        other.kill()

    got_through = {name for name, result in told.items() if result.startswith("SUCCEEDED")}
    assert got_through == {name for name in told if name.startswith("allowed: ")}, told
    assert told["a core of its own"].startswith("PermissionError"), "the kernel was asked"
    left = [path for path in attacked.trial.iterdir() if path.lstat().st_mode & 0o6000]
    assert left == []
    assert attacked.changed() == set()


def test_c04_a_process_of_the_other_architecture_dies(any_world):
    # int 0x80 from 64-bit code enters by the 32-bit table, whose numbers mean other calls.
    source = 'int main(void){long r; __asm__ volatile("int $0x80":"=a"(r):"a"(20)); return r > 0 ? 0 : 1;}'
    if os.uname().machine != "x86_64":
        pytest.skip("x86-64 only")
    program = any_world.trial / "program"
    built = subprocess.run(["cc", "-x", "c", "-", "-o", str(program)], input=source, text=True, check=False)
    if built.returncode:
        pytest.skip("no C compiler")
    done = any_world.run(str(program))

    assert (done.end_reason, done.signal) == ("signal", signal.SIGSYS)


DAEMONS = """
import os, signal, subprocess, sys, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
marker = sys.argv[1]
sleeper = ["/bin/sh", "-c", "trap '' TERM HUP INT; while :; do sleep 1; done", marker]
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sleeper[0], sleeper)
    os._exit(0)
stopped = subprocess.Popen(sleeper)
stopped.send_signal(signal.SIGSTOP)
subprocess.Popen(["setsid", "nohup", *sleeper], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print("started", flush=True)
"""


def test_c06_nothing_outlives_the_deadline(world):
    marker = f"rk-outlives-{world.mode}-{os.getpid()}"
    done = world.python(DAEMONS + "time.sleep(600)", marker, deadline_s=2)

    assert alive(marker) == []
    assert (done.end_reason, done.stdout_tail, done.exit_code) == ("deadline", "started\n", None), done
    assert done.wall_s is not None


SLEEPS_UNINTERRUPTIBLY = """
import os, sys, time
os.mkfifo("never")
child = os.fork()
if child == 0:
    # The child of this start waits for a writer before it becomes its program, and its parent for that.
    wait = (os.POSIX_SPAWN_OPEN, 0, "never", os.O_RDONLY, 0)
    os.posix_spawn("/bin/true", ["true"], {}, file_actions=[wait])
state = ""
while state != "D":
    with open("/proc/%d/stat" % child) as stream:
        state = stream.read().rpartition(")")[2].split()[0]
print("asleep", flush=True)
time.sleep(600)
"""


def test_c06_a_process_in_uninterruptible_sleep_is_gone_at_the_deadline(world):
    marker = f"rk-asleep-{world.mode}-{os.getpid()}"
    done = world.python(SLEEPS_UNINTERRUPTIBLY, marker, deadline_s=2)

    assert (done.end_reason, done.stdout_tail) == ("deadline", "asleep\n"), done
    assert alive(marker) == []


def test_c06_nothing_outlives_the_command_itself(world):
    marker = f"rk-leaves-{world.mode}-{os.getpid()}"
    done = world.python(DAEMONS + "os._exit(7)", marker)

    assert alive(marker) == []
    assert (done.end_reason, done.exit_code) == ("exited", 7)


def test_fault_01_a_busy_loop_ends_at_the_deadline(world):
    marker = f"rk-busy-{world.mode}-{os.getpid()}"
    done = world.python("while True: pass", marker, deadline_s=1)

    assert (done.end_reason, done.exit_code, done.signal) == ("deadline", None, None)
    assert alive(marker) == []


@pytest.mark.parametrize("start", ["", "setsid "])
def test_fault_02_grandchildren_end_at_the_deadline(any_world, start):
    marker = f"6{os.getpid()}"
    done = any_world.run("/bin/sh", "-c", f"{start}sleep {marker} & sleep {marker}", deadline_s=1.5)

    assert done.end_reason == "deadline"
    assert alive(f"sleep {marker}") == []


COORDINATOR = """
import sys
from pathlib import Path
from roundkit.core.clock import Deadline
from roundkit.host.confine import Limits, confined_execute
place = Path(sys.argv[1])
limits = Limits.model_validate_json(sys.argv[3])
confined_execute(["/bin/sh", "-c", "touch started; while :; do sleep 1; done", sys.argv[2]], cwd=place,
    writable=[place], readable=[], deadline=Deadline.after(600), env={"PATH": "/usr/bin:/bin"}, limits=limits)
"""


def test_c06_a_killed_coordinator_takes_its_command_along(any_world):
    marker = f"rk-orphan-{os.getpid()}"
    command = [sys.executable, "-c", COORDINATOR, str(any_world.trial), marker, any_world.limits_json()]
    with subprocess.Popen(command) as coordinator:
        any_world.wait_until(lambda: (any_world.trial / "started").exists())
        coordinator.kill()
    any_world.wait_until(lambda: alive(marker) == [])

    # Its place still belongs to the user of the dead command; the next one takes it over.
    done = any_world.run("/bin/sh", "-c", "echo more >> started")
    assert (done.exit_code, (any_world.trial / "started").read_text()) == (0, "more\n"), done
    assert (any_world.trial / "started").stat().st_uid == os.geteuid()


def test_c06_a_coordinator_killed_before_the_gate_starts_nothing(any_world):
    marker = f"rk-early-{os.getpid()}"
    command = [sys.executable, "-c", COORDINATOR, str(any_world.trial), marker, any_world.limits_json()]
    for _ in range(3):
        with subprocess.Popen(command) as coordinator:
            # A second command line with the marker is bubblewrap's, and the gate comes later.
            any_world.wait_until(lambda: len(alive(marker)) >= 2)
            coordinator.kill()
        any_world.wait_until(lambda: alive(marker) == [])


def test_fault_03_a_dying_command_is_told_apart(world):
    killed = world.run("/bin/sh", "-c", "kill -KILL $$")
    left = world.run("/bin/sh", "-c", "exit 137")
    crashed = world.run("/bin/sh", "-c", "kill -SEGV $$")

    assert (killed.end_reason, killed.signal, killed.exit_code) == ("signal", signal.SIGKILL, None)
    assert (left.end_reason, left.signal, left.exit_code) == ("exited", None, 137)
    assert (crashed.end_reason, crashed.signal) == ("signal", signal.SIGSEGV)


@pytest.fixture
def root_world(make_world):
    return make_world("root")


@pytest.mark.needs_root
def test_c13_files_of_root_and_setuid_programs_are_no_use(root_world):
    secret = root_world.root / "incumbent" / "key"
    secret.write_text("for root alone")
    secret.chmod(0o600)
    setuid = root_world.root / "incumbent" / "whoami"
    setuid.write_bytes(Path("/usr/bin/id").read_bytes())
    setuid.chmod(0o4755)
    grants = {"readable": [root_world.root / "incumbent"]}
    reading = root_world.run("/bin/cat", str(secret), **grants)
    running = root_world.run(str(setuid), "-u", **grants)

    assert (reading.exit_code, reading.stdout_tail) == (1, "")
    assert running.stdout_tail == f"{running.boundary.uid}\n"
    assert running.boundary.dropped_from_root


@pytest.mark.needs_root
def test_c13_two_slots_have_different_users_and_do_not_see_each_other(root_world):
    other = root_world.root / "other-place"
    other.mkdir()
    wait = "import os, time\nopen('here', 'w').close()\nwhile not os.path.exists('leave'): time.sleep(0.01)"
    kept = []
    thread = threading.Thread(
        target=lambda: kept.append(root_world.python(wait, writable=[other], readable=[], cwd=other))
    )
    thread.start()
    try:
        root_world.wait_until(lambda: (other / "here").exists())
        taken = (other / "here").stat().st_uid
        look = "import os; print(os.getuid(), sorted(int(n) for n in os.listdir('/proc') if n.isdigit()))"
        mine = root_world.python(look)
        (other / "below").mkdir()
        for place in (other, other / "below", root_world.root):
            with pytest.raises(Exception, match="writable-in-use"):
                root_world.run("/bin/true", writable=[place], readable=[], cwd=place)
    finally:
        (other / "leave").touch()
        thread.join()

    assert mine.stdout_tail == f"{mine.boundary.uid} [1, 2]\n"
    assert {taken, mine.boundary.uid} == {kept[0].boundary.uid, mine.boundary.uid}
    assert taken != mine.boundary.uid
    assert (other / "here").stat().st_uid == 0


@pytest.mark.needs_root
def test_c13_the_process_limit_of_one_slot_is_not_anothers(root_world):
    other = root_world.root / "other-place"
    other.mkdir()
    fill = (
        "import os, time\n"
        "try:\n    while True:\n        if os.fork() == 0: time.sleep(600)\n"
        "except OSError: open('full', 'w').close()\n"
        "while not os.path.exists('leave'): time.sleep(0.01)\nos._exit(0)\n"
    )
    place = {"writable": [other], "readable": [], "cwd": other}
    kept = []
    thread = threading.Thread(target=lambda: kept.append(root_world.python(fill, pids=20, **place)))
    thread.start()
    try:
        root_world.wait_until(lambda: (other / "full").exists() or not thread.is_alive())
        mine = root_world.run(
            "/bin/sh", "-c", "for n in 1 2 3 4 5; do sleep 0 & done; wait; echo five", pids=20
        )
    finally:
        (other / "leave").touch()
        thread.join()

    assert (other / "full").exists(), kept
    assert (mine.exit_code, mine.stdout_tail) == (0, "five\n"), mine


@pytest.mark.needs_root
def test_c13_writable_places_come_back_to_root_whatever_their_depth(root_world):
    deep = "import os\nfor _ in range(1200):\n    os.mkdir('d'); os.chdir('d')\nopen('end', 'w').close()"
    done = root_world.python(deep, writable=[root_world.trial], readable=[])

    assert done.exit_code == 0, done.stderr_tail
    assert (root_world.trial / "d").stat().st_uid == 0
    found = subprocess.run(
        ["find", str(root_world.trial), "-uid", f"+{60999}"], capture_output=True, check=True
    )
    assert found.stdout == b""
    subprocess.run(["rm", "-rf", str(root_world.trial / "d")], check=True)


@pytest.mark.needs_root
def test_c13_a_file_with_a_name_outside_keeps_its_owner(root_world):
    outside = root_world.root / "store" / "round.db"
    (root_world.trial / "alias").hardlink_to(outside)
    before = outside.stat()
    done = root_world.run("/bin/sh", "-c", "echo owned > alias")

    assert done.exit_code != 0
    assert (outside.stat().st_uid, outside.read_bytes()) == (before.st_uid, b"the coordinator's own")


@pytest.mark.needs_root
def test_c13_a_file_with_two_names_inside_stays_usable(root_world):
    first = root_world.run("/bin/sh", "-c", "echo one > a; ln a b")
    second = root_world.run("/bin/sh", "-c", "echo two > a; cat b")

    assert (first.exit_code, second.stdout_tail) == (0, "two\n"), second.stderr_tail
    assert (root_world.trial / "b").stat().st_uid == 0


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="only a coordinator that root started has slots")
def test_c13_what_a_dead_coordinator_left_under_a_slots_user_is_ended() -> None:
    """A bubblewrap that waits for a coordinator that was killed would block its user id for ever."""
    uid = FIRST_UID + SLOTS - 1  # the last one, which nothing else takes
    idle = subprocess.Popen(["/bin/sleep", "600"], user=uid, group=uid, extra_groups=[])
    try:
        _wait_until_unused(uid)
        assert idle.wait(timeout=60) == -signal.SIGKILL
    finally:
        idle.kill()
        idle.wait()
