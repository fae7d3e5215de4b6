"""A network on this machine: members in network namespaces of their own, whose cables can be pulled."""

from __future__ import annotations

import ipaddress
import itertools
import os
import shutil
import subprocess
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

# Addresses that are set aside for trying out networks (RFC 2544), sixteen for each network.
_ADDRESSES = ipaddress.ip_network("198.18.0.0/15")
_PREFIX = 28
_SWITCH = "switch"
_numbers = itertools.count()


@dataclass(frozen=True)
class Network:
    """Members on one switch, to which this machine is connected too.

    Attributes:
        tag: What the names of everything that belongs to it begin with.
        here: This machine's address in it.
        members: Each member's name, and its address.
    """

    tag: str
    here: str
    members: Mapping[str, str]

    def inside(self, member: str) -> list[str]:
        """Return what goes before a command that is to run at a member."""
        # Not `ip netns exec`, which hides the control groups.
        return ["nsenter", f"--net=/run/netns/{self._space(member)}", "--"]

    def cut(self, member: str) -> None:
        """Pull the member's cable at the switch: nothing comes through, and nobody is told."""
        _ip("-n", self._space(_SWITCH), "link", "set", self._port(member), "down")

    def mend(self, member: str) -> None:
        """Plug the cable in again."""
        _ip("-n", self._space(_SWITCH), "link", "set", self._port(member), "up")

    def _space(self, member: str) -> str:
        return f"{self.tag}-{member}"

    def _port(self, member: str) -> str:
        return f"p{sorted(self.members).index(member)}"

    def make(self) -> None:
        """Make namespaces, switch and cables.

        Raises:
            CalledProcessError: this machine does not allow it.
        """
        switch = self._space(_SWITCH)
        _ip("netns", "add", switch)
        # The switch has a namespace too, so that no firewall of this machine has a say.
        _ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        _ip("-n", switch, "link", "set", "bridge", "up")
        for member, address in self.members.items():
            space = self._space(member)
            _ip("netns", "add", space)
            _ip("-n", space, "link", "set", "lo", "up")
            self._plug(self._port(member), "eth0", space, address)
        self._plug("p-here", self.tag, None, self.here)

    def _plug(self, port: str, card: str, space: str | None, address: str) -> None:
        """Connect a card, in a namespace or here, to a port of the switch."""
        switch = self._space(_SWITCH)
        at = ["-n", space] if space else []
        end = space or str(os.getpid())
        _ip("-n", switch, "link", "add", port, "type", "veth", "peer", "name", card, "netns", end)
        _ip("-n", switch, "link", "set", port, "master", "bridge")
        _ip("-n", switch, "link", "set", port, "up")
        _ip(*at, "address", "add", f"{address}/{_PREFIX}", "dev", card)
        _ip(*at, "link", "set", card, "up")

    def remove(self) -> None:
        """Remove everything; what still runs at a member keeps its namespace until it ends."""
        for member in (_SWITCH, *self.members):
            subprocess.run(["ip", "netns", "delete", self._space(member)], capture_output=True, check=False)


@contextmanager
def network(*members: str) -> Iterator[Network | None]:
    """Connect members to a network; None where this machine allows none, which pytest then shows.

    Args:
        members: Their names.
    """
    made, why = _made(members)
    if made is None:
        warnings.warn(f"no network of namespaces here, so everything runs on loopback: {why}", stacklevel=3)
        yield None
        return
    try:
        yield made
    finally:
        made.remove()


def _made(members: Sequence[str]) -> tuple[Network | None, str]:
    for program in ("ip", "nsenter"):
        if shutil.which(program) is None:
            return None, f"there is no program {program}"
    number = next(_numbers)
    block = (os.getpid() + 1009 * number) % 2 ** (_PREFIX - _ADDRESSES.prefixlen)
    first = _ADDRESSES.network_address + block * 2 ** (32 - _PREFIX)
    addresses = [str(first + place) for place in range(1, len(members) + 2)]
    made = Network(f"rk{os.getpid()}-{number}", addresses[0], dict(zip(members, addresses[1:], strict=True)))
    try:
        made.make()
    except subprocess.CalledProcessError as error:
        made.remove()
        return None, error.stderr.strip()
    return made, ""


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], capture_output=True, text=True, check=True)
