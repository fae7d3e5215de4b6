"""The granted places: checked, opened before anything can swap them, and put in order."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from roundkit.core.beneath import BENEATH, NO_MAGICLINKS, NO_SYMLINKS, openat2
from roundkit.core.errors import Refused, refuse
from roundkit.host.confine.types import Mount, MountRecord

_AT_FDCWD = -100

# With a slash behind, so that a path with one is within what it begins with.
_NEVER_A_SOURCE = ("/proc/", "/sys/", "/dev/", "/run/", "/var/run/")
_NEVER_WRITABLE = (
    "/bin/", "/boot/", "/etc/", "/lib/", "/lib32/", "/lib64/", "/libx32/", "/sbin/", "/usr/",
)  # fmt: skip
_NEVER_AT = frozenset({"/", "/run", "/tmp", "/etc"})  # noqa: S108 - names, not files
_NEVER_BELOW = ("/proc/", "/sys/", "/dev/")


@dataclass(frozen=True)
class Place:
    """One opened source and where it goes.

    Attributes:
        fd: ``O_PATH`` descriptor of the source, which no rename can redirect.
        source: Path that was opened.
        at: Path inside the boundary.
        writable: Whether the command may change it.
        is_dir: Whether it is a directory.
        mounted: Path at which bubblewrap reaches it, None where that is the source.
        owner: User whom root's files in it are to belong to inside, None to leave them as they are.
    """

    fd: int
    source: Path
    at: PurePosixPath
    writable: bool
    is_dir: bool
    mounted: Path | None = None
    owner: int | None = None

    @property
    def path(self) -> Path:
        """Where bubblewrap reaches it."""
        return self.source if self.mounted is None else self.mounted

    def record(self) -> MountRecord:
        """Describe the mount for the record."""
        return MountRecord(source=str(self.source), at=str(self.at), mode="rw" if self.writable else "ro")


def open_places(
    writable: Sequence[Path | Mount], readable: Sequence[Path | Mount], stack: ExitStack
) -> list[Place]:
    """Open every granted place and return them in mounting order, shallow before deep.

    A place inside a writable one gets its parent folders pinned (mounted onto themselves), so that the
    command cannot rename a parent away and put its own file where the protected one is looked for.

    Args:
        writable: Places that the command may change.
        readable: Places that it may read.
        stack: Closes the descriptors.

    Raises:
        Refused: A place is missing, crosses a symbolic link, is one that is never granted, is granted
            twice, or would be mounted onto something else than a plain file or folder.
    """
    places = [open_place(_as_mount(item), True, stack) for item in writable]
    places += [open_place(_as_mount(item), False, stack) for item in readable]
    by_at: dict[str, Place] = {}
    for place in places:
        if str(place.at) in by_at:
            raise refuse("mount-twice", f"two places would be mounted at {place.at}", place=str(place.source))
        by_at[str(place.at)] = place
    for place in sorted(places, key=_depth):
        parent = _nearest_above(place.at, by_at)
        if parent is None or not parent.writable:
            continue
        for pin in _pin_parents(parent, place, stack):
            by_at[str(pin.at)] = pin
    return sorted(by_at.values(), key=_depth)


def check_devices(nodes: Sequence[Path]) -> None:
    """Check that only device files are granted as such; who may make one there is root already.

    Raises:
        Refused: ``device-node``.
    """
    for node in nodes:
        try:
            mode = node.lstat().st_mode
        except OSError as error:
            raise refuse("device-node", f"{node} cannot be granted: {error.strerror}") from None
        plain = node.is_absolute() and ".." not in node.parts and node.is_relative_to("/dev")
        if not plain or not stat.S_ISCHR(mode):
            raise refuse("device-node", f"{node} is no character device below /dev")


def _depth(place: Place) -> tuple[int, str]:
    return len(place.at.parts), str(place.at)


def _as_mount(item: Path | Mount) -> Mount:
    return item if isinstance(item, Mount) else Mount(item, item)


def _absolute(path: Path) -> str:
    """Return a path as text that no other text stands for.

    Raises:
        Refused: It is not absolute, or climbs (``mount-path``).
    """
    if not path.is_absolute() or ".." in path.parts:
        raise refuse("mount-path", f"{path} is not an absolute path", remedy="resolve it first")
    # pathlib has taken out everything else, but keeps two slashes in front.
    return "/" + str(path).lstrip("/")


def open_place(mount: Mount, writable: bool, stack: ExitStack) -> Place:
    """Open one granted place.

    Raises:
        Refused: It is missing, crosses a symbolic link, or is one that is never granted.
    """
    source = _absolute(mount.source)
    at = source if mount.at is mount.source else _absolute(mount.at)
    within, within_at = f"{source}/", f"{at}/"
    hidden = within.startswith(_NEVER_A_SOURCE) and not source.startswith("/dev/shm/")  # noqa: S108
    if source == "/" or hidden or (writable and within.startswith(_NEVER_WRITABLE)):
        raise refuse("mount-source", f"{source} is never granted", remedy="name the folder that is needed")
    never_here = (*_NEVER_BELOW, *_NEVER_WRITABLE) if writable else _NEVER_BELOW
    if at in _NEVER_AT or within_at.startswith(never_here):
        raise refuse("mount-target", f"nothing is ever mounted at {at}")
    try:
        fd = openat2(_AT_FDCWD, source, os.O_PATH, NO_SYMLINKS | NO_MAGICLINKS)
    except OSError as error:
        raise _source_refusal(source, error) from None
    stack.callback(os.close, fd)
    mode = os.fstat(fd).st_mode
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise refuse("mount-source", f"{source} is neither a folder nor a regular file")
    return Place(fd, Path(source), PurePosixPath(at), writable, stat.S_ISDIR(mode))


def _source_refusal(source: str, error: OSError) -> Refused:
    if error.errno == errno.ELOOP:
        return refuse(
            "mount-source-link", f"{source} is or crosses a symbolic link", remedy="pass the resolved path"
        )
    return refuse("mount-source-missing", f"{source} cannot be opened: {error.strerror}")


def _nearest_above(at: PurePosixPath, by_at: Mapping[str, Place]) -> Place | None:
    above = str(at)
    while above := above.rpartition("/")[0]:
        if above in by_at:
            return by_at[above]
    return None


def _pin_parents(parent: Place, place: Place, stack: ExitStack) -> list[Place]:
    """Make the way from ``parent`` to ``place`` real folders, pinned, and its end a fit mount point."""
    pins = []
    above = parent
    for name in place.at.relative_to(parent.at).parts[:-1]:
        fd = _open_folder(above, name, stack)
        above = Place(fd, above.source / name, above.at / name, True, True)
        pins.append(above)
    _prepare_mount_point(above, place)
    return pins


def _open_folder(above: Place, name: str, stack: ExitStack) -> int:
    walk = _reopen(above, stack)
    with suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=walk)
    try:
        fd = openat2(walk, name, os.O_PATH | os.O_DIRECTORY, BENEATH | NO_SYMLINKS)
    except OSError as error:
        raise mount_point_refusal(above.at / name, error.strerror or "") from None
    stack.callback(os.close, fd)
    return fd


def _prepare_mount_point(above: Place, place: Place) -> None:
    name = place.at.name
    with ExitStack() as stack:
        walk = _reopen(above, stack)
        try:
            found = os.stat(name, dir_fd=walk, follow_symlinks=False)
        except FileNotFoundError:
            if place.is_dir:
                os.mkdir(name, 0o755, dir_fd=walk)
            else:
                fresh = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                os.close(os.open(name, fresh, 0o644, dir_fd=walk))
            return
    fits = stat.S_ISDIR(found.st_mode) if place.is_dir else stat.S_ISREG(found.st_mode)
    if not fits:
        raise mount_point_refusal(place.at, "it is " + ("no folder" if place.is_dir else "no regular file"))


def _reopen(place: Place, stack: ExitStack) -> int:
    """Turn an ``O_PATH`` descriptor into one that directory calls accept everywhere."""
    fd = os.open(f"/proc/self/fd/{place.fd}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    stack.callback(os.close, fd)
    return fd


def mount_point_refusal(at: PurePosixPath, why: str) -> Refused:
    """Return the refusal of a place in which nothing can be mounted."""
    return refuse(
        "mount-point",
        f"{at} lies in a writable place and cannot take a mount: {why}",
        remedy="a candidate that puts a link or another kind of file there is rejected",
    )
