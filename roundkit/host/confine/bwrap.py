"""The arguments with which bubblewrap builds one boundary."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from roundkit.host.confine.overlay import OpenOverlay
from roundkit.host.confine.places import Place
from roundkit.host.confine.spawn import FIRST_FREE_FD, memory_file
from roundkit.host.confine.types import CHANGED, WORK, Limits, MountRecord, Network

ARGS_FD = 4
STATUS_FD = 5
SECCOMP_FD = 6

PRIVATE_PLACES = ("/tmp", "/dev/shm")  # noqa: S108 - paths inside the boundary
"""Private, empty file systems that every command has."""

_HOST_FILES = ("/etc/ld.so.cache",)
_SYSTEM_FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


@dataclass(frozen=True)
class Arguments:
    """The arguments of one boundary, and the mounts they make."""

    words: tuple[str, ...]
    mounts: tuple[MountRecord, ...]

    def encoded(self) -> bytes:
        """Return the arguments as ``--args`` reads them."""
        return os.fsencode("\0".join(self.words) + "\0")


class _Words:
    """Collects arguments and mount records in the order in which bubblewrap acts."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.mounts: list[MountRecord] = []
        self.made = {""}

    def add(self, *words: str) -> None:
        self.words += words

    def parents(self, at: str) -> None:
        """Make the folders above ``at`` passable; bubblewrap's own would be 0700."""
        above = at.rpartition("/")[0]
        if above not in self.made:
            self.parents(above)
            self.made.add(above)
            self.add("--perms", "0755", "--dir", above)

    def file(self, at: str, fd: int) -> None:
        self.parents(at)
        self.add("--perms", "0644", "--file", str(fd), at)

    def private(self, at: str, limits: Limits, perms: str) -> None:
        self.parents(at)
        self.add("--perms", perms, "--size", str(limits.tmp_bytes), "--tmpfs", at)
        self.mounts.append(MountRecord(source=None, at=at, mode="private"))

    def host_dir(self, path: str) -> None:
        self.parents(path)
        self.add("--ro-bind", path, path)
        self.made.add(path)
        self.mounts.append(MountRecord(source=path, at=path, mode="ro"))

    def device(self, path: str) -> None:
        above = path.rpartition("/")[0]
        if above != "/dev":
            self.parents(path)
        self.add("--dev-bind", path, path)
        self.mounts.append(MountRecord(source=path, at=path, mode="rw"))

    def bind(self, place: Place, fd: int, *, make_parents: bool) -> None:
        if make_parents:
            self.parents(str(place.at))
        self.add("--bind-fd" if place.writable else "--ro-bind-fd", str(fd), str(place.at))
        self.mounts.append(place.record())

    def overlay(self, overlay: OpenOverlay) -> None:
        at = str(overlay.at)
        self.parents(at)
        # By path, since bubblewrap would leave a descriptor open for the command.
        for layer in overlay.layers:
            self.add("--overlay-src", str(layer.path))
        if overlay.changes is None:
            self.add("--ro-overlay", at)
        else:
            self.add("--overlay", f"{overlay.changes.path}/{CHANGED}", f"{overlay.changes.path}/{WORK}", at)
        self.made.add(at)
        self.mounts += overlay.records()


class Builder:
    """Describes one boundary for bubblewrap: first what it is passed, then the words that name it.

    Attributes:
        fds: Descriptor in bubblewrap → descriptor here.

    Args:
        places: Granted places in mounting order.
        uid: User id of the command.
        gid: Group id of the command.
        network: What the command may reach.
        stack: Closes the descriptors of generated files.
        overlay: A folder put together of layers, below all places.
        devices: Device files that the command may use, checked before.
    """

    def __init__(
        self,
        places: Sequence[Place],
        *,
        uid: int,
        gid: int,
        network: Network,
        stack: ExitStack,
        overlay: OpenOverlay | None = None,
        devices: Sequence[Path] = (),
    ) -> None:
        self._devices = devices
        self._places = places
        self._overlay = overlay
        self._network = network
        self.fds: dict[int, int] = {}
        self._contents = _made_files(uid, gid)
        self._made = {at: memory_file("file", b"", stack) for at in self._contents}
        host = {at: fd for at in _host_files(network) if (fd := _opened(at, stack)) is not None}
        self._files = {at: self._pass(fd) for at, fd in {**self._made, **host}.items()}
        self._place_fds = [self._pass(place.fd) for place in places]

    def _pass(self, fd: int) -> int:
        number = FIRST_FREE_FD + len(self.fds)
        self.fds[number] = fd
        return number

    def arguments(self, *, cwd: PurePosixPath, env: Mapping[str, str], limits: Limits) -> Arguments:
        """Return the words that build the whole boundary, and fill the files that they name.

        Args:
            cwd: Working directory inside.
            env: The environment of the command, all of it.
            limits: For the size of the private file systems.
        """
        for at, content in self._contents.items():
            os.pwrite(self._made[at], content, 0)
        build = _Words()
        build.add("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup")
        if self._network.kind != "host":
            build.add("--unshare-net")
        build.add("--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
        build.add("--hostname", "roundkit", "--clearenv")
        self._system(build)
        # A fresh /proc of one's own namespace still has files of the whole host in it that root may write.
        build.add("--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev")
        for at in PRIVATE_PLACES:
            build.private(at, limits, "1777")
        for node in self._devices:
            build.device(str(node))
        build.add("--remount-ro", "/dev", "--perms", "0755", "--dir", "/run")
        _home(build, self._places, env, limits)
        if self._overlay is not None:
            build.overlay(self._overlay)
        for place, fd in zip(self._places, self._place_fds, strict=True):
            build.bind(place, fd, make_parents=not self._is_within_another(place))
        build.add("--remount-ro", "/")
        for name, value in env.items():
            build.add("--setenv", name, value)
        build.add("--chdir", str(cwd), "--json-status-fd", str(STATUS_FD), "--seccomp", str(SECCOMP_FD))
        return Arguments(tuple(build.words), tuple(build.mounts))

    def _is_within_another(self, place: Place) -> bool:
        """Say whether a place lies in another one, where bubblewrap finds its mount point."""
        tops = [other.at for other in self._places]
        if self._overlay is not None:
            tops.append(self._overlay.at)
        return any(str(place.at).startswith(f"{top}/") for top in tops)

    def _system(self, build: _Words) -> None:
        """Assemble the root from the system's library and binary folders, with a small /etc of its own."""
        for at, fd in self._files.items():
            build.file(at, fd)
        for path, target in _system_layout():
            if target:
                build.add("--symlink", target, path)
            else:
                build.host_dir(path)
        if self._network.kind != "none" and Path("/etc/ssl/certs").is_dir():
            build.host_dir("/etc/ssl/certs")


@cache
def _system_layout() -> tuple[tuple[str, str], ...]:
    """Return the system's folders as (path, link target); the target is empty for a folder to bind."""
    layout = [("/usr", "")]
    for name in _SYSTEM_FOLDERS:
        path = Path("/", name)
        if path.is_symlink():
            layout.append((str(path), str(path.readlink())))
        elif path.is_dir():
            layout.append((str(path), ""))
    if Path("/etc/alternatives").is_dir():
        layout.append(("/etc/alternatives", ""))
    return tuple(layout)


def _made_files(uid: int, gid: int) -> dict[str, bytes]:
    """Return the files of the small /etc that are made for it."""
    return {
        "/etc/passwd": f"root:x:0:0::/:/bin/sh\nroundkit:x:{uid}:{gid}::/:/bin/sh\n".encode(),
        "/etc/group": f"root:x:0:\nroundkit:x:{gid}:\n".encode(),
        "/etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files dns\n",
        "/etc/hosts": b"127.0.0.1 localhost\n::1 localhost\n",
    }


def _host_files(network: Network) -> tuple[str, ...]:
    """Return the files of the small /etc that are the host's; bubblewrap copies them."""
    return _HOST_FILES if network.kind != "host" else (*_HOST_FILES, "/etc/hosts", "/etc/resolv.conf")


def _opened(path: str, stack: ExitStack) -> int | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    stack.callback(os.close, fd)
    return fd


def _home(build: _Words, places: Sequence[Place], env: Mapping[str, str], limits: Limits) -> None:
    """Give ``HOME``, where the plan sets one, a private place, unless a granted one covers it."""
    home = PurePosixPath(env.get("HOME", ""))
    if not home.is_absolute() or ".." in home.parts or home == PurePosixPath("/"):
        return
    if any(home.is_relative_to(place.at) for place in places):
        return
    if home.is_relative_to("/tmp"):  # noqa: S108
        build.parents(f"{home}/x")
    elif not any(home.is_relative_to(top) for top in ("/proc", "/dev", "/usr", "/etc", "/run")):
        build.private(str(home), limits, "0700")
