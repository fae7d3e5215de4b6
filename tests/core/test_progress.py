"""One progress facility: what it says, in any of its forms, from any thread."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading

import pytest

from roundkit.core.progress import PlainProgress, Progress, Standing, duration


@pytest.mark.parametrize(
    ("standing", "sentence"),
    [
        (Standing("step-2", "trials", 7, 26, 7.0), "step-2: 7 of 26 trials, 1 a second, about 19 s left"),
        (Standing("step-2", "trials", 2, 4, 10.0), "step-2: 2 of 4 trials, 5 s each, about 10 s left"),
        (Standing("step-2", "trials", 4, 4, 2.0), "step-2: 4 of 4 trials, 2 a second"),
        (Standing("serve", "tickets", 3, None, 9.0), "serve: 3 tickets"),
        (Standing("serve", "tickets", 0, 9, 9.0), "serve: 0 of 9 tickets"),
        (Standing("serve", "tickets", 1, 9, 0.0), "serve: 1 of 9 tickets"),
    ],
)
def test_it_says_what_is_done_the_rate_and_what_is_left(standing: Standing, sentence: str) -> None:
    assert standing.sentence() == sentence


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.1, "1 s"),
        (119, "119 s"),
        (121, "2 min"),
        (3600, "1 h 0 min"),
        (7800, "2 h 10 min"),
        (1e6, "12 days"),
    ],
)
def test_durations_are_for_people(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_without_a_terminal_a_plain_line_comes_every_so_often() -> None:
    lines: list[str] = []
    often, seldom = PlainProgress(lines.append, every_s=0.0), PlainProgress(lines.append, every_s=3600.0)
    with often.task("build", 2, "files") as task:
        task.advance()
    assert lines == [lines[0]]
    assert lines[0].startswith("build: 1 of 2 files")
    lines.clear()
    with seldom.task("build", 2, "files") as task:
        task.advance()
        seldom.say("built")
    assert lines == ["built"]


def test_any_thread_may_advance_a_task() -> None:
    progress = Progress()
    tasks = [progress.begin(f"t{number}", 50, "steps") for number in range(4)]
    threads = [threading.Thread(target=lambda t=task: [t.advance() for _ in range(50)]) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [standing.done for standing in progress.standings()] == [50] * 4
    for task in tasks:
        progress.end(task)
        progress.end(task)
    assert progress.standings() == []


def test_a_terminal_gets_a_bar() -> None:
    code = (
        "from roundkit.cli.progress import shown_progress\n"
        "with shown_progress() as progress:\n"
        "  with progress.task('close r01', 4, 'steps') as task:\n"
        "    task.set(3); progress.say('step-2 [bold]pass[/bold] \\x1b[31m')\n"
    )
    ours, theirs = pty.openpty()
    done = subprocess.run([sys.executable, "-c", code], stdout=theirs, stderr=theirs, timeout=60, check=False)
    os.close(theirs)
    said = b""
    try:
        while piece := os.read(ours, 65536):
            said += piece
    except OSError:
        pass  # the other end is closed
    os.close(ours)
    assert done.returncode == 0, said
    assert b"close r01" in said
    assert "━".encode() in said
    assert b"step-2 [bold]pass[/bold]" in said
    assert b"pass\x1b[31m" not in said
