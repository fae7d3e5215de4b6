"""A file system of its own that is soon full."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted_disk(folder: Path, mebibytes: int) -> Iterator[Path]:
    """Mount a file system of some MiB below a folder; skip where that takes root, but never in CI."""
    disk = folder / "disk"
    disk.mkdir(mode=0o711)
    options = f"size={mebibytes}m,mode=0711"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        if "ROUNDKIT_CI" in os.environ:
            pytest.fail("this machine cannot mount a tmpfs: " + mounted.stderr.decode())
        pytest.skip("mounting a small tmpfs needs root")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def fill(disk: Path) -> Path:
    """Write to a disk until nothing more fits."""
    path = disk / "filler"
    with path.open("wb", buffering=0) as stream:
        for size in (1 << 20, 1 << 12):
            try:
                while True:
                    stream.write(b"\0" * size)
            except OSError:
                continue
    return path
