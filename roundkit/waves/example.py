"""The example campaign that ships: small C functions, made on this machine by its own compiler."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from roundkit.core.errors import RoundkitError, refuse
from roundkit.core.files import whole_folder
from roundkit.core.process import run
from roundkit.core.progress import SILENT, Progress, Task
from roundkit.core.resources import shipped

_LOOK_S = 0.2
_COMPILERS = ("cc", "gcc", "clang")


def make_example(folder: Path, targets: int, *, progress: Progress = SILENT) -> None:
    """Make the tree, the tools and the plan of the example.

    Args:
        folder: A folder that does not exist yet.
        targets: How many functions.
        progress: Shows how many of them there are.

    Raises:
        Refused: ``no-compiler``, ``exists``.
        OSError, RoundkitError: something else went wrong; nothing of it is there then.
    """
    if not any(map(shutil.which, _COMPILERS)):
        raise refuse(
            "no-compiler",
            f"this machine has no C compiler ({', '.join(_COMPILERS)}), and the example's gate is one",
            remedy="install one, e.g. Debian's gcc; your own campaign needs what its own commands need",
        )
    if folder.exists():
        raise refuse("exists", f"{folder} exists", place=str(folder), remedy="name a folder that does not")
    script = shipped("templates") / "waves-c" / "make_example.py"
    with (
        whole_folder(folder.resolve()) as partial,
        progress.task("make functions", targets, "functions") as task,
        _counted(partial / "tree/asm", task),
    ):
        done = run([sys.executable, "-B", script, partial, str(targets)], check=False)
        if done.exit_code != 0:
            # Its last line says what was wrong; what stands above is for whoever wrote the script.
            why = (done.error_tail.splitlines() or [f"exit code {done.exit_code}"])[-1]
            raise RoundkitError(f"the example cannot be made in {folder}: {why}")


@contextmanager
def _counted(folder: Path, task: Task) -> Iterator[None]:
    """Show how many files the script has written into the folders of a folder, while it runs."""
    ended = Event()

    def look() -> None:
        while not ended.wait(_LOOK_S):
            task.set(sum(1 for _ in folder.glob("*/*.s")))

    thread = Thread(target=look, name="example")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
