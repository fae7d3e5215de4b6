"""What a confined command cannot write (C01, C08), read (C02), or reach by network (C03)."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from roundkit.core.errors import Refused
from roundkit.host.confine import Network
from roundkit.host.confine.places import open_places


@pytest.fixture
def listeners(tmp_path_factory):
    """TCP, UDP, pathname and abstract sockets of the host that answer whoever comes."""
    reached = []
    tcp = socket.create_server(("127.0.0.1", 0))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind(f"\0roundkit-test-{os.getpid()}")
    abstract.listen()

    def accept(listener):
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            reached.append(listener.getsockname())
            peer.close()

    threads = [threading.Thread(target=accept, args=(item,), daemon=True) for item in (tcp, abstract)]
    for thread in threads:
        thread.start()
    yield tcp.getsockname()[1], udp, abstract.getsockname()[1:].decode(), reached
    for item in (tcp, abstract):
        item.shutdown(socket.SHUT_RDWR)
        item.close()
    udp.close()
    for thread in threads:
        thread.join()


def test_c01_write_outside_is_denied(attacked):
    told = attacked.attempts("write_outside.py", str(attacked.root))

    got_through = {name for name, result in told.items() if result == "SUCCEEDED"}
    assert got_through == {name for name in told if name.startswith("allowed: ")}
    assert len(told) > 90
    assert attacked.changed() == set()


def test_c01_nothing_written_inside_appears_elsewhere(attacked):
    attacked.attempts("write_outside.py", str(attacked.root))

    assert (attacked.trial / "result.json").read_bytes() == b"owned"
    assert (attacked.scratch / "x").read_bytes() == b"owned"
    source = attacked.checkout / "src" / "program.py"
    assert source.read_text() == "print('candidate')\n"


def test_c01_a_parent_of_a_protected_file_cannot_be_swapped(world):
    bench = world.checkout / "bench"
    attack = (
        "import os, sys\n"
        "bench = sys.argv[1]\n"
        "for old in (bench, bench + '/benchmark.py'):\n"
        "    try:\n"
        "        os.rename(old, old + '.old')\n"
        "        sys.exit('renamed ' + old)\n"
        "    except OSError:\n"
        "        pass\n"
        "print(open(bench + '/benchmark.py').read())\n"
    )
    done = world.python(attack, str(bench))

    assert (done.exit_code, done.stdout_tail) == (0, "print('honest')\n\n"), done.stderr_tail
    assert (bench / "benchmark.py").read_text() == "print('honest')\n"


def test_c01_a_link_where_a_protected_file_belongs_is_refused(world, refused):
    (world.checkout / "bench" / "benchmark.py").unlink()
    (world.checkout / "bench" / "benchmark.py").symlink_to(world.root / "store" / "round.db")

    assert refused(world.run, "true") == "mount-point"
    assert world.changed() == set()


def test_c01_a_link_on_the_way_to_a_granted_place_is_refused(any_world, refused):
    (any_world.root / "alias").symlink_to(any_world.root / "store")

    for place in (any_world.root / "alias", any_world.root / "alias" / "round.db"):
        assert refused(any_world.run, "true", readable=[place]) == "mount-source-link"


@pytest.mark.parametrize("place", ["/", "/etc", "/usr/lib", "/proc", "/dev", "/run"])
def test_c01_system_places_are_never_writable(any_world, refused, place):
    assert refused(any_world.run, "true", writable=[Path(place)]) in {"mount-source", "mount-source-missing"}


@pytest.mark.parametrize("place", ["//etc", "//usr/lib", "//proc"])
def test_c01_two_slashes_in_front_make_no_other_place(place):
    with ExitStack() as stack, pytest.raises(Refused) as refused:
        open_places([Path(place)], [], stack)
    assert [refusal.code for refusal in refused.value.refusals] == ["mount-source"]


def test_c02_read_outside_is_denied(attacked, listeners):
    _, _, abstract, reached = listeners
    path = attacked.root / "service.sock"
    service = socket.socket(socket.AF_UNIX)
    service.bind(str(path))
    path.chmod(0o777)
    service.listen()
    with service:
        # The socket's folder is granted on purpose: a path that can be read is not one to connect to.
        _, readable = attacked.grants()
        told = attacked.attempts(
            "read_outside.py",
            *(str(attacked.root), str(os.getpid()), str(path), abstract),
            readable=[*readable, attacked.root / "incumbent"],
        )

    assert {name for name, result in told.items() if result.startswith("SUCCEEDED")} == set()
    assert reached == []
    assert set(json.loads(told["processes"])) <= {1, 2, 3}
    assert json.loads(told["descriptors"]) == [0, 1, 2]
    assert json.loads(told["environment"]) == {
        "PATH": "/usr/bin:/bin",
        "HOME": "/home/somebody",
        "LANG": "C.UTF-8",
    }
    assert told["init environment"] == "b''"
    assert str(attacked.trial) not in told["init arguments"]
    assert json.loads(told["reopened init descriptors"]) == []
    assert [json.loads(told[name]) for name in ("tmp", "shm", "home", "run")] == [[], [], [], []]


def test_c02_the_identity_has_no_rights(attacked):
    told = attacked.attempts("read_outside.py", str(attacked.root), "1", "/none", "none")
    uid, effective, gid, groups = json.loads(told["identity"])
    status = dict(line.split(":\t", 1) for line in told["status"].splitlines() if ":\t" in line)

    assert uid == effective != 0
    assert uid != 65534
    assert 0 not in {gid, *groups}
    assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"


def test_c02_a_descriptor_left_open_by_the_coordinator_is_not_inherited(any_world):
    secret = os.open(any_world.root / "store" / "round.db", os.O_RDONLY)
    os.set_inheritable(secret, True)
    try:
        done = any_world.run("/bin/sh", "-c", "ls /proc/self/fd; cat <&9; ls -l /proc/1/fd")
    finally:
        os.close(secret)

    assert "round.db" not in done.stdout_tail
    assert done.stdout_tail.split()[:4] == ["0", "1", "2", "3"]


IPC = """
import ctypes, json, os, sys
key, name = int(sys.argv[1]), sys.argv[2].encode()
libc = ctypes.CDLL(None, use_errno=True)
told = {}
for what, found in (
    ("shared memory", lambda: libc.shmget(key, 0, 0)),
    ("semaphores", lambda: libc.semget(key, 0, 0)),
    ("messages", lambda: libc.msgget(key, 0)),
    ("message queue", lambda: ctypes.CDLL("librt.so.1", use_errno=True).mq_open(name, os.O_RDWR)),
    ("queue's file", lambda: 0 if os.path.exists("/dev/mqueue" + name.decode()) else -1),
    ("file in memory", lambda: 0 if os.path.exists("/dev/shm" + name.decode()) else -1),
):
    told[what] = found() >= 0
print(json.dumps(told))
"""


def test_c02_ipc_objects_of_the_host_are_not_there(world):
    key, name = 0x526B0000 + os.getpid() % 0xFFFF, f"/roundkit-{os.getpid()}"
    libc, rt = ctypes.CDLL(None, use_errno=True), ctypes.CDLL("librt.so.1", use_errno=True)
    create, everybody = 0o1000, 0o666
    shared = libc.shmget(key, 4096, create | everybody)
    semaphores = libc.semget(key, 1, create | everybody)
    messages = libc.msgget(key, create | everybody)
    queue = rt.mq_open(name.encode(), os.O_CREAT | os.O_RDWR, everybody, None)
    in_memory = Path("/dev/shm" + name)
    in_memory.write_bytes(b"the host's")
    try:
        assert min(shared, semaphores, messages, queue) >= 0
        outside = json.loads(subprocess.check_output([sys.executable, "-c", IPC, str(key), name], text=True))
        inside = world.attempts(IPC, str(key), name)
    finally:
        in_memory.unlink()
        rt.mq_unlink(name.encode())
        libc.shmctl(shared, 0, None)
        libc.semctl(semaphores, 0, 0)
        libc.msgctl(messages, 0, None)
        os.close(queue)

    assert outside["shared memory"] and outside["message queue"] and outside["file in memory"]
    assert set(inside.values()) == {False}, inside


def test_c02_a_handle_of_a_file_opens_nothing(world):
    """A real handle, made outside: whoever may open by handle needs no path."""
    libc = ctypes.CDLL(None, use_errno=True)
    room = 128
    handle = ctypes.create_string_buffer(room.to_bytes(4, sys.byteorder) + bytes(room + 4), room + 8)
    mount_id = ctypes.c_int()
    secret = str(world.root / "store" / "round.db").encode()
    made = libc.name_to_handle_at(-100, secret, handle, ctypes.byref(mount_id), 0)
    script = (
        "import ctypes, os, sys\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "handle = ctypes.create_string_buffer(bytes.fromhex(sys.argv[1]))\n"
        "for place in ('.', '/usr', '/tmp'):\n"
        "    found = libc.open_by_handle_at(os.open(place, os.O_RDONLY), handle, os.O_RDONLY)\n"
        "    print(found, ctypes.get_errno())\n"
    )
    done = world.python(script, handle.raw.hex())

    assert made == 0 or ctypes.get_errno() == errno.EOPNOTSUPP  # a file system without handles
    assert done.stdout_tail == f"-1 {errno.EPERM}\n" * 3, done


def test_c03_network_is_denied(attacked, listeners):
    port, udp, _, reached = listeners
    told = attacked.attempts("network.py", str(port), str(udp.getsockname()[1]))

    assert {name for name, result in told.items() if result.startswith("SUCCEEDED")} == {
        "allowed: own loopback"
    }
    assert reached == []
    udp.setblocking(False)
    with pytest.raises(BlockingIOError):
        udp.recv(1)


def test_c03_the_hosts_network_is_reached_only_by_name_and_labelled(any_world, listeners):
    port, _, _, reached = listeners
    script = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1]))).close()"
    done = any_world.python(script, str(port), network=Network.host())

    assert (done.exit_code, done.boundary.network) == (0, "host"), done.stderr_tail
    any_world.wait_until(lambda: len(reached) == 1)
