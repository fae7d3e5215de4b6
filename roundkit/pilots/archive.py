"""A trial's folder as evidence: digests of all that is fixed in it, and the candidate's diff."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from roundkit.core.canonical import digest_bytes
from roundkit.core.errors import refuse
from roundkit.core.files import tree_digest
from roundkit.core.git import neutral_environment
from roundkit.core.process import CommandFailed, run
from roundkit.evidence import pilot_layout as layout
from roundkit.evidence.pilot_reader import archived_file
from roundkit.measure.trees import copy_tree, list_files, remove_tree
from roundkit.models.pilot_trial import ArchivedFile, TrialRecord

_NOT_FIXED = (layout.RECORD,)
_DIFFERENT = 1
_MOST_PATH_BYTES = 1024
"""A folder's path within a candidate: Linux takes 4096 with all that leads to it, wherever a copy lies."""


def whole_tree(folder: Path) -> str:
    """Return the digest of a folder with everything in it.

    Raises:
        OSError: something in it cannot be read.
    """
    return tree_digest(folder, skip=frozenset())


def archived_files(trial: Path) -> tuple[ArchivedFile, ...]:
    """Return every file of a trial's folder that does not change any more, by path.

    The ledger of interventions may grow, and its beginning is fixed; a review, which may come, binds itself.

    Raises:
        OSError: a file cannot be read.
    """
    fixed = (
        name
        for name in list_files(trial)
        if name not in _NOT_FIXED and not name.startswith(f"{layout.REVIEW}/")
    )
    return tuple(sorted((archived_file(trial, name) for name in fixed), key=lambda file: file.path))


def settle(candidate: Path) -> bool:
    """Make a candidate readable for its owner, whatever modes and however deep folders a program left there.

    Args:
        candidate: The folder; nothing runs in it any more.

    Returns:
        Whether folders were cut off, because no copy of them could be named.

    Raises:
        OSError: something in it cannot be changed.
    """
    pending, was_cut = [candidate], False
    while pending:
        here = pending.pop()
        if len(os.fsencode(here.relative_to(candidate))) > _MOST_PATH_BYTES:
            remove_tree(here)
            was_cut = True
            continue
        here.chmod(here.stat().st_mode | stat.S_IRWXU)
        with os.scandir(here) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry))
                elif entry.is_file(follow_symlinks=False):
                    Path(entry).chmod(entry.stat().st_mode | stat.S_IRUSR | stat.S_IWUSR)
    return was_cut


def candidate_diff(fixture: Path, candidate: Path) -> bytes:
    """Return how a candidate differs from its fixture, with neither task nor variant in any path.

    Raises:
        CommandFailed: git broke.
    """
    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch).resolve()
        copy_tree(fixture, top / "before")
        copy_tree(candidate, top / "after")
        command = [
            "git",
            "diff",
            "--no-index",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--no-renames",
        ]
        # A candidate's own attributes could hide a change as binary.
        command += ["--text", "--no-prefix", "--unified=3", "before", "after"]
        done = run(command, cwd=top, env=_outside_any_repository(top), check=False)
    if done.exit_code not in {0, _DIFFERENT}:
        raise CommandFailed(done)
    return done.stdout


def check_archive(trial: Path, record: TrialRecord) -> None:
    """Check that a trial's folder holds what its record says, byte for byte.

    Raises:
        Refused: ``archive-changed``, naming every file that is missing, new or different.
    """
    recorded = {file.path: file for file in record.files}
    found = {file.path: file for file in archived_files(trial)}
    grown = found.get(layout.INTERVENTIONS)
    if grown is not None and _begins_with(trial / layout.INTERVENTIONS, recorded.get(layout.INTERVENTIONS)):
        found[layout.INTERVENTIONS] = recorded[layout.INTERVENTIONS]
    problems = list(_differences(recorded, found))
    accepted = record.acceptance
    if (
        accepted is not None
        and not problems
        and whole_tree(trial / layout.CANDIDATE) != accepted.candidate_sha256
    ):
        problems.append(f"{layout.CANDIDATE} is different")
    if problems:
        raise refuse(
            "archive-changed",
            f"the archive of {record.attempt} is not what was recorded: {', '.join(problems)}",
            place=str(trial),
            remedy="restore the folder from a copy; its record binds every file by digest",
        )


def _differences(recorded: dict[str, ArchivedFile], found: dict[str, ArchivedFile]) -> Iterator[str]:
    for path in sorted(recorded.keys() | found.keys()):
        if path not in found:
            yield f"{path} is missing"
        elif path not in recorded:
            yield f"{path} is new"
        elif recorded[path] != found[path]:
            yield f"{path} is different"


def _begins_with(ledger: Path, fixed: ArchivedFile | None) -> bool:
    if fixed is None or ledger.is_symlink():
        return False
    with ledger.open("rb") as stream:
        return digest_bytes(stream.read(fixed.size)) == fixed.sha256


def _outside_any_repository(top: Path) -> dict[str, str]:
    return {**neutral_environment(), "GIT_CEILING_DIRECTORIES": str(top.parent)}
