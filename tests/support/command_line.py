"""The command line in a process that finds its modules already there: as real as a fresh one, and sooner.

A command reads its words, its environment and its folder, writes to descriptors and ends with an exit code,
as one that somebody types; only the import of roundkit, most of a short command's time, is shared by a
worker's tests. What depends on that import, a terminal or signals is tested with ``python -m roundkit``.
"""

from __future__ import annotations

import atexit
import io
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

_WARM = multiprocessing.get_context("forkserver")
_WARM.set_forkserver_preload(["roundkit.cli.app", "roundkit.audit", "roundkit.report"])
_MOST_S = 600


def run_roundkit(
    *words: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end.

    Args:
        words: What is typed after ``roundkit``.
        cwd: The folder it is typed in; that of this process if none.
        env: Its whole environment; that of this process if none.

    Raises:
        subprocess.TimeoutExpired: it does not end.
    """
    argv = ["roundkit", *map(str, words)]
    environment = dict(os.environ if env is None else env)
    with tempfile.TemporaryDirectory(prefix="roundkit-said-") as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        process = _WARM.Process(target=_main, args=(argv, str(cwd or Path.cwd()), environment, out, err))
        process.start()
        try:
            process.join(_MOST_S)
            exit_code = process.exitcode
        finally:
            process.kill()
            process.join()
        if exit_code is None:
            raise subprocess.TimeoutExpired(argv, _MOST_S)
        said, told = (path.read_text() if path.exists() else "" for path in (out, err))
    return subprocess.CompletedProcess(argv, exit_code, said, told)


def _main(argv: list[str], cwd: str, environment: dict[str, str], out: Path, err: Path) -> None:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    for number, path in ((1, out), (2, err)):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(fd, number)
        os.close(fd)
    sys.stdout = sys.__stdout__ = io.TextIOWrapper(os.fdopen(1, "wb", closefd=False))
    sys.stderr = sys.__stderr__ = io.TextIOWrapper(os.fdopen(2, "wb", closefd=False), line_buffering=True)
    sys.argv = argv
    from roundkit.cli import main

    try:
        main()
    finally:
        atexit._run_exitfuncs()
