"""The head of one request to the proxy, read as hostile."""

from __future__ import annotations

import re
from dataclasses import dataclass

from roundkit.host.confine.proxy.destinations import HostPort, parse_authority

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 - a token in the sense of HTTP
_REQUEST_LINE = re.compile(rf"({_TOKEN}) ([\x21-\x7e]+) HTTP/1\.[01]\Z")
_HEADER = re.compile(rf"({_TOKEN}):[ \t]*([\x20-\x7e\x80-\xff\t]*)\Z")
_ABSOLUTE = re.compile(r"[Hh][Tt][Tt][Pp]://([^/?#@\\]+)([/?].*)?\Z")
_HTTP_PORT = 80
_HOP_BY_HOP = frozenset({"connection", "host", "keep-alive", "proxy-authorization", "proxy-connection"})


class MalformedHead(ValueError):
    """A request head that is not exactly one."""


@dataclass(frozen=True)
class RequestHead:
    """One request to the proxy.

    Attributes:
        destination: Where it wants to go.
        tunnel: Whether it asks for a tunnel (``CONNECT``).
        forwarded: The head as the destination gets it; empty for a tunnel.
    """

    destination: HostPort
    tunnel: bool
    forwarded: bytes


def parse_head(head: bytes) -> RequestHead:
    """Read a head up to and with its empty line.

    A connection serves its one destination and no other: the forwarded request ends it (``Connection:
    close``), and whatever follows the head goes to that destination as it is. Nothing that a command writes
    can therefore be taken for a request to somewhere else.

    Raises:
        MalformedHead: It is no request for a tunnel or for an absolute ``http`` address, or it has stray
            line ends, folded lines, or more than one ``Host``.
    """
    lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    match = _REQUEST_LINE.match(lines[0])
    if match is None:
        raise MalformedHead("the request line is malformed")
    method, target = match[1], match[2]
    headers = [_header(line) for line in lines[1:]]
    if sum(name.lower() == "host" for name, _ in headers) > 1:
        raise MalformedHead("there is more than one Host")
    if method.upper() == "CONNECT":
        return RequestHead(_destination(target, None), True, b"")
    absolute = _ABSOLUTE.match(target)
    if absolute is None:
        raise MalformedHead("neither CONNECT nor an absolute http address")
    destination = _destination(absolute[1], _HTTP_PORT)
    path = absolute[2] or "/"
    path = path if path.startswith("/") else f"/{path}"
    kept = [(name, value) for name, value in headers if name.lower() not in _HOP_BY_HOP]
    # The target decides, whatever Host said; so that both readers see one and the same.
    rewritten = [("Host", absolute[1]), *kept, ("Connection", "close")]
    forwarded = "\r\n".join((f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in rewritten)))
    return RequestHead(destination, False, f"{forwarded}\r\n\r\n".encode("latin-1"))


def _header(line: str) -> tuple[str, str]:
    match = _HEADER.match(line)
    if match is None:
        raise MalformedHead("a header line is malformed")
    return match[1], match[2]


def _destination(text: str, default_port: int | None) -> HostPort:
    found = parse_authority(text, default_port)
    if found is None:
        raise MalformedHead("the target is no host with a port")
    return found
