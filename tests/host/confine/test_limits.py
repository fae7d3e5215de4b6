"""Exhaustion is bounded and named (C05), and limits are recorded as they held (C12)."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from roundkit.host.confine import ConfinementUnavailable, sweep
from roundkit.host.confine.cgroup import Cgroup
from roundkit.host.confine.hierarchies import hierarchies


def cgroups_hold(world, *names):
    """Say whether this world's coordinator may make the groups that hold these limits."""
    if world.mode != "root":
        return False
    group = Cgroup(world.limits(memory_bytes=1 << 30, pids=100))
    group.close()
    return set(names) <= group.enforced.keys()


FORK_BOMB = """
import os, time
while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.01)
"""


def test_c05_a_fork_bomb_is_held_and_named(world):
    done = world.python(FORK_BOMB, pids=20, deadline_s=2)

    assert done.boundary.enforced()["pids"] in {"cgroup-v1", "cgroup-v2", "rlimit-nproc"}
    assert done.end_reason == ("pids" if cgroups_hold(world, "pids") else "deadline")


COUNT_CHILDREN = """
import os, sys, time
made = 0
try:
    while made < 200:
        if os.fork() == 0:
            time.sleep(30)
        made += 1
except OSError:
    pass
print(made)
os._exit(0)
"""


def test_c05_no_more_processes_than_the_limit(world):
    done = world.python(COUNT_CHILDREN, pids=20)

    made = int(done.stdout_tail or 20)
    assert 10 <= made <= 20


def test_c05_memory_is_bounded_and_named(world):
    greedy = "held = []\nwhile True: held.append(bytearray(b'x') * (8 << 20))"
    done = world.python(greedy, memory_bytes=200 << 20)

    if cgroups_hold(world, "memory"):
        assert done.end_reason == "memory"
        assert done.boundary.enforced()["memory_bytes"].startswith("cgroup")
        assert 100 << 20 < done.peak_memory_bytes <= 201 << 20
    else:
        assert (done.end_reason, done.exit_code) == ("exited", 1)
        assert "MemoryError" in done.stderr_tail
        assert done.boundary.enforced()["memory_bytes"] == "rlimit-as"


def test_c05_endless_output_is_read_bounded_and_ended(world):
    done = world.run("/bin/sh", "-c", "yes candidate", output_bytes=4096, output_kill_bytes=1 << 20)

    assert done.end_reason == "output-limit"
    assert len(done.stdout_tail) < 4096 + 100
    assert done.stdout_tail.startswith("candidate\n")
    assert "bytes left out" in done.stdout_tail
    assert done.stdout_bytes > 1 << 20


def test_c05_output_digest_covers_every_byte(any_world):
    script = "import sys; sys.stdout.write('abc' * 100000); sys.stderr.write('é' * 10)"
    done = any_world.python(script, output_bytes=1000)

    assert done.stdout_sha256 == hashlib.sha256(b"abc" * 100000).hexdigest()
    assert done.stdout_bytes == 300000
    assert (done.stderr_tail, done.stderr_bytes) == ("é" * 10, 20)


FILL = """
import os, sys
where = sys.argv[1]
number = 0
while True:
    number += 1
    with open(os.path.join(where, str(number)), "wb") as stream:
        stream.write(b"x" * (1 << 20))
"""


@pytest.mark.parametrize("where", ["trial", "scratch"])
def test_c05_a_full_disk_is_prevented_in_writable_places(world, where):
    place = getattr(world, where)
    done = world.python(FILL, str(place), disk_bytes=30 << 20, deadline_s=30)

    assert done.end_reason == "disk-limit", done
    shutil.rmtree(place)


def test_c05_deleted_but_open_files_count(world):
    script = (
        "import os\nheld = []\nwhile True:\n"
        "    held.append(open('x', 'wb')); held[-1].write(b'x' * (1 << 20)); os.unlink('x')"
    )
    done = world.python(script, disk_bytes=30 << 20)

    assert (done.end_reason, "grew by" in done.detail) == ("disk-limit", True), done


def test_c05_files_in_memory_alone_count(world):
    script = (
        "import os\nheld = []\nwhile True:\n"
        "    held.append(os.memfd_create('x')); os.write(held[-1], b'x' * (1 << 20))"
    )
    done = world.python(script, disk_bytes=30 << 20)

    assert (done.end_reason, "grew by" in done.detail) == ("disk-limit", True), done


@pytest.mark.parametrize("where", ["/tmp", "/dev/shm", "/home/somebody"])
def test_c05_private_places_have_an_end(world, where):
    done = world.python(FILL, where)

    assert (done.end_reason, done.exit_code) == ("exited", 1)
    assert "No space left on device" in done.stderr_tail


def test_c05_one_file_has_an_end_even_if_sparse(world):
    sparse = world.python("import os; os.truncate(os.open('x', os.O_CREAT | os.O_WRONLY), 10 << 30)")
    signalled = world.run("/bin/sh", "-c", "head -c 100000000 /dev/zero > big", file_bytes=1 << 20)

    assert sparse.exit_code == 1
    assert "File too large" in sparse.stderr_tail
    assert signalled.exit_code != 0
    assert (world.trial / "big").stat().st_size == 1 << 20


@pytest.mark.parametrize("where", [".", "/tmp"])
def test_c05_a_flood_of_small_files_is_ended(world, where):
    script = "import os, sys\nos.chdir(sys.argv[1])\nn = 0\nwhile True:\n    n += 1; os.mknod(str(n))"
    done = world.python(script, where, disk_files=2000, deadline_s=30)

    assert (done.end_reason, "files" in done.detail) == ("disk-limit", True), done


def test_c05_a_tree_nested_out_of_sight_is_ended(any_world):
    script = "import os, time\nfor _ in range(400): os.mkdir('d'); os.chdir('d')\ntime.sleep(60)"
    done = any_world.python(script, disk_bytes=30 << 20)

    assert (done.end_reason, "deeper" in done.detail) == ("disk-limit", True), done


def test_c05_cpu_time_is_bounded_and_named(world):
    done = world.python("while True: pass", cpu_s=1, deadline_s=60)

    assert done.end_reason == "cpu", done
    assert done.cpu_s > 0.5


def test_c05_a_child_that_burns_cpu_counts(any_world):
    if not cgroups_hold(any_world):
        pytest.skip("without a cgroup the limit is one of each process")
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
    done = any_world.python(script, cpu_s=1, deadline_s=60)

    assert (done.end_reason, done.cpu_source) == ("cpu", "cgroup")


def test_c05_open_files_are_bounded(any_world):
    done = any_world.python("held = [open('/dev/null') for _ in range(100)]", open_files=50)

    assert "Too many open files" in done.stderr_tail


def test_c12_limits_are_recorded_as_they_held(world):
    done = world.run("true", memory_bytes=512 << 20, pids=50, cpu_s=10, disk_bytes=1 << 30)
    by = done.boundary.enforced()
    scope = {limit.name: limit.scope for limit in done.boundary.limits}

    assert (by["disk_bytes"], by["file_bytes"], by["output_bytes"]) == ("watchdog", "rlimit-fsize", "reader")
    assert "disk_files" not in by
    if cgroups_hold(world, "memory", "pids"):
        assert {by["memory_bytes"][:6], by["pids"][:6]} == {"cgroup"}
        assert scope["memory_bytes"] == "run"
    else:
        assert (by["memory_bytes"], by["pids"], by["cpu_s"]) == ("rlimit-as", "rlimit-nproc", "rlimit-cpu")
        assert scope["memory_bytes"] == "process"
        assert done.peak_memory_bytes is None


@pytest.mark.needs_root
def test_c12_a_root_without_cgroups_records_what_is_left(make_world, new_actor):
    world = make_world("root")
    if shutil.which("unshare") is None:
        pytest.skip("no unshare")
    hide = 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"'
    actor = new_actor("unshare", "--mount", "/bin/sh", "-c", hide, "sh", as_root=True)
    done = world.run("true", actor=actor, memory_bytes=512 << 20, pids=50, cpu_s=10)
    by = done.boundary.enforced()
    scope = {limit.name: limit.scope for limit in done.boundary.limits}

    assert done.boundary.dropped_from_root
    assert (by["memory_bytes"], by["pids"], by["cpu_s"]) == ("rlimit-as", "rlimit-nproc", "rlimit-cpu")
    assert (scope["memory_bytes"], scope["pids"], scope["cpu_s"]) == ("process", "run", "process")
    assert (done.peak_memory_bytes, done.cpu_source) == (None, "procfs")
    held = world.python(COUNT_CHILDREN, actor=actor, pids=20)
    assert 10 <= int(held.stdout_tail or 20) <= 20
    with pytest.raises(ConfinementUnavailable, match="limit-not-enforceable"):
        world.run("true", actor=actor, pids=50, require=["pids"])


def test_c12_a_required_limit_that_cannot_hold_is_a_refusal(make_world):
    world = make_world("user")
    if os.geteuid() != 0:
        group = Cgroup(world.limits(memory_bytes=1 << 30))
        group.close()
        if "memory" in group.enforced:
            pytest.skip("this user has a delegated cgroup")
    with pytest.raises(ConfinementUnavailable) as caught:
        world.run("/bin/touch", "ran", memory_bytes=512 << 20, require=["memory"])

    assert caught.value.reason == "limit-not-enforceable"
    assert "memory" in caught.value.detail
    assert not (world.trial / "ran").exists()


def test_c12_a_required_limit_without_an_amount_is_no_plan(any_world):
    with pytest.raises(ValueError, match="required without an amount: pids"):
        any_world.limits(require=["pids"])


def test_c12_groups_of_dead_coordinators_are_swept(any_world):
    with subprocess.Popen(["true"]) as dead:
        dead.wait()
    left = []
    for hierarchy in {item for items in hierarchies().values() for item in items}:
        path = hierarchy.base / f"roundkit-{dead.pid}-0"
        with suppress(OSError):
            path.mkdir()
            left.append(path)
    if not left:
        pytest.skip("no group can be made here")

    assert set(left) <= set(sweep())
    assert not any(path.exists() for path in left)


def groups_with_processes() -> dict[Path, str]:
    bases = {item.base for items in hierarchies().values() for item in items}
    groups = [path for base in bases for path in base.glob(f"roundkit-{os.getpid()}-*")]
    return {path: (path / "cgroup.procs").read_text() for path in groups}


def test_c12_no_group_is_left_behind(any_world):
    before = groups_with_processes()
    any_world.run("true", memory_bytes=512 << 20, pids=50)
    after = groups_with_processes()

    assert {path: processes for path, processes in after.items() if path not in before} == {}
    assert before == {}, "an earlier run of this process left something behind, or is not over"
