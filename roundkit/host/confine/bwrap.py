"""The arguments with which bubblewrap builds one boundary."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from roundkit.host.confine.places import Place
from roundkit.host.confine.spawn import FIRST_FREE_FD, memory_file
from roundkit.host.confine.types import Limits, MountRecord, Network

ARGS_FD = 4
STATUS_FD = 5
SECCOMP_FD = 6

PRIVATE_PLACES = ("/tmp", "/dev/shm")  # noqa: S108 - paths inside the boundary
"""Private, empty file systems that every command has."""

_SYSTEM_DIRS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


@dataclass(frozen=True)
class Arguments:
    """The arguments of one boundary, the descriptors they name, and the mounts they make."""

    words: tuple[str, ...]
    fds: Mapping[int, int]
    mounts: tuple[MountRecord, ...]

    def encoded(self) -> bytes:
        """Return the arguments as ``--args`` reads them."""
        return b"".join(os.fsencode(word) + b"\0" for word in self.words)


class _Builder:
    """Collects arguments, descriptors and mount records in the order in which bubblewrap acts."""

    def __init__(self, stack: ExitStack, first_fd: int) -> None:
        self.words: list[str] = []
        self.fds: dict[int, int] = {}
        self.mounts: list[MountRecord] = []
        self._stack = stack
        self._next_fd = first_fd
        self._made = {""}

    def add(self, *words: str) -> None:
        self.words += words

    def pass_fd(self, fd: int) -> str:
        number = self._next_fd
        self._next_fd += 1
        self.fds[number] = fd
        return str(number)

    def parents(self, at: str) -> None:
        """Make the folders above ``at`` passable; bubblewrap's own would be 0700."""
        above = at.rpartition("/")[0]
        if above not in self._made:
            self.parents(above)
            self._made.add(above)
            self.add("--perms", "0755", "--dir", above)

    def file(self, at: str, content: bytes) -> None:
        self.parents(at)
        fd = memory_file("file", content, self._stack)
        self.add("--perms", "0644", "--file", self.pass_fd(fd), at)

    def private(self, at: str, limits: Limits, perms: str) -> None:
        self.parents(at)
        self.add("--perms", perms, "--size", str(limits.tmp_bytes), "--tmpfs", at)
        self.mounts.append(MountRecord(source=None, at=at, mode="private"))

    def host_dir(self, path: str) -> None:
        self.parents(path)
        self.add("--ro-bind", path, path)
        self._made.add(path)
        self.mounts.append(MountRecord(source=path, at=path, mode="ro"))

    def bind(self, place: Place, *, make_parents: bool) -> None:
        if make_parents:
            self.parents(str(place.at))
        option = "--bind-fd" if place.writable else "--ro-bind-fd"
        self.add(option, self.pass_fd(place.fd), str(place.at))
        self.mounts.append(place.record())


def boundary_arguments(
    places: Sequence[Place],
    *,
    cwd: PurePosixPath,
    env: Mapping[str, str],
    limits: Limits,
    network: Network,
    uid: int,
    gid: int,
    stack: ExitStack,
) -> Arguments:
    """Describe the whole boundary for bubblewrap.

    Args:
        places: Granted places in mounting order.
        cwd: Working directory inside.
        env: The environment of the command, all of it.
        limits: For the size of the private file systems.
        network: What the command may reach.
        uid: User id of the command.
        gid: Group id of the command.
        stack: Closes the descriptors of generated files.
    """
    build = _Builder(stack, FIRST_FREE_FD)
    build.add("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup")
    if network.kind != "host":
        build.add("--unshare-net")
    build.add("--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
    build.add("--hostname", "roundkit", "--clearenv")
    _system(build, uid, gid, network)
    # A fresh /proc of one's own namespace still has files of the whole host in it that root may write.
    build.add("--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev")
    for at in PRIVATE_PLACES:
        build.private(at, limits, "1777")
    build.add("--remount-ro", "/dev", "--perms", "0755", "--dir", "/run")
    _home(build, places, env, limits)
    for place in places:
        inside = any(place.at.is_relative_to(other.at) for other in places if other is not place)
        build.bind(place, make_parents=not inside)
    build.add("--remount-ro", "/")
    for name, value in env.items():
        build.add("--setenv", name, value)
    build.add("--chdir", str(cwd), "--json-status-fd", str(STATUS_FD), "--seccomp", str(SECCOMP_FD))
    return Arguments(tuple(build.words), build.fds, tuple(build.mounts))


@cache
def _system_layout() -> tuple[tuple[str, str], ...]:
    """Return the system's folders as (path, link target); the target is empty for a folder to bind."""
    layout = [("/usr", "")]
    for name in _SYSTEM_DIRS:
        path = Path("/", name)
        if path.is_symlink():
            layout.append((str(path), str(path.readlink())))
        elif path.is_dir():
            layout.append((str(path), ""))
    if Path("/etc/alternatives").is_dir():
        layout.append(("/etc/alternatives", ""))
    return tuple(layout)


def _system(build: _Builder, uid: int, gid: int, network: Network) -> None:
    """Assemble the root from the system's library and binary folders, with a small /etc of its own."""
    files = {
        "/etc/passwd": f"root:x:0:0::/:/bin/sh\nroundkit:x:{uid}:{gid}::/:/bin/sh\n".encode(),
        "/etc/group": f"root:x:0:\nroundkit:x:{gid}:\n".encode(),
        "/etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files dns\n",
        "/etc/hosts": b"127.0.0.1 localhost\n::1 localhost\n",
    }
    taken = ["/etc/ld.so.cache"]
    if network.kind == "host":
        taken += ["/etc/hosts", "/etc/resolv.conf"]
    for name in taken:
        with suppress(FileNotFoundError):
            files[name] = Path(name).read_bytes()
    for at, content in files.items():
        build.file(at, content)
    for path, target in _system_layout():
        if target:
            build.add("--symlink", target, path)
        else:
            build.host_dir(path)
    if network.kind != "none" and Path("/etc/ssl/certs").is_dir():
        build.host_dir("/etc/ssl/certs")


def _home(build: _Builder, places: Sequence[Place], env: Mapping[str, str], limits: Limits) -> None:
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
