"""A full disk is said plainly, never taken for a candidate's fault, and loses nothing."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from roundkit.core.errors import RoundkitError
from roundkit.measure.broke import NO_SPACE, is_full

# Enough for the pages in which the database writes down why the queue is paused.
_RESERVE_BYTES = 1 << 19


class DiskFull(RoundkitError):
    """There is no space left where a round is kept."""


class Reserve:
    """A file that keeps some space back, so that a full disk can still be recorded as such."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def hold(self) -> None:
        """Take the space, unless it is taken already.

        Raises:
            OSError: ``ENOSPC``: it is not there.
        """
        if self._path.exists():
            return
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, _RESERVE_BYTES)
        except OSError:
            self._path.unlink()
            raise
        finally:
            os.close(descriptor)

    def release(self) -> None:
        """Give the space back."""
        self._path.unlink(missing_ok=True)


def means_full(error: BaseException, folder: Path) -> bool:
    """Say whether an error comes from a full disk.

    Args:
        error: What was raised.
        folder: The round directory.
    """
    if isinstance(error, DiskFull):
        return True
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        return code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and is_full(folder))
    return isinstance(error, OSError) and error.errno in NO_SPACE


def full_sentence(folder: Path, command: str) -> str:
    """Return what a person has to know and do."""
    return (
        f"[disk-full] {folder}: no space is left; nothing is lost\n"
        f"    → free some space and run `roundkit {command} ROUND_DIR` again"
    )


@contextmanager
def explain_full_disk(folder: Path, command: str) -> Iterator[None]:
    """Turn whatever error a full disk caused into one sentence.

    Raises:
        DiskFull: the disk is full.
    """
    try:
        yield
    except DiskFull:
        raise
    except (OSError, sqlite3.Error) as error:
        if not means_full(error, folder):
            raise
        raise DiskFull(full_sentence(folder, command)) from error
