"""The files of a policy pilot's run that no round's evidence binds: its record does."""

from __future__ import annotations

import os
from pathlib import Path

from roundkit.evidence import layout, policy_layout
from roundkit.evidence.pilot_reader import archived_file
from roundkit.evidence.problem import problem
from roundkit.models.pilot_trial import ArchivedFile

_BOUND_ELSEWHERE = frozenset({policy_layout.RECORD, policy_layout.ROUNDS})


def run_files(run: Path) -> tuple[ArchivedFile, ...]:
    """Return every file of a run's folder but its record and its rounds' evidence, by path.

    Raises:
        EvidenceProblem: there is too much.
        OSError: a file cannot be read.
    """
    found, pending = [], [run]
    while pending:
        folder = pending.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                name = Path(entry).relative_to(run).as_posix()
                if name not in _BOUND_ELSEWHERE:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(Path(entry))
                    else:
                        found.append(name)
        if len(found) > layout.MAX_FILES:
            raise problem("too-large", f"more than {layout.MAX_FILES} files", where=run.name)
    return tuple(sorted((archived_file(run, name) for name in found), key=lambda file: file.path))
