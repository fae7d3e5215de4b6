"""Where control groups can be made: the mounted hierarchies that have a controller, version 1 or 2."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Hierarchy:
    """One mounted hierarchy that has a controller.

    Attributes:
        version: 1 or 2.
        base: Where groups may be made.
        own: This process's own group, None if it lies outside of what is mounted.
    """

    version: int
    base: Path
    own: Path | None


@cache
def hierarchies() -> dict[str, tuple[Hierarchy, ...]]:
    """Find where groups with each controller may be made: below this process's own, else beside it."""
    own = _own_groups()
    found: dict[str, list[Hierarchy]] = {"memory": [], "pids": [], "cpu": []}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        root, mountpoint = before.split(" ")[3:5]
        if kind == "cgroup2":
            places = _places(2, Path(mountpoint), root, own.get("", "/"))
            for controller in found:
                # The plain counter of CPU time needs no controller, so the own group always does.
                found[controller] += places
        elif kind == "cgroup":
            names = options.split(" ")[-1].split(",")
            for controller, name in (("memory", "memory"), ("pids", "pids"), ("cpu", "cpuacct")):
                if name in names:
                    found[controller] += _places(1, Path(mountpoint), root, own.get(name, "/"))
    return {controller: tuple(places) for controller, places in found.items()}


def _own_groups() -> dict[str, str]:
    own: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            own[controller] = path
    return own


def _places(version: int, mountpoint: Path, root: str, path: str) -> list[Hierarchy]:
    relative = os.path.relpath(path, root)
    if relative.startswith(".."):
        # The path is the host's, the mount the container's: its top is the own group.
        return [Hierarchy(version, mountpoint, None)]
    own = Path(os.path.normpath(mountpoint / relative))
    bases = [own] if own == mountpoint else [own, own.parent]
    return [Hierarchy(version, base, own) for base in bases]
