"""The helper that runs trusted commands: Ctrl-C in a terminal is for roundkit, not for what it started."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

from support.processes import end_started, ended_with_test

_SCRIPT = """
import signal, sys
from roundkit.core.process import run

asked = []
signal.signal(signal.SIGINT, lambda *_: asked.append(True))
print("ready", flush=True)
done = run(["sh", "-c", "while [ ! -e " + sys.argv[1] + " ]; do sleep 0.05; done; echo whole"], check=False)
print(len(asked), done.exit_code, done.text)
"""


def test_ctrl_c_does_not_end_a_command_whose_caller_wants_to_end_it_first(tmp_path) -> None:
    finish = tmp_path / "finish"
    caller = ended_with_test(
        subprocess.Popen(
            [sys.executable, "-c", _SCRIPT, finish], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
    )
    assert caller.stdout is not None
    assert caller.stdout.readline() == "ready\n"
    while not subprocess.run(["pgrep", "-P", str(caller.pid)], capture_output=True).stdout:
        pass
    os.killpg(caller.pid, signal.SIGINT)
    finish.touch()
    said, _ = caller.communicate(timeout=60)
    assert said == "1 0 whole\n"


_STORM = """
import signal
from roundkit.core.process import run

signal.signal(signal.SIGINT, lambda *_: None)
print("ready", flush=True)
print(sum(run(["true"], check=False).exit_code != 0 for _ in range(200)))
"""


def test_ctrl_c_right_as_a_command_starts_does_not_end_it_either() -> None:
    caller = ended_with_test(
        subprocess.Popen(
            [sys.executable, "-c", _STORM], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
    )
    assert caller.stdout is not None
    assert caller.stdout.readline() == "ready\n"
    while caller.poll() is None:
        os.killpg(caller.pid, signal.SIGINT)
        select.select([caller.stdout], [], [], 0.005)  # as often as nobody presses it
    assert caller.stdout.read() == "0\n"


def test_what_a_test_leaves_running_is_killed_after_it() -> None:
    left = ended_with_test(subprocess.Popen(["sleep", "600"]))
    end_started()
    assert left.returncode == -signal.SIGKILL
