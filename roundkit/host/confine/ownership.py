"""Handing writable places to the user id of a command, and taking them back.

The caller passes places that it owns. While a command runs they belong to the command's user id; before
the call returns they belong to the coordinator again. Only entries of the coordinator's, or left over by a
command whose coordinator died, change hands; a file that has names outside the place keeps its owner on the
way in. Nothing is followed, and other file systems are not entered.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from roundkit.core.errors import refuse
from roundkit.host.confine.places import Place
from roundkit.host.confine.slots import Slot, is_slot_uid, places_in_use

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def lend(places: Sequence[Place], slot: Slot, stack: ExitStack) -> None:
    """Give writable places to the user of a slot until ``stack`` closes.

    Raises:
        Refused: Another running command has one of them (``writable-in-use``), or the user cannot read a
            readable one (``source-unreadable``).
    """
    writable = [place for place in places if place.writable]
    # Noted before it is looked for: of two commands that want the same place at once, at least one sees it.
    slot.note(place.source for place in writable)
    in_use = places_in_use(other_than=slot)
    for place in places:
        if place.writable:
            _check_free(place, in_use)
        else:
            _check_readable(place, slot.uid)
    for place in writable:
        stack.callback(_change, place, _belongs_to(slot.uid), os.geteuid(), os.getegid())
        _change(place, _may_be_lent(), slot.uid, slot.uid)


def _check_free(place: Place, in_use: Iterable[Path]) -> None:
    mine = place.source
    if any(mine.is_relative_to(other) or other.is_relative_to(mine) for other in in_use):
        raise refuse(
            "writable-in-use",
            f"{place.source} is writable for another command that runs now",
            remedy="give each command its own writable folders",
        )


def _check_readable(place: Place, uid: int) -> None:
    found = os.fstat(place.fd)
    needed = 0o5 if place.is_dir else 0o4
    if found.st_uid != uid and found.st_mode & needed != needed:
        raise refuse(
            "source-unreadable",
            f"{place.source} has mode {stat.S_IMODE(found.st_mode):04o}, so uid {uid} cannot read it",
            remedy=f"chmod o+r{'x' if place.is_dir else ''} {place.source}",
        )


def _may_be_lent() -> Callable[[os.stat_result], bool]:
    """Return a judge of the entries of one place that counts the names of each file."""
    names: Counter[tuple[int, int]] = Counter()

    def judge(found: os.stat_result) -> bool:
        if not stat.S_ISDIR(found.st_mode) and found.st_nlink > 1:
            key = (found.st_dev, found.st_ino)
            names[key] += 1
            # At its last name it is known that all of them lie inside.
            if names[key] < found.st_nlink:
                return False
        return found.st_uid == os.geteuid() or is_slot_uid(found.st_uid)

    return judge


def _belongs_to(uid: int) -> Callable[[os.stat_result], bool]:
    return lambda found: found.st_uid == uid


def _change(place: Place, wanted: Callable[[os.stat_result], bool], uid: int, gid: int) -> None:
    if wanted(os.fstat(place.fd)):
        os.chown(f"/proc/self/fd/{place.fd}", uid, gid)
    if not place.is_dir:
        return
    top = os.open(f"/proc/self/fd/{place.fd}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for folder, name, found in walk(top):
        if wanted(found):
            os.chown(name, uid, gid, dir_fd=folder, follow_symlinks=False)


@dataclass
class _Level:
    device: int
    inode: int
    folders: list[str]


def walk(top: int) -> Iterator[tuple[int, str, os.stat_result]]:
    """Yield each entry of a still tree as (folder descriptor, name, stat), however deep it is.

    One folder is open at a time and the way up goes over ``..``: the depth is the command's to choose, and
    neither descriptors nor the stack may run out over it.

    Args:
        top: Descriptor of the top folder; the walk closes it.
    """
    here = top
    try:
        found = os.fstat(here)
        device = found.st_dev
        levels = [_Level(found.st_dev, found.st_ino, [])]
        yield from _entries(here, device, levels[-1].folders)
        while levels:
            if levels[-1].folders:
                below = os.open(levels[-1].folders.pop(), _DIRECTORY, dir_fd=here)
                os.close(here)
                here = below
                found = os.fstat(here)
                levels.append(_Level(found.st_dev, found.st_ino, []))
                yield from _entries(here, device, levels[-1].folders)
                continue
            levels.pop()
            if levels:
                above = os.open("..", _DIRECTORY, dir_fd=here)
                os.close(here)
                here = above
                found = os.fstat(here)
                if (found.st_dev, found.st_ino) != (levels[-1].device, levels[-1].inode):
                    raise RuntimeError("a tree changed while nothing should have been running in it")
    finally:
        os.close(here)


def _entries(folder: int, device: int, folders: list[str]) -> Iterator[tuple[int, str, os.stat_result]]:
    for name in os.listdir(folder):
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        yield folder, name, found
        if stat.S_ISDIR(found.st_mode) and found.st_dev == device:
            folders.append(name)
