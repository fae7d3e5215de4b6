"""One progress facility: what it says, in any of its forms, from any thread."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading

import pytest
from rich.console import Console
from support.terminals import read_until_closed

from roundkit.cli.progress import TerminalProgress, _bars
from roundkit.core.progress import PlainProgress, Progress, Standing, duration


@pytest.mark.parametrize(
    ("standing", "sentence"),
    [
        (Standing("step-2", "trials", 7, 26, 7.0), "step-2: 7 of 26 trials, 1 a second, about 19 s left"),
        (Standing("step-2", "trials", 2, 4, 10.0), "step-2: 2 of 4 trials, 5 s each, about 10 s left"),
        (Standing("step-2", "trials", 4, 4, 2.0), "step-2: 4 of 4 trials, 2 a second"),
        (Standing("all", "pilots", 800, 1600, 5.0), "all: 800 of 1600 pilots, 160 a second, about 5 s left"),
        (Standing("slow", "tuples", 1, 2, 299.6), "slow: 1 of 2 tuples, 300 s each, about 5 min left"),
        (
            Standing("t", "trials at most", 2, 4, 10.0, "bound"),
            "t: 2 of 4 trials at most, 5 s each, at most about 10 s left",
        ),
        (Standing("close r01", "steps", 1, 2, 10.0, "none"), "close r01: 1 of 2 steps"),
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
    with often.task("close", 2, "steps", foresight="none") as task:
        task.advance()
    assert lines == ["close: 1 of 2 steps"]
    lines.clear()
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
    said = read_until_closed(ours)
    assert done.returncode == 0, said
    assert b"close r01" in said
    assert "━".encode() in said
    assert b"step-2 [bold]pass[/bold]" in said
    assert b"pass\x1b[31m" not in said


@pytest.mark.parametrize("round_id", ["r01", "replay-0123456789-20261201-091122"])
def test_a_bar_on_eighty_columns_shows_its_counts(round_id: str) -> None:
    with _bars(Console(width=80, force_terminal=True, color_system=None)) as bars:
        progress = TerminalProgress(bars)
        outer = progress.begin(f"serve {round_id}", 20, "tickets with an end", foresight="none")
        inner = progress.begin(f"{round_id}-L2-b08d9db1", 82, "trials at most", foresight="bound")
        inner.began_s -= 100
        outer.advance()
        inner.advance(by=12)
        console = Console(width=80, color_system=None)
        with console.capture() as captured:
            console.print(bars.get_renderable())
    shown = captured.get().splitlines()
    assert len(shown) == 2
    for row, words in zip(shown, (("serve", "1/20"), ("L2-b08d9db1", "12/82", "10 min left")), strict=True):
        assert all(word in row for word in words), row


def test_a_name_is_whole_where_a_short_unit_leaves_room() -> None:
    with _bars(Console(width=80, force_terminal=True, color_system=None)) as bars:
        TerminalProgress(bars).begin("looking at this machine", 5, "parts")
        console = Console(width=80, color_system=None)
        with console.capture() as captured:
            console.print(bars.get_renderable())
    assert "looking at this machine" in captured.get()
    assert "0/5 parts" in captured.get()
