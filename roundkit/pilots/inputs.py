"""A pilot's inputs: found beside ``pilot.yaml``, seen to be still, copied, and checked before each run."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from roundkit.core.canonical import digest_file
from roundkit.core.errors import Refusal, Refused, refuse
from roundkit.evidence import pilot_layout as layout
from roundkit.evidence.pilot_inputs import bound_inputs
from roundkit.measure.broke import NO_SPACE
from roundkit.measure.trees import copy_entry, copy_tree, list_files
from roundkit.models.pilot_draft import PairedDraft
from roundkit.models.pilot_plan import PairedPlan
from roundkit.pilots.archive import whole_tree
from roundkit.pilots.folder import PilotFolder


@dataclass(frozen=True)
class Input:
    """One file or folder that the owner names.

    Attributes:
        source: Where it lies.
        at: Its place in the pilot's folder, relative.
        is_folder: Whether it has to be a folder.
        place: Where ``pilot.yaml`` names it.
    """

    source: Path
    at: str
    is_folder: bool
    place: tuple[str | int, ...]


def inputs_of(draft: PairedDraft, top: Path) -> Iterator[Input]:
    """Yield everything that a draft names.

    Args:
        draft: The pilot as its owner wrote it.
        top: The folder that its paths are relative to.
    """
    for number, task in enumerate(draft.tasks):
        here = ("tasks", number)
        yield Input(top / task.fixture, layout.task_input(task.id, "fixture"), True, (*here, "fixture"))
        yield Input(top / task.prompt, layout.task_input(task.id, "prompt"), False, (*here, "prompt"))
        yield Input(top / task.rubric, layout.task_input(task.id, "rubric"), False, (*here, "rubric"))
        if task.drift is not None:
            at = layout.task_input(task.id, "drift")
            yield Input(top / task.drift.patch, at, False, (*here, "drift", "patch"))
        for position, check in enumerate(task.checks):
            if check.hidden is not None:
                at = layout.task_input(task.id, f"hidden/{check.id}")
                yield Input(top / check.hidden, at, True, (*here, "checks", position, "hidden"))
    for number, variant in enumerate(draft.variants):
        if variant.guide is not None:
            yield Input(
                top / variant.guide, layout.variant_guide(variant.id), False, ("variants", number, "guide")
            )
    for number, tool in enumerate(draft.tools):
        if tool.files is not None:
            yield Input(top / tool.files, layout.tool_files(tool.name), True, ("tools", number, "files"))
    if draft.model.scripts is not None:
        yield Input(top / draft.model.scripts, layout.SCRIPTS, True, ("model", "scripts"))


def input_problem(found: Input, where: str) -> Refusal | None:
    """Say why an input cannot be taken; null when it can.

    Links are not taken: what they lead to would be no part of the frozen copy.

    Args:
        found: The input.
        where: The place that the refusal names.
    """
    try:
        problem = _kind_problem(found)
    except FileNotFoundError as error:
        if found.source.exists():  # a listed file that is gone a moment later
            return changing(f"{error.filename}: {error.strerror}").refusals[0]
        problem = f"{found.source} cannot be read: {error.strerror}"
    except OSError as error:
        problem = f"{error.filename or found.source} cannot be read: {error.strerror}"
    if problem is None:
        return None
    return Refusal("input-kind", problem, where, "name a file or a folder of regular files")


def digest_of(path: Path) -> str:
    """Return the digest of an input: of a file's bytes, or of a folder's tree.

    Raises:
        OSError: it cannot be read.
    """
    return whole_tree(path) if path.is_dir() else digest_file(path)


def copy_still(found: Input, root: Path) -> str:
    """Copy an input into a pilot's folder, and return its digest, the same before, after, and of the copy.

    Raises:
        Refused: ``fixture-changing``: somebody changes it meanwhile.
        OSError: the disk is full.
    """
    target = root / found.at
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        before = digest_of(found.source)
        (copy_tree if found.is_folder else copy_entry)(found.source, target)
        after = digest_of(found.source)
    except OSError as error:
        if error.errno in NO_SPACE:
            raise
        raise changing(f"{error.filename or found.source}: {error.strerror}") from None
    if not before == after == digest_of(target):
        raise changing(f"{found.source} changed while it was copied")
    return before


def writers(places: list[Path]) -> Iterator[Refusal]:
    """Yield the processes that have a file open for writing in some places.

    Of other users' processes only what this user may see is known.
    """
    tops = [place.resolve() for place in places]
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            descriptors = list((process / "fd").iterdir())
        except OSError:
            continue
        for descriptor in descriptors:
            held = _held_for_writing(process, descriptor)
            if held is not None and any(held.is_relative_to(top) for top in tops):
                yield changing(f"process {process.name} has {held} open for writing").refusals[0]


def changing(what: str) -> Refused:
    """Return the refusal of inputs that are not still."""
    return refuse(
        "fixture-changing",
        what,
        remedy="end whatever changes the inputs, and freeze again",
    )


def check_inputs(folder: PilotFolder, plan: PairedPlan) -> None:
    """Check that the frozen copies are what the plan binds.

    Raises:
        Refused: ``input-changed``, naming every one that is not.
    """
    problems = []
    for bound in bound_inputs(plan):
        path = folder.root / bound.name
        try:
            found = None if path.is_symlink() else digest_of(path)
        except OSError:
            found = None
        if found != bound.sha256:
            problems.append(
                Refusal(
                    "input-changed",
                    f"{bound.name} is not what was frozen",
                    str(path),
                    "restore it from a copy, or freeze another pilot",
                )
            )
    if problems:
        raise Refused(problems)


def _kind_problem(found: Input) -> str | None:
    if _is(found.source, stat.S_ISDIR) != found.is_folder:
        return f"{found.source} is no {'folder' if found.is_folder else 'regular file'}"
    if not found.is_folder:
        return None if _is(found.source, stat.S_ISREG) else f"{found.source} is no regular file"
    for name in list_files(found.source):
        if not _is(found.source / name, stat.S_ISREG):
            return f"{found.source / name} is no regular file"
    return None


def _is(path: Path, kind: object) -> bool:
    return bool(kind(path.lstat().st_mode))  # type: ignore[operator]


def _held_for_writing(process: Path, descriptor: Path) -> Path | None:
    """Return the file that a descriptor writes to; null where it is none, or is gone."""
    try:
        rows = (process / "fdinfo" / descriptor.name).read_text().splitlines()
        flags = next(int(row.split()[1], 8) for row in rows if row.startswith("flags:"))
        if flags & os.O_ACCMODE == os.O_RDONLY:
            return None
        return Path(os.readlink(descriptor))  # noqa: PTH115 - a pipe's name is no path
    except (OSError, StopIteration, ValueError):
        return None
