"""How a notebook's cells are executed: papermill's own way, with progress for whoever waits."""

from __future__ import annotations

import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from roundkit.core.progress import PROGRESS_MIME, Progress

_NAME = "roundkit"
_SHOWN = frozenset({"display_data", "update_display_data"})


@contextmanager
def engine_with(progress: Progress, name: str) -> Iterator[str]:
    """Register an engine that counts cells and tells what long work inside them says; return its name.

    Args:
        progress: Shows it.
        name: The notebook, for the bar.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from papermill.clientwrap import PapermillNotebookClient
        from papermill.engines import Engine, papermill_engines

    class Client(PapermillNotebookClient):  # type: ignore[misc]
        """Executes cells; hears what their displays say."""

        async def async_start_new_kernel(self, **options: Any) -> None:
            """Start the kernel; what it says as it ends, beside its messages, is nobody's news."""
            await super().async_start_new_kernel(**options, stderr=subprocess.DEVNULL)

        def process_message(self, *arguments: Any, **options: Any) -> Any:
            _hear(arguments[0] if arguments else options["msg"], said, progress)
            return super().process_message(*arguments, **options)

    class Counting(Engine):  # type: ignore[misc]
        """Counts cells as they are done."""

        @classmethod
        def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **options: Any) -> Any:
            completed = nb_man.cell_complete
            total = sum(cell.cell_type == "code" for cell in nb_man.nb.cells)
            with progress.task(name, total, "cells") as task:

                def count(cell: Any, *arguments: Any, **further: Any) -> None:
                    completed(cell, *arguments, **further)
                    task.advance(cell.cell_type == "code")

                nb_man.cell_complete = count
                wanted = {
                    "startup_timeout": options["start_timeout"],
                    "extra_arguments": options["extra_arguments"],
                }
                return Client(nb_man, kernel_name=kernel_name, timeout=None, **wanted).execute()

    said: dict[str, str] = {}
    papermill_engines.register(_NAME, Counting)
    yield _NAME


def _hear(message: Any, said: dict[str, str], progress: Progress) -> None:
    """Pass on a line that a notebook's progress has not said before."""
    if message["msg_type"] not in _SHOWN:
        return
    note = message["content"].get("data", {}).get(PROGRESS_MIME)
    if not isinstance(note, dict):
        return
    line = str(note.get("line", ""))
    if line and line != said.get("line"):
        said["line"] = line
        progress.say(line)
