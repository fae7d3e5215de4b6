"""What a confined command leaves behind is read as hostile (C07)."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from roundkit.host.confine import HostileOutput, read_output

LEAVE = """
import os
open('good', 'w').write('{"ms": 1.5}')
os.makedirs('deep/er')
open('deep/er/good', 'w').write('deep')
os.symlink('good', 'link')
os.symlink('/etc/passwd', 'absolute link')
os.symlink('deep', 'linked folder')
os.symlink('loop', 'loop')
os.symlink('/dev/zero', 'endless')
os.mkfifo('fifo')
os.mkdir('folder')
open('first name', 'w').write('x')
os.link('first name', 'second name')
os.truncate(os.open('sparse', os.O_CREAT | os.O_WRONLY), 60 << 20)
open('new\\nline', 'w').write('n')
open(b'not \\xff utf-8', 'w').write('u')
open('unreadable', 'w').write('mine')
os.chmod('unreadable', 0)
os.mkdir('closed')
open('closed/inside', 'w').write('inside')
os.chmod('closed', 0)
open('empty', 'w')
"""


@pytest.fixture
def left(world):
    done = world.python(LEAVE)
    assert done.exit_code == 0, done.stderr_tail
    return world.trial


def reason(root, name, max_bytes=1 << 20):
    with pytest.raises(HostileOutput) as caught:
        read_output(root, name, max_bytes)
    return caught.value.reason


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("link", "link"),
        ("absolute link", "link"),
        ("linked folder/er/good", "link"),
        ("loop", "link"),
        ("endless", "link"),
        ("fifo", "not-a-file"),
        ("folder", "not-a-file"),
        ("second name", "hard-link"),
        ("sparse", "too-large"),
        ("never written", "missing"),
        ("good/below", "missing"),
        ("", "unsafe-name"),
        (".", "unsafe-name"),
        ("/etc/passwd", "unsafe-name"),
        ("../store/round.db", "unsafe-name"),
        ("deep/../good", "unsafe-name"),
        ("good\0", "unsafe-name"),
        ("x" * 5000, "unsafe-name"),
    ],
)
def test_c07_hostile_leftovers_are_rejected(left, name, expected):
    assert reason(left, name) == expected


def test_c07_plain_leftovers_are_read_whatever_their_names(left):
    assert read_output(left, "good", 100) == b'{"ms": 1.5}'
    assert read_output(left, "deep/er/good", 4) == b"deep"
    assert read_output(left, "new\nline", 1) == b"n"
    assert read_output(left, os.fsdecode(b"not \xff utf-8"), 1) == b"u"
    assert read_output(left, "empty", 1) == b""
    assert reason(left, "deep/er/good", 3) == "too-large"


def test_c07_a_deep_tree_is_read_or_refused(any_world):
    done = any_world.python(
        "import os\nfor _ in range(800):\n    os.mkdir('d'); os.chdir('d')\nopen('end', 'w')"
    )
    assert done.exit_code == 0, done.stderr_tail
    deep = any_world.trial

    assert read_output(deep, "d/" * 800 + "end", 1) == b""
    assert reason(deep, "d/" * 799 + "d") == "not-a-file"
    assert reason(deep, "d/" * 801 + "end") == "missing"
    assert reason(deep, "d/" * 3000 + "end") == "unsafe-name"


def test_c07_modes_that_lock_the_reader_out_are_no_traceback(left):
    if os.geteuid() == 0:
        assert read_output(left, "unreadable", 10) == b"mine"
        assert read_output(left, "closed/inside", 10) == b"inside"
    else:
        assert {reason(left, "unreadable"), reason(left, "closed/inside")} == {"unreadable"}


def test_c07_sockets_and_devices_are_not_opened(tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
    assert reason(tmp_path, "socket") == "not-a-file"
    if os.geteuid() == 0:
        os.mknod(tmp_path / "zero", 0o020666, os.makedev(1, 5))
        assert reason(tmp_path, "zero") == "not-a-file"


@pytest.mark.needs_root
def test_c07_another_file_system_is_not_entered():
    if os.geteuid() != 0:
        pytest.skip("must be started by root")
    assert reason(Path("/"), "proc/version") == "outside"
