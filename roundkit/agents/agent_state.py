"""Reading what an agent keeps in its home: its own files, so that nothing there is believed or followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PurePosixPath

from roundkit.agents.contract import StateReader
from roundkit.agents.redaction import Redaction
from roundkit.core.globs import GlobSet
from roundkit.host.confine import HostileOutput, read_output

_MOST_ENTRIES = 20_000
_WILD = frozenset("*?[{")


def state_reader(home: Path, redaction: Redaction) -> StateReader:
    """Return a reader of the files below an agent's home, for while it runs and afterwards.

    Args:
        home: The home on the host.
        redaction: What is taken out of each content.
    """

    def read(pattern: str, max_bytes: int) -> list[bytes]:
        contents, left = [], max_bytes
        for name in sorted(_matching(home, pattern)):
            try:
                # Of all together: an agent may leave any number of files.
                content = read_output(home, name, left)
            except (HostileOutput, OSError):
                continue
            left -= len(content)
            contents.append(redaction.bytes(content))
        return contents

    return read


def _matching(home: Path, pattern: str) -> Iterator[str]:
    """Yield the names below a home that match, of a bounded number of entries; no folder link is entered."""
    top = PurePosixPath()
    for part in PurePosixPath(pattern).parts[:-1]:
        if _WILD & set(part) or not _is_folder(home / top / part):
            break
        top /= part
    wanted, seen = GlobSet((pattern,)), 0
    pending = [home / top]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(folder) as entries:
                inside = sorted(Path(entry.path) for entry in islice(entries, _MOST_ENTRIES + 1 - seen))
        except OSError:
            continue
        seen += len(inside)
        if seen > _MOST_ENTRIES:
            return
        folders = [path for path in inside if _is_folder(path)]
        pending.extend(reversed(folders))
        for path in sorted(set(inside) - set(folders)):
            relative = path.relative_to(home).as_posix()
            if wanted.matches(relative):
                yield relative


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False
