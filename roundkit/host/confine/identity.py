"""Who a confined command runs as."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from roundkit.host.confine.runtime import reachable_binary
from roundkit.host.confine.slots import FIRST_UID, SLOTS, Slot, take_slot
from roundkit.host.confine.unavailable import ConfinementUnavailable

_SETPRIV = ("/usr/bin/setpriv", "/bin/setpriv", "/usr/sbin/setpriv", "/sbin/setpriv")


@dataclass(frozen=True)
class Identity:
    """A user, and the words that start bubblewrap as that user.

    Attributes:
        uid: User id, inside and outside.
        gid: Group id.
        prefix: Program and arguments; the last word is bubblewrap.
        slot: The slot whose user it is, None if it is the coordinator's own.
    """

    uid: int
    gid: int
    prefix: tuple[str, ...]
    slot: Slot | None

    @property
    def dropped(self) -> bool:
        """Whether the coordinator is root and gives that up for the command."""
        return self.slot is not None


def take_identity(backend: Path, stack: ExitStack) -> Identity:
    """Return the coordinator's own identity, or for root a user id that is its alone until ``stack`` closes.

    Args:
        backend: The bubblewrap binary.
        stack: Gives the user id back.

    Raises:
        ConfinementUnavailable: Root cannot have such an id.
    """
    if os.geteuid() != 0:
        return Identity(os.geteuid(), os.getegid(), (str(backend),), None)
    setpriv = next((path for path in _SETPRIV if os.access(path, os.X_OK)), None)
    if setpriv is None:
        raise ConfinementUnavailable(
            "setpriv-missing", "root needs setpriv to give its rights up", "install util-linux"
        )
    if not _slots_are_mapped():
        raise ConfinementUnavailable(
            "uid-drop",
            f"the user namespace of this root has no user ids from {FIRST_UID} on to give commands",
            "start roundkit as an ordinary user, or map a range of ids into the container",
        )
    slot = take_slot(stack)
    uid = slot.uid
    drop = (setpriv, f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--inh-caps=-all", "--")
    return Identity(uid, uid, (*drop, str(reachable_binary(backend))), slot)


@cache
def _slots_are_mapped() -> bool:
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        first, _, count = map(int, line.split())
        if first <= FIRST_UID and first + count >= FIRST_UID + SLOTS:
            return True
    return False
