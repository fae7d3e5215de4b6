"""R21: on one host a device has at most one holder, and a dead holder holds nothing. Real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from roundkit.core.errors import Refused
from roundkit.host.lease import acquire_set, default_lease_root, holders, lease_file

_HOLD = """
import subprocess, sys
from pathlib import Path
from roundkit.host.lease import acquire_set
lease = acquire_set(sys.argv[2:], root=Path(sys.argv[1]), purpose="other round", round_id="R2")
print("refused" if lease is None else "held", flush=True)
{more}
sys.stdin.read()
"""


@contextmanager
def other_process(root: Path, *devices: str, more: str = "") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a process that tries to hold devices; yields it and what it said."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD.format(more=more), str(root), *devices],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def test_r21_second_process_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    with acquire_set(["cpu:0"], root=tmp_path, purpose="ticket") as lease:
        assert lease.devices == ("cpu:0",)
        with other_process(tmp_path, "cpu:0") as (_, said):
            assert said == "refused"
    with other_process(tmp_path, "cpu:0") as (_, said):
        assert said == "held"


def test_fault_15_two_rounds_never_share_a_device(tmp_path: Path) -> None:
    with other_process(tmp_path, "cpu:0", "cpu:1") as (_, said):
        assert said == "held"
        assert acquire_set(["cpu:1", "cpu:2"], root=tmp_path, purpose="ticket") is None
        with acquire_set(["cpu:2", "cpu:3"], root=tmp_path, purpose="ticket") as lease:
            assert lease is not None


def test_fault_05_sigkill_of_a_holder_frees_its_devices_at_once(tmp_path: Path) -> None:
    with other_process(tmp_path, "cpu:0", "cpu:1") as (process, said):
        assert said == "held"
        process.send_signal(signal.SIGKILL)
        process.wait()
        with acquire_set(["cpu:0", "cpu:1"], root=tmp_path, purpose="ticket") as lease:
            assert lease is not None


def test_fault_05_a_surviving_child_of_a_dead_holder_holds_nothing(tmp_path: Path) -> None:
    # Even a child that is started with every descriptor of its parent does not get the lock.
    more = "child = subprocess.Popen(['sleep', '600'], close_fds=False); print(child.pid, flush=True)"
    with other_process(tmp_path, "cpu:0", more=more) as (process, said):
        assert said == "held"
        assert process.stdout is not None
        child = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        process.wait()
        try:
            os.kill(child, 0)
            with acquire_set(["cpu:0"], root=tmp_path, purpose="ticket") as lease:
                assert lease is not None
        finally:
            os.kill(child, signal.SIGKILL)


def test_refused_set_leaves_none_of_its_devices_held(tmp_path: Path) -> None:
    with acquire_set(["cpu:5"], root=tmp_path, purpose="ticket"):
        assert acquire_set(["cpu:1", "cpu:5", "cpu:9"], root=tmp_path, purpose="ticket") is None
        with acquire_set(["cpu:1", "cpu:9"], root=tmp_path, purpose="ticket") as lease:
            assert lease is not None


@pytest.mark.parametrize(("set_back_s", "waited_for"), [(0.2, True), (3600.0, False)])
def test_r21_leases_do_not_overlap_by_a_clock_that_was_set_back_between_them(
    tmp_path: Path, set_back_s: float, *, waited_for: bool
) -> None:
    with acquire_set(["cpu:0"], root=tmp_path, purpose="ticket"):
        pass
    left = lease_file(tmp_path, "cpu:0")
    released = left.stat().st_mtime + set_back_s  # as it would look from the clock after it was set
    os.utime(left, (released, released))
    with acquire_set(["cpu:0"], root=tmp_path, purpose="ticket") as lease:
        assert lease is not None
        assert (lease.acquired_utc.timestamp() >= released) == waited_for


def test_one_process_does_not_share_a_device_with_itself(tmp_path: Path) -> None:
    with acquire_set(["cpu:0", "cpu:0"], root=tmp_path, purpose="ticket") as lease:
        assert lease.devices == ("cpu:0",)
        assert acquire_set(["cpu:0"], root=tmp_path, purpose="ticket") is None
    lease.release()
    assert holders(tmp_path) == []


def test_holders_are_listed_with_what_they_do_and_the_dead_are_not(tmp_path: Path) -> None:
    with other_process(tmp_path, "cpu:0") as (process, _):
        [holder] = holders(tmp_path)
        assert (holder.device, holder.pid, holder.round_id) == ("cpu:0", process.pid, "R2")
        assert holder.purpose == "other round"
        assert holder.acquired_utc is not None
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert lease_file(tmp_path, "cpu:0").stat().st_size > 0
        assert holders(tmp_path) == []


def test_a_forged_note_frees_nothing_and_names_nobody(tmp_path: Path) -> None:
    with acquire_set(["cpu:0"], root=tmp_path, purpose="ticket"):
        lease_file(tmp_path, "cpu:0").write_text('{"pid": "nobody"')
        [holder] = holders(tmp_path)
        assert holder.pid is None
        assert acquire_set(["cpu:0"], root=tmp_path, purpose="ticket") is None


def test_removed_lease_file_is_noticed_by_its_holder(tmp_path: Path) -> None:
    with acquire_set(["cpu:0", "cpu:1"], root=tmp_path, purpose="ticket") as lease:
        assert lease.lost() == []
        lease_file(tmp_path, "cpu:1").unlink()
        assert lease.lost() == ["cpu:1"]


def test_lock_file_is_never_reached_through_a_link(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("kept")
    lease_file(tmp_path, "cpu:0").symlink_to(elsewhere)
    with pytest.raises(Refused, match="lease-file"):
        acquire_set(["cpu:0"], root=tmp_path, purpose="ticket")
    assert elsewhere.read_text() == "kept"


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="takes root to act as another user")
def test_r21_devices_are_shared_out_between_users() -> None:
    root = Path("/tmp", f"roundkit-lease-test-{os.getpid()}")
    root.mkdir(mode=0o1777)
    root.chmod(0o1777)
    other = ["setpriv", "--reuid=1234", "--regid=1234", "--clear-groups", "--"]
    file = lease_file(root, "cpu:0")
    try:
        with acquire_set(["cpu:0"], root=root, purpose="ticket") as lease:
            assert lease is not None
            refused = subprocess.run([*other, "flock", "--nonblock", str(file), "true"], check=False)
            assert refused.returncode == 1
        assert subprocess.run([*other, "flock", "--nonblock", str(file), "true"], check=False).returncode == 0
    finally:
        file.unlink()
        root.rmdir()


def test_lease_root_comes_from_the_environment_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUNDKIT_LEASE_ROOT", str(tmp_path / "a" / "b"))
    assert default_lease_root() == tmp_path / "a" / "b"
    assert (tmp_path / "a" / "b").stat().st_mode & 0o7777 == 0o1777
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ROUNDKIT_LEASE_ROOT", str(tmp_path / "file" / "below"))
    with pytest.raises(Refused, match="ROUNDKIT_LEASE_ROOT"):
        default_lease_root()
