"""The shell around an agent: it ends as its agent ended, and says nothing of its own."""

from __future__ import annotations

import signal
import subprocess

import pytest

from roundkit.agents.left_behind import LastLook

_WITHIN_S = 60


def ended(script: str) -> tuple[int, str]:
    """Return how an agent's shell ended, and what it wrote after the line about what was left at work."""
    look = LastLook()
    argv = look.around(["/bin/sh", "-c", script])
    done = subprocess.run(argv, capture_output=True, timeout=_WITHIN_S, check=False)
    before, mark, after = done.stderr.decode("utf-8", "replace").rpartition(look.mark)
    return done.returncode, before.strip() + (after.partition("\n")[2] if mark else "")


@pytest.mark.parametrize("code", [0, 1, 127, 128, 147, 148, 149, 150, 193, 200, 255])
def test_an_exit_code_that_is_no_deadly_signals_stays_what_it_is_and_adds_no_words(code: int) -> None:
    assert ended(f"exit {code}") == (code, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM, signal.SIGRTMIN])
def test_a_signal_that_ended_the_agent_ends_the_shell_as_well(number: signal.Signals) -> None:
    code, words = ended(f"kill -{int(number)} $$")
    assert code == -number
    assert "kill:" not in words
