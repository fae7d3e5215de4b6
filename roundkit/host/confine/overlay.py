"""Folders put together of layers: opened and checked like every granted place, merged by bubblewrap.

The lower layers are never written. What the command changes goes into a folder of its own, where a deleted
file is a *whiteout* and a folder that was replaced is marked *opaque*.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from roundkit.core.errors import refuse
from roundkit.host.confine.places import Place, mount_point_refusal, open_place
from roundkit.host.confine.types import CHANGED, WORK, Mount, MountRecord, Overlay

OPAQUE = "user.overlay.opaque"
"""Attribute of a folder that hides the folder of the same name below it; its value is ``y``."""

_FOLDER_MODE = 0o755


@dataclass(frozen=True)
class OpenOverlay:
    """One opened overlay.

    Attributes:
        at: Where the merged folder appears.
        layers: Read-only layers, the lowest first.
        changes: Folder that holds what the command changes, None where it may change nothing.
    """

    at: PurePosixPath
    layers: tuple[Place, ...]
    changes: Place | None

    @property
    def places(self) -> tuple[Place, ...]:
        """The layers and, last, the changes."""
        return (*self.layers, *self._changes())

    def reached_by(self, places: Sequence[Place]) -> OpenOverlay:
        """Return the same overlay with its places opened elsewhere."""
        return replace(
            self,
            layers=tuple(places[: len(self.layers)]),
            changes=None if self.changes is None else places[-1],
        )

    def owned_by(self, uid: int) -> OpenOverlay:
        """Return the same overlay whose files of root's belong to another user, if they are to be changed."""
        if self.changes is None:
            return self
        return replace(self, layers=tuple(replace(layer, owner=uid) for layer in self.layers))

    def records(self) -> list[MountRecord]:
        """Describe the layers for the record, the lowest first, all at one place."""
        return [replace(place, at=self.at).record() for place in self.places]

    def _changes(self) -> tuple[Place, ...]:
        return () if self.changes is None else (self.changes,)


def open_overlay(overlay: Overlay, places: Iterable[Place], stack: ExitStack) -> OpenOverlay:
    """Open the layers, and see that the other places fit over the merged folder.

    Raises:
        Refused: As for other places; or another place would be mounted at or around the folder
            (``mount-twice``), or onto something in it that is no fit and lasting mount point
            (``mount-point``).
    """
    layers = tuple(_open_layer(Mount(layer, overlay.at), False, stack) for layer in overlay.layers)
    changes = None
    if overlay.changes is not None:
        changes = _open_layer(Mount(overlay.changes, overlay.at), True, stack)
        _empty_work(changes)
    opened = OpenOverlay(PurePosixPath(overlay.at), layers, changes)
    for place in places:
        if opened.at.is_relative_to(place.at):
            raise refuse("mount-twice", f"{place.at} and a tree of layers would be mounted over each other")
        if changes is not None and place.at.is_relative_to(opened.at):
            _check_mount_point(opened, changes, place)
    return opened


def is_whiteout(found: os.stat_result) -> bool:
    """Say whether an entry of a layer stands for a deleted file."""
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == 0


def is_opaque(folder: str | int) -> bool:
    """Say whether a folder of a layer hides what lies below it."""
    try:
        return os.getxattr(folder, OPAQUE) == b"y"
    except OSError:
        return False


def _open_layer(mount: Mount, writable: bool, stack: ExitStack) -> Place:
    place = open_place(mount, writable, stack)
    if not place.is_dir:
        raise refuse("mount-source", f"{place.source} is a layer and no folder")
    return place


def _empty_work(changes: Place) -> None:
    """Remove what the kernel left of an earlier mount, and make both folders if they are missing."""
    top = f"/proc/self/fd/{changes.fd}"
    left = f"{top}/{WORK}/work"
    if os.path.isdir(left):  # noqa: PTH112 - through a descriptor, as all below
        os.chmod(left, stat.S_IRWXU)  # noqa: PTH101
        shutil.rmtree(left)
    for name in (CHANGED, WORK):
        if not os.path.isdir(f"{top}/{name}"):  # noqa: PTH112
            os.mkdir(f"{top}/{name}")  # noqa: PTH102
            os.chmod(f"{top}/{name}", _FOLDER_MODE)  # noqa: PTH101


def _check_mount_point(overlay: OpenOverlay, changes: Place, place: Place) -> None:
    """Refuse a mount point that the command could move away, or that is of another kind.

    A folder that two layers have together cannot be renamed inside, so that what lies over a file in it
    stays where it is looked for.
    """
    upper = f"/proc/self/fd/{changes.fd}/{CHANGED}"
    lower = f"/proc/self/fd/{overlay.layers[-1].fd}"
    *parents, name = place.at.relative_to(overlay.at).parts
    path = ""
    for part in parents:
        path = f"{path}/{part}"
        above = _state(upper + path)
        changed = above is not None and (not stat.S_ISDIR(above.st_mode) or is_opaque(upper + path))
        below = _state(lower + path)
        if changed or below is None or not stat.S_ISDIR(below.st_mode):
            raise mount_point_refusal(overlay.at / path[1:], "it is no folder of the lower layer")
    found = _state(f"{upper}{path}/{name}") or _state(f"{lower}{path}/{name}")
    if found is None or is_whiteout(found):
        raise mount_point_refusal(place.at, "it is not there")
    if not (stat.S_ISDIR(found.st_mode) if place.is_dir else stat.S_ISREG(found.st_mode)):
        raise mount_point_refusal(place.at, "it is " + ("no folder" if place.is_dir else "no regular file"))


def _state(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None
