"""What a trial left for the validator: plain files in plain folders, and nothing else.

The validator sees what no candidate does (hold-outs). A link that a candidate leaves as its answer would
lead there.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from roundkit.measure.problems import Problem


def outputs_problem(folder: Path) -> Problem | None:
    """Return the first thing below a trial's folder that is no plain file, None where all are.

    Raises:
        OSError: the folder cannot be read.
    """
    try:
        return _first_unsafe(folder)
    except PermissionError as error:
        return Problem("result", f"the outputs cannot be read: {error.strerror}")
    except OSError as error:
        # Only what the candidate nested makes a path too long; it must not pass for the host's fault.
        if error.errno != errno.ENAMETOOLONG:
            raise
        return Problem("result", "the outputs are nested so deep that a path is too long to be read")


def _first_unsafe(folder: Path) -> Problem | None:
    pending = [folder]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                found = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    pending.append(Path(entry))
                elif not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
                    return Problem("result", f"{entry.name!r} among the outputs is a link or no plain file")
    return None
