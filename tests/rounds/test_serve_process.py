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
    plain_repo,
    run_to_end,
    scene,
    start,
    wait_for,
)
from support.processes import ended_with_test
from support.synthetic import knob, scripted_lane

from roundkit.core.errors import Refused
from roundkit.host.lease import acquire_set, holders
from roundkit.rounds.close import close as close_here
from roundkit.rounds.control import read_status
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.serve import serve as serve_here
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
    other = ended_with_test(subprocess.Popen(
        [sys.executable, "-c", _HOLD, submitted.leases], env=environment(submitted.leases),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ))  # fmt: skip
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


def test_fault_04_sigterm_drains_and_only_one_serve_or_close_runs(open_folder: Path) -> None:
    repo = plain_repo(open_folder / "s", ("L1", "L2"))
    folder, _ = repo.launched(open_folder / "s/round")
    leases = open_folder / "s/leases"
    serve = start(leases, "serve", folder.root, "--until-deadline")
    wait_for(lambda: read_status(folder).serve, "serve")
    with pytest.raises(Refused, match=f"serve-running.*pid {serve.pid}, started at 20"):
        serve_here(folder, until="idle", report=print)
    with pytest.raises(Refused, match=f"serve-running.*pid {serve.pid}, started at 20"):
        close_here(folder, report=print)
    tickets = [
        scripted_lane(folder.clone(lane), {f"knobs/{lane}.json": knob(value)})["ticket"]
        for lane, value in {"L1": 0.5, "L2": 0.4}.items()
    ]
    submitted = Scene(open_folder / "s", repo, folder, tuple(tickets))
    wait_for(lambda: "measuring" in states(submitted), "a ticket that is being measured")
    serve.send_signal(signal.SIGTERM)
    said, _ = serve.communicate(timeout=120)
    assert serve.returncode == 0
    assert "serve ended (drained)" in said
    assert "queued" in states(submitted)
    assert "measuring" not in states(submitted)
    with open_store(folder.database, read_only=True) as store:
        assert store.experiments.unfinished() == []
        assert store.control.get("paused") is None
    assert "[tickets-waiting]" in run_to_end(leases, "close", folder.root, expect=3)
    run_to_end(leases, "serve", folder.root, "--until-idle")
    assert_one_verdict_each(folder, leases, tickets)
    _interrupt_close(submitted)


def test_fault_04_a_drain_begins_no_build_that_waited_for_its_turn(open_folder: Path) -> None:
    """Three tickets and one builder: the first build may end, the other two would each take as long again."""
    repo = plain_repo(open_folder / "s", ("L1",))
    slow = {"argv": ["sh", "-c", "cat knobs/L*.json | grep -q ': 0.0' || sleep 4"], "timeout_s": 60}
    repo.edit_campaign(lambda plan: plan.update(build=slow))
    folder, _ = repo.launched(open_folder / "s/round")
    for value in (0.5, 0.4, 0.3):
        scripted_lane(folder.clone("L1"), {"knobs/L1.json": knob(value)})
    leases = open_folder / "s/leases"
    serve = start(leases, "serve", folder.root, "--until-deadline")
    wait_for(lambda: len(read_status(folder).tickets) == 3, "the tickets")
    serve.send_signal(signal.SIGTERM)
    said, _ = serve.communicate(timeout=120)
    assert serve.returncode == 0, said
    with open_store(folder.database, read_only=True) as store:
        tickets = store.tickets.all("queued")
    assert len(tickets) == 3
    assert sum(ticket.candidate_commit is not None for ticket in tickets) <= 1


def _interrupt_close(scene: Scene) -> None:
    """Ctrl-C during close leaves one sentence, and close goes on where it was."""
    close = start(scene.leases, "close", scene.folder.root)
    wait_for(lambda: started(scene, "step-2-L2"), "the measurement of step 2")
    close.send_signal(signal.SIGINT)
    with pytest.raises(Refused, match=r"close-running|round-closing"):
        serve_here(scene.folder, until="idle", report=print)
    said, _ = close.communicate(timeout=120)
    assert close.returncode == 1
    assert "Traceback" not in said
    assert "close was stopped; nothing is lost" in said
    with pytest.raises(Refused, match="round-closing"):
        serve_here(scene.folder, until="idle", report=print)
    said = run_to_end(scene.leases, "status", scene.folder.root)
    assert f"next: let close go on\n  roundkit close {scene.folder.root}\n" in said
    said = run_to_end(scene.leases, "close", scene.folder.root)
    assert "has begun before; it goes on where it was" in said
    assert "new incumbent" in said


def test_fault_05_a_killed_serve_holds_no_device_and_leaves_no_trial(submitted: Scene) -> None:
    serve = start(submitted.leases, "serve", submitted.folder.root, "--until-idle")
    device = wait_for(lambda: submitted.leases.is_dir() and holders(submitted.leases), "a lease")[0].device
    serve.kill()
    serve.communicate()
    # A child that serve was starting as it died has the lock until it is another program.
    with wait_for(
        lambda: acquire_set([device], root=submitted.leases, purpose="next"), "the device"
    ) as lease:
        assert lease.devices == (device,)
        assert [holder.purpose for holder in holders(submitted.leases)] == ["next"]
    assert_nothing_runs(submitted.folder)


def test_a_serve_that_launch_starts_imports_nothing_of_the_folder_it_is_called_in(
    launched: RoundFolder, lease_root: Path
) -> None:
    """An owner who stands in a lane's clone must not run what its agent left there, out of any boundary."""
    clone = launched.clone("L1")
    (clone / "psutil.py").write_text("raise SystemExit('a lane has left the boundary')\n")
    words = ("launch", launched.root, "--drive", "replay", "--with-serve")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "roundkit", *words],
        cwd=clone, env=environment(lease_root), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "left the boundary" not in done.stderr
    assert done.returncode == 0, done.stdout + done.stderr
