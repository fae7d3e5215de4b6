"""Serve and close as processes of their own: signals, locks, leases."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.killing import (
    Scene,
    assert_nothing_runs,
    assert_one_verdict_each,
    environment,
    run_to_end,
    scene,
    start,
    wait_for,
)

from roundkit.host.lease import acquire_set, holders
from roundkit.store import open_store, store_exists

_HOLD = (
    "import sys; from pathlib import Path; from roundkit.host.lease import acquire_set; "
    "lease = acquire_set(['cpu:0'], root=Path(sys.argv[1]), purpose='other'); print('held', flush=True); "
    "sys.stdin.read()"
)


@pytest.fixture
def submitted(open_folder: Path) -> Scene:
    return scene(open_folder / "s", {"L1": 0.5, "L2": 0.4})


def states(scene: Scene) -> list[str]:
    if not store_exists(scene.folder.database):
        return []
    with open_store(scene.folder.database, read_only=True) as store:
        return [ticket.state for ticket in store.tickets.all()]


def built(scene: Scene) -> bool:
    with open_store(scene.folder.database, read_only=True) as store:
        return any(ticket.candidate_commit for ticket in store.tickets.all())


def started(scene: Scene, subject: str) -> bool:
    with open_store(scene.folder.database, read_only=True) as store:
        return any(running == subject for _, running in store.experiments.unfinished())


def test_r21_a_held_device_leaves_tickets_queued_until_it_is_free(submitted: Scene) -> None:
    submitted.leases.mkdir()
    other = subprocess.Popen(
        [sys.executable, "-c", _HOLD, submitted.leases], env=environment(submitted.leases),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    serve = start(submitted.leases, "serve", submitted.folder.root, "--until-idle")
    wait_for(lambda: states(submitted) and built(submitted), "a built ticket")
    assert states(submitted) == ["queued", "queued"]
    assert not started(submitted, "aa-1")
    other.communicate("")
    said, _ = serve.communicate(timeout=120)
    assert serve.returncode == 0, said
    assert_one_verdict_each(submitted.folder, submitted.leases, submitted.tickets)


def test_fault_04_sigterm_drains_and_only_one_serve_or_close_runs(submitted: Scene) -> None:
    serve = start(submitted.leases, "serve", submitted.folder.root, "--until-deadline")
    wait_for(lambda: "measuring" in states(submitted), "a ticket that is being measured")
    second = run_to_end(submitted.leases, "serve", submitted.folder.root, expect=3)
    assert "[serve-running]" in second
    assert f"pid {serve.pid}, started at 20" in second
    assert "[serve-running]" in run_to_end(submitted.leases, "close", submitted.folder.root, expect=3)
    serve.send_signal(signal.SIGTERM)
    said, _ = serve.communicate(timeout=120)
    assert serve.returncode == 0
    assert "serve ended (drained)" in said
    assert "measuring" not in states(submitted)
    with open_store(submitted.folder.database, read_only=True) as store:
        assert store.experiments.unfinished() == []
        assert store.control.get("paused") is None
    assert "close" in run_to_end(submitted.leases, "close", submitted.folder.root, expect=3)
    run_to_end(submitted.leases, "serve", submitted.folder.root, "--until-idle")
    assert_one_verdict_each(submitted.folder, submitted.leases, submitted.tickets)
    _interrupt_close(submitted)


def _interrupt_close(scene: Scene) -> None:
    """Ctrl-C during close leaves one sentence, and close goes on where it was."""
    close = start(scene.leases, "close", scene.folder.root)
    wait_for(lambda: started(scene, "step-2-L2"), "the measurement of step 2")
    assert "[close-running]" in run_to_end(scene.leases, "serve", scene.folder.root, expect=3)
    close.send_signal(signal.SIGINT)
    said, _ = close.communicate(timeout=120)
    assert close.returncode == 1
    assert "Traceback" not in said
    assert "nothing is lost" in said
    assert "[round-closing]" in run_to_end(scene.leases, "serve", scene.folder.root, expect=3)
    assert "new incumbent" in run_to_end(scene.leases, "close", scene.folder.root)


def test_fault_05_a_killed_serve_holds_no_device_and_leaves_no_trial(submitted: Scene) -> None:
    serve = start(submitted.leases, "serve", submitted.folder.root, "--until-idle")
    device = wait_for(lambda: submitted.leases.is_dir() and holders(submitted.leases), "a lease")[0].device
    serve.kill()
    serve.communicate()
    with acquire_set([device], root=submitted.leases, purpose="next") as lease:
        assert lease is not None
    assert_nothing_runs(submitted.folder)
