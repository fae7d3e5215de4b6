"""Whose draft a file is: by its shard's own target list, exactly one target or none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from roundkit.models.wave_records import Key, TargetKey


@dataclass(frozen=True)
class Unowned:
    """Why a draft belongs to no one target."""

    reason: str


def is_draft(path: str, suffix: str) -> bool:
    """Say whether a file in a shard's folder is a draft at all; notes and logs of agents are not."""
    return path.endswith(suffix) and path.rpartition("/")[2] != suffix


def owner_of(path: str, suffix: str, targets: Iterable[TargetKey]) -> Key | Unowned:
    """Return the (group, name) that a draft belongs to.

    Args:
        path: The draft's path within its shard's folder: ``NAME.c`` or ``GROUP/NAME.c``.
        suffix: End of every draft's name.
        targets: What this shard was given; nothing else says whose a draft is.

    Returns:
        The identity, or why there is no one: the shard has no such target, or has several of that name.
    """
    folder, _, last = path.rpartition("/")
    name = last.removesuffix(suffix)
    named = sorted({(target.group, target.name) for target in targets if target.name == name})
    if "/" in folder:
        return Unowned("it lies too deep to name a target")
    if folder:
        wanted = (folder, name)
        return wanted if wanted in named else Unowned(f"the shard has no target {folder}/{name}")
    if len(named) == 1:
        return named[0]
    if named:
        groups = ", ".join(group for group, _ in named)
        return Unowned(f"the shard has {name} in several groups ({groups}): name it GROUP/{name}{suffix}")
    return Unowned(f"the shard has no target {name}")
