"""Places below folders that only root may enter, as an interpreter in root's home, and layers to be changed.

bubblewrap resolves every source as the user that the command runs as, which stops at such a folder. A
thread of the coordinator therefore takes a mount namespace of its own, mounts these places into a folder
that everybody may enter, and starts bubblewrap from there. Nothing of it is seen on the host.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Generic, TypeVar

from roundkit.core.errors import refuse
from roundkit.host.confine.idmap import mount_owned_by
from roundkit.host.confine.places import Place
from roundkit.host.confine.runtime import is_reachable, runtime_dir

_CLONE_NEWNS = 0x00020000
_MS_BIND = 4096
_MS_REC = 16384
_MS_SLAVE = 1 << 19

T = TypeVar("T")


class _Outcome(Generic[T]):
    """What a thread came to: a value or an error."""

    def __init__(self) -> None:
        self.value: list[T] = []
        self.error: BaseException | None = None

    def take(self) -> T:
        if self.error is not None:
            raise self.error
        return self.value[0]


def with_staged(
    places: Sequence[Place], work: Callable[[Sequence[Place]], T], interrupt: Callable[[], None]
) -> T:
    """Call ``work`` with places that bubblewrap can resolve as an unprivileged user.

    Args:
        places: Opened places; those that are reachable and need no other owner stay as they are.
        work: What to do; runs in a thread of its own if any place had to be staged.
        interrupt: Ends the work early, if this thread is interrupted while it waits.

    Raises:
        Refused: A place cannot be reached and root may not mount here (``source-unreachable``).
    """
    if not any(_to_stage(place) for place in places):
        return work(places)
    outcome: _Outcome[T] = _Outcome()

    def run() -> None:
        try:
            with ExitStack() as stack:
                outcome.value.append(work(_stage(places, stack)))
        except BaseException as error:
            outcome.error = error

    thread = threading.Thread(target=run, name="confined", daemon=True)
    thread.start()
    try:
        thread.join()
    except BaseException:
        interrupt()
        thread.join()
        raise
    return outcome.take()


def _to_stage(place: Place) -> bool:
    return place.owner is not None or not is_reachable(place.source)


def _stage(places: Sequence[Place], stack: ExitStack) -> list[Place]:
    """Move this thread into a namespace where these places are mounted in an open folder."""
    folder = runtime_dir() / "staging"
    folder.mkdir(mode=0o755, exist_ok=True)
    staged = list(places)
    number = -1
    try:
        _call("unshare", _CLONE_NEWNS)
        _call("mount", None, b"/", None, _MS_REC | _MS_SLAVE, None)
        _call("mount", b"staging", os.fsencode(folder), b"tmpfs", 0, b"mode=0755")
        for number, place in enumerate(places):
            if _to_stage(place):
                staged[number] = _mount(place, folder / str(number), stack)
    except OSError as error:
        hidden = places[max(number, 0)]
        raise refuse(
            "source-unreachable",
            f"{hidden.source} lies below a folder that only root may enter, or must change hands, and it"
            f" cannot be mounted elsewhere: {error.strerror}",
            remedy="put it where every user can get at it, or give this container CAP_SYS_ADMIN",
        ) from None
    return staged


def _mount(place: Place, target: Path, stack: ExitStack) -> Place:
    if place.is_dir:
        target.mkdir(mode=0o755)
    else:
        target.touch(mode=0o644)
    if place.owner is not None:
        mount_owned_by(place.owner, place.source, target)
    else:
        _call("mount", os.fsencode(place.source), os.fsencode(target), None, _MS_BIND | _MS_REC, None)
    fd = os.open(target, os.O_PATH | os.O_CLOEXEC)
    stack.callback(os.close, fd)
    if not os.path.sameopenfile(fd, place.fd):
        raise refuse("mount-source", f"{place.source} was replaced while it was being mounted")
    return replace(place, fd=fd, mounted=target)


def _call(name: str, *arguments: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
