"""K07: a command has the device files that it is granted, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from roundkit.core.clock import Deadline
from roundkit.core.errors import Refused
from roundkit.host.confine import Limits, confined_execute

NODE = Path("/dev/fuse")
_LIMITS = Limits(
    output_bytes=1 << 16, output_kill_bytes=1 << 16, file_bytes=1 << 16, open_files=64, tmp_bytes=1 << 20
)
_OPEN = "if (exec 3<>/dev/fuse) 2>/dev/null; then echo opened; else ls /dev/fuse 2>&1; fi"


def said(devices: tuple[Path, ...], folder: Path) -> tuple[str, list[str]]:
    done = confined_execute(
        ["/bin/sh", "-c", _OPEN], cwd=Path("/tmp"), writable=[folder], readable=[], devices=devices,
        deadline=Deadline.after(30), env={"PATH": "/usr/bin:/bin"}, limits=_LIMITS,
    )  # fmt: skip
    return done.stdout_tail or "", [mount.at for mount in done.boundary.mounts]


def test_k07_a_granted_device_file_can_be_used_and_no_other_is_there(open_folder: Path) -> None:
    (open_folder / "work").mkdir()
    if not NODE.is_char_device():
        pytest.fail(f"this test needs {NODE}, which every Linux with FUSE has")
    answer, mounts = said((NODE,), open_folder / "work")
    assert answer == "opened\n"
    assert str(NODE) in mounts
    answer, mounts = said((), open_folder / "work")
    assert "No such file" in answer
    assert str(NODE) not in mounts


def test_k07_only_device_files_are_granted_as_such(open_folder: Path) -> None:
    (open_folder / "work").mkdir()
    for path in (Path("/etc/passwd"), Path("/dev/shm"), Path("/dev/../dev/fuse"), Path("/dev/not-there")):
        with pytest.raises(Refused, match="device-node"):
            said((path,), open_folder / "work")
