"""Which destinations a proxied command may reach: the plan's list, and the addresses that a name may have."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from roundkit.core.errors import refuse

DEFAULT_PORT = 443

_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*\Z")
_AUTHORITY = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<name>[^\[\]:]+))(?::(?P<port>[0-9]{1,5}))?\Z")
_NUMERIC = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)\Z")
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
_LAST_PORT = 65535

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class HostPort:
    """A host, by name or literal address, and a TCP port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_authority(text: str, default_port: int | None) -> HostPort | None:
    """Read ``host:port``, ``[address]:port`` or a host alone; None if it is nothing of the kind.

    Names are compared in small letters and without the dot of the root.

    Args:
        text: What to read.
        default_port: Port of a host alone; None where there has to be one.
    """
    match = _AUTHORITY.match(text)
    if match is None or (match["port"] is None and default_port is None):
        return None
    port = int(match["port"]) if match["port"] else default_port
    host = _plain_host(match["name"], match["ipv6"])
    if host is None or port is None or not 0 < port <= _LAST_PORT:
        return None
    return HostPort(host, port)


def _plain_host(name: str | None, ipv6: str | None) -> str | None:
    if name is not None:
        name = name.lower().removesuffix(".")
        # Only four plain numbers are an address; other spellings (0x7f.1, 2130706433) are refused as hosts.
        if _NUMERIC.match(name.rpartition(".")[2]):
            return str(literal) if isinstance(literal := as_address(name), ipaddress.IPv4Address) else None
        return name if _NAME.match(name) else None
    literal = as_address(ipv6 or "")
    return str(literal) if isinstance(literal, ipaddress.IPv6Address) else None


def as_address(host: str) -> Address | None:
    """Return a literal address, None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


@dataclass(frozen=True)
class AllowList:
    """The plan's list of hosts."""

    hosts: frozenset[HostPort]

    @classmethod
    def parse(cls, hosts: Iterable[str]) -> AllowList:
        """Read hosts as the plan writes them; one without a port means 443.

        Raises:
            Refused: One of them is no host with a port (``network-host``).
        """
        return cls(frozenset(_parse_listed(host) for host in hosts))

    @cached_property
    def _literals(self) -> frozenset[HostPort]:
        return frozenset(host for host in self.hosts if as_address(host.host) is not None)

    def names(self, wanted: HostPort) -> bool:
        """Say whether the list names this host and port."""
        return wanted in self.hosts

    def admits(self, address: str, port: int) -> bool:
        """Say whether a connection may go to an address that a listed host has.

        Public addresses may be reached. Loopback, private and link-local ones only if the list holds that
        very address and port: otherwise whoever answers for a name would choose what it reaches.
        """
        found = as_address(address)
        if found is None:
            return False
        return HostPort(str(found), port) in self._literals or _is_public(found)


def _parse_listed(text: str) -> HostPort:
    found = parse_authority(text, DEFAULT_PORT)
    if found is None:
        raise refuse(
            "network-host",
            f"{text!r} is no host with a port",
            remedy="write it as api.example.org:443, 192.0.2.1:443 or [2001:db8::1]:443, without wildcards",
        )
    return found


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _TRANSLATED:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return _is_public(inner)
        if address.teredo is not None:
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved
