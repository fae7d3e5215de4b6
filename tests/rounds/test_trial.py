"""R27: ``roundkit trial`` runs one trial as serve would and shows what the boundary holds."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from support.processes import ended_with_test
from support.synthetic import CampaignRepo, knob, scripted_lane
from support.terminals import read_until_closed

from roundkit.core.canonical import digest_file
from roundkit.core.errors import Refused
from roundkit.host.devices import lease_names
from roundkit.host.lease import acquire_set
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.serve import serve
from roundkit.rounds.try_trial import try_trial
from roundkit.store import open_store

HELD = (
    "/round/checkout",
    "/round/checkout/bench",
    "/round/trial",
    "/round/scratch",
    "/opt/roundkit/roundkit/harness",
)


def quiet(_line: str) -> None:
    """Say nothing."""


def trial(folder: RoundFolder, *words: str, expect: int = 0, commands: str | None = None) -> str:
    """Run the command, with commands for its shell on a pipe, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "roundkit", "trial", str(folder.root), *words],
        capture_output=True, text=True, input=commands, timeout=300, check=False,
    )  # fmt: skip
    printed = done.stdout + done.stderr
    assert done.returncode == expect, printed
    assert "Traceback" not in printed
    return printed


def test_r27_a_trial_of_the_baseline_shows_what_the_boundary_holds(launched: RoundFolder) -> None:
    printed = trial(launched)
    for held in HELD:
        assert held in printed
    for shown in (
        "benchmark command: /usr/bin/python3 -I -S bench/bench.py",
        "PYTHONDONTWRITEBYTECODE",
        "ROUNDKIT_RESULT_PATH",
        "watchdog",
        "rlimit-nofile",
        "network none",
        "leased cpu0: cpu 0",
        "latency_ms",
        "validator: accepted",
        "result: latency_ms =",
        "build: exited, exit code 0",
    ):
        assert shown in printed
    assert not list(launched.trials.iterdir())
    assert not launched.database.exists()


def test_r27_it_is_the_trial_that_serve_runs(launched: RoundFolder) -> None:
    ticket = scripted_lane(launched.clone("L1"), {"knobs/L1.json": knob(0.6)})["ticket"]
    with pytest.raises(Refused, match="unknown-ticket"):
        try_trial(launched, side="candidate", ticket=ticket, report=quiet)
    serve(launched, until="idle", report=quiet)
    store = written_files(launched.store)
    tried = {
        "baseline": try_trial(launched, side="baseline", ticket=None, report=quiet),
        # A table may have named it without the round's id.
        "candidate": try_trial(launched, side="candidate", ticket=ticket.removeprefix("r01-"), report=quiet),
    }
    assert written_files(launched.store) == store
    with open_store(launched.database, read_only=True) as opened:
        record = opened.experiments.records(ticket)[-1]
    for side, one in tried.items():
        served = next(trial for trial in record.trials if trial.planned.side == side and trial.value)
        assert one.trial.value == pytest.approx(served.value, rel=0.05)
        for role, run in served.executions.items():
            same_user = {"uid": one.boundaries[role].uid}
            assert one.boundaries[role] == record.boundaries[run.boundary].model_copy(update=same_user)


def written_files(store: Path) -> dict[str, str]:
    """Return the digest of every file of the store, but for those that a mere reader of a database makes."""
    files = (path for path in store.rglob("*") if path.is_file())
    return {str(path): digest_file(path) for path in files if not path.name.endswith(("-shm", "-wal"))}


def test_r27_a_trial_with_a_problem_exits_with_1_and_says_why(
    three_lanes: CampaignRepo, open_folder: Path, lease_root: Path
) -> None:
    three_lanes.start_from(three_lanes.commit({"knobs/L2.json": knob(0.0, "crash")}))
    folder, _ = three_lanes.launched(open_folder / "round")
    printed = trial(folder, expect=1)
    assert "problem: baseline-crashed: ended with exit code 3" in printed
    assert "/round/checkout" in printed


def test_r27_a_broken_build_exits_with_1_and_shows_its_tail(
    three_lanes: CampaignRepo, open_folder: Path, lease_root: Path
) -> None:
    three_lanes.start_from(three_lanes.commit({"knobs/L2.json": knob(0.0, "broken")}))
    folder, _ = three_lanes.launched(open_folder / "round")
    assert "knobs/L2.json is broken" in trial(folder, expect=1)
    assert not list(folder.trials.iterdir())


def test_r27_a_trial_always_leases(launched: RoundFolder, lease_root: Path) -> None:
    lease_root.mkdir()
    lease = acquire_set(lease_names("cpu", ("0",)), root=lease_root, purpose="somebody else")
    assert lease is not None
    with lease:
        assert "[device-busy] device_sets: every device set is held: " in trial(launched, expect=3)
        assert "[device-busy]" in trial(launched, "--shell", expect=3)
    assert "result: latency_ms" in trial(launched)


def test_r27_a_shell_from_a_pipe_is_behind_the_same_boundary(launched: RoundFolder) -> None:
    commands = (
        "pwd; ls bench; echo repetitions $ROUNDKIT_REPETITIONS\n"
        "echo forged > bench/bench.py\n"
        "echo kept > /round/scratch/note && cat /round/scratch/note\n"
        "ls " + str(launched.root) + "\n"
        "echo to-error >&2\n"
        "exit 0\n"
    )
    printed = trial(launched, "--shell", commands=commands)
    for shown in ("/round/checkout", "bench.py", "repetitions 2", "kept", "Read-only", "to-error"):
        assert shown in printed
    assert str(launched.root / "store") not in printed
    assert "No such file" in printed
    assert "shell: exited, exit code 0" in printed
    assert not list(launched.trials.iterdir())


def test_r27_a_shell_that_fails_exits_with_1_and_one_that_stays_is_ended(launched: RoundFolder) -> None:
    assert "exit code 7" in trial(launched, "--shell", commands="exit 7\n", expect=1)
    assert "shell: deadline" in trial(launched, "--shell", "--timeout", "1", commands="sleep 600\n", expect=1)


def test_r27_a_shell_in_a_terminal_prompts(launched: RoundFolder) -> None:
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-m", "roundkit", "trial", str(launched.root), "--shell"]
    shell = ended_with_test(
        subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    )
    os.close(theirs)
    os.write(ours, b"echo seen-$((40 + 2))\nexit\n")
    printed = read_until_closed(ours)
    assert shell.wait(timeout=60) == 0, printed
    assert b"seen-42" in printed
    assert b"shell: exited" in printed
    assert b"$ " in printed or b"# " in printed


def test_r27_options_that_do_not_fit_are_usage_errors(launched: RoundFolder) -> None:
    assert "go together" in trial(launched, "--side", "candidate", expect=2)
    assert "--shell" in trial(launched, "--timeout", "5", expect=2)
    assert "[unknown-ticket]" in trial(launched, "--ticket", "x", expect=3)
