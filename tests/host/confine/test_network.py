"""A lane reaches its allowed provider host through the proxy and nothing else, loopback included (C14)."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from support.loopback import Quiet, served

from roundkit.core.errors import Refused
from roundkit.host.confine import Boundary, Execution, Network
from roundkit.host.confine.proxy.book import DestinationBook
from roundkit.host.confine.proxy.destinations import AllowList, HostPort, parse_authority
from roundkit.host.confine.proxy.exchange import Exchange, ProxyBounds
from roundkit.host.confine.proxy.head import MalformedHead, parse_head


@dataclass
class Host:
    """Services on the loopback of the host: the provider, another one, and two that are no HTTP.

    Attributes:
        provider: Port of the HTTP service that the plan names.
        other: Port of one that it does not name; it answers whoever comes.
        seen: Request lines and ``Host`` of what reached the provider.
        reached: What reached any other service.
    """

    provider: int = 0
    other: int = 0
    udp: socket.socket = field(default_factory=lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    abstract: str = f"roundkit-network-{os.getpid()}"
    seen: list[tuple[str, str | None]] = field(default_factory=list)
    reached: list[str] = field(default_factory=list)

    def network(self, *more: str) -> Network:
        """Return what a lane may reach: the provider, and what a test adds."""
        return Network.proxy([f"127.0.0.1:{self.provider}", *more])


def service(host: Host, *, listed: bool) -> type[BaseHTTPRequestHandler]:
    class Handler(Quiet, BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if listed:
                host.seen.append((self.requestline, self.headers.get("Host")))
            else:
                host.reached.append(self.requestline)
            body = b"the provider" if listed else b"SECRET"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

    return Handler


@pytest.fixture
def host() -> Iterator[Host]:
    """The host's loopback with its services."""
    made = Host()
    made.udp.bind(("127.0.0.1", 0))
    made.udp.setblocking(False)
    with ExitStack() as stack:
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0{made.abstract}")
        abstract.listen()
        abstract.setblocking(False)
        made.provider = stack.enter_context(served(service(made, listed=True)))
        made.other = stack.enter_context(served(service(made, listed=False)))
        yield made
        with pytest.raises(BlockingIOError):
            made.udp.recv(1)
        with pytest.raises(BlockingIOError):
            abstract.accept()
    made.udp.close()


def test_c14_a_lane_reaches_its_allowed_host_and_nothing_else(world, host):
    told = world.attempts(
        "proxied.py",
        *(str(host.provider), str(host.other), str(host.udp.getsockname()[1]), host.abstract),
        network=host.network(f"localhost:{host.other}"),
        deadline_s=120,
    )

    got_through = {name for name, result in told.items() if result.startswith("SUCCEEDED")}
    assert got_through == {name for name in told if name.startswith("allowed: ")}, told
    assert len(told) > 75
    assert host.reached == []
    assert {told[name] for name in told if name.startswith("allowed: ")} == {"SUCCEEDED: b'the provider'"}
    # What came in absolute form was told the name of its target, whatever its Host said.
    origin = {name for line, name in host.seen if line.startswith("GET /")}
    assert origin == {f"127.0.0.1:{host.provider}"}


def test_c14_the_record_holds_what_was_asked_for(world, host):
    fetch = (
        "import sys, urllib.error, urllib.request\n"
        "for url in sys.argv[1:]:\n"
        "    try: print(urllib.request.urlopen(url, timeout=20).read())\n"
        "    except urllib.error.HTTPError as error: print(error.code, error.read().decode())\n"
    )
    provider, named = f"127.0.0.1:{host.provider}", f"localhost:{host.other}"
    urls = [
        f"http://{provider}/a",
        f"http://{provider}/b",
        f"http://127.0.0.1:{host.other}/",
        "http://other/",
    ]
    network = host.network(named)
    done = world.python(fetch, *urls, f"http://{named}/", network=network, env={"PATH": "/usr/bin:/bin"})

    assert (done.exit_code, done.stderr_tail) == (0, ""), done
    assert done.boundary.network == "proxy"
    assert done.boundary.hosts == network.hosts == (provider, named)
    assert {"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy"} <= set(done.boundary.env_names)
    rows = {(row.host, row.port): row for row in done.destinations}
    told = {place: (row.outcome, row.connections) for place, row in rows.items()}
    assert told == {
        ("127.0.0.1", host.provider): ("allowed", 2),
        ("127.0.0.1", host.other): ("not-listed", 1),
        ("other", 80): ("not-listed", 1),
        ("localhost", host.other): ("private-address", 1),
    }
    allowed = rows["127.0.0.1", host.provider]
    assert allowed.received_bytes > 2 * len("the provider")
    assert allowed.sent_bytes > 2 * len("GET /a HTTP/1.1")
    assert rows["other", 80].sent_bytes == rows["other", 80].received_bytes == 0
    assert "other:80 is not among the plan's hosts" in (done.stdout_tail or "")
    assert Execution.model_validate_json(done.model_dump_json()) == done


def test_c14_what_was_recorded_before_there_was_a_proxy_still_reads(any_world):
    done = any_world.run("true")
    written = done.model_dump(mode="json")

    assert "destinations" not in written
    assert "hosts" not in written["boundary"]
    assert Execution.model_validate(written) == done
    assert Boundary.model_validate(written["boundary"]) == done.boundary


HOLD_MANY = """
import os, resource, socket, sys, time, urllib.request
port = int(os.environ["HTTP_PROXY"].rpartition(":")[2])
held = []
for number in range(3000):
    peer = socket.socket()
    peer.setblocking(False)
    peer.connect_ex(("127.0.0.1", port))
    held.append(peer)
    if number == 100:
        # Those that were let in say a little and never come to an end.
        for other in held:
            try: other.send(b"GET http://")
            except OSError: pass
open("held", "w").close()
while not os.path.exists("leave"): time.sleep(0.01)
for peer in held: peer.close()
print(urllib.request.urlopen(sys.argv[1], timeout=60).read())
"""


def test_c14_thousands_of_connections_are_bounded(world, host):
    descriptors = Path(f"/proc/{world.coordinator()}/fd")
    world.run("true", network=host.network())  # starts whatever a coordinator starts once
    before = len(list(descriptors.iterdir()))
    kept: list[Execution] = []
    url = f"http://127.0.0.1:{host.provider}/after"
    options = {"network": host.network(), "open_files": 4096, "deadline_s": 120}
    thread = threading.Thread(target=lambda: kept.append(world.python(HOLD_MANY, url, **options)))
    thread.start()
    try:
        world.wait_until(lambda: (world.trial / "held").exists() or not thread.is_alive())
        grown = len(list(descriptors.iterdir())) - before
    finally:
        (world.trial / "leave").touch()
        thread.join()

    assert kept[0].stdout_tail == "b'the provider'\n", kept
    assert 50 < grown < 150
    assert len(list(descriptors.iterdir())) <= before


def test_c14_destinations_without_number_are_recorded_in_bounded_number(any_world, host):
    flood = (
        "import os, socket\n"
        "port = int(os.environ['HTTP_PROXY'].rpartition(':')[2])\n"
        "for number in range(400):\n"
        "    with socket.create_connection(('127.0.0.1', port)) as peer:\n"
        "        peer.sendall(b'CONNECT host-%d:443 HTTP/1.1\\r\\n\\r\\n' % number)\n"
        "        while peer.recv(4096): pass\n"
    )
    done = any_world.python(flood, network=host.network())

    assert (done.exit_code, len(done.destinations)) == (0, 257), done.stderr_tail
    assert sum(row.connections for row in done.destinations) == 400
    last = done.destinations[-1]
    assert (last.host, last.outcome, last.connections) == (None, "not-listed", 144)


def test_c14_the_end_of_a_command_ends_its_connections(world, host):
    open_tunnel = (
        "import os, socket, sys\n"
        "port = int(os.environ['HTTP_PROXY'].rpartition(':')[2])\n"
        "peer = socket.create_connection(('127.0.0.1', port))\n"
        "peer.sendall(b'CONNECT 127.0.0.1:%s HTTP/1.1\\r\\n\\r\\n' % sys.argv[1].encode())\n"
        "print(peer.recv(4096).split(b'\\r\\n')[0].decode(), flush=True)\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    peer.recv(1)\n"
        "os._exit(0)\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = world.python(open_tunnel, str(port), network=Network.proxy([f"127.0.0.1:{port}"]))
        peer, _ = server.accept()
        with peer:
            assert done.stdout_tail == "HTTP/1.1 200 Connection established\n", done
            assert ended(peer)


def test_c14_two_proxied_commands_do_not_share_a_way_out(any_world, host):
    other = any_world.root / "other-place"
    other.mkdir()
    other.chmod(0o777)
    wait = "import os, time\nopen('here', 'w').close()\nwhile not os.path.exists('leave'): time.sleep(0.01)"
    fetch = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=20).read())"
    url = f"http://127.0.0.1:{host.provider}/"
    kept: list[Execution] = []
    place = {"writable": [other], "readable": [], "cwd": other}
    thread = threading.Thread(
        target=lambda: kept.append(any_world.python(wait, network=host.network(), **place))
    )
    thread.start()
    try:
        any_world.wait_until(lambda: (other / "here").exists() or not thread.is_alive())
        lonely = any_world.python(fetch, url, network=Network.proxy([f"127.0.0.1:{host.other}"]))
        without = any_world.python(fetch, url)
    finally:
        (other / "leave").touch()
        thread.join()

    assert kept[0].exit_code == 0, kept
    assert "403" in lonely.stderr_tail
    assert [(row.outcome, row.connections) for row in lonely.destinations] == [("not-listed", 1)]
    assert "Connection refused" in without.stderr_tail
    assert host.seen == host.reached == []


def ended(peer: socket.socket) -> bool:
    """Wait for the end of a connection that nothing more comes over."""
    peer.settimeout(30)
    try:
        return peer.recv(1) == b""
    except ConnectionResetError:
        return True


def exchanged(bounds: ProxyBounds, allowed: list[str], head: bytes) -> tuple[bytes, DestinationBook]:
    """Serve one connection over real sockets; send a head, then only listen, to its end."""
    book = DestinationBook()
    exchange = Exchange(AllowList.parse(allowed), bounds, book)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        accepted, _ = server.accept()
        accepted.setblocking(False)
        client.sendall(head)
        asyncio.run(exchange.serve(accepted))
        got = b""
        while chunk := client.recv(4096):
            got += chunk
    return got, book


def test_c14_a_head_that_never_ends_is_given_up():
    got, book = exchanged(ProxyBounds(head_s=0.05), [], b"GET http://")

    assert got.startswith(b"HTTP/1.1 408 ")
    assert [row.outcome for row in book.records()] == ["head-too-slow"]


def test_c14_a_connection_that_nothing_comes_over_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as quiet:
        target = f"127.0.0.1:{quiet.getsockname()[1]}"
        got, book = exchanged(
            ProxyBounds(idle_s=0.05), [target], f"CONNECT {target} HTTP/1.1\r\n\r\n".encode()
        )

    assert got == b"HTTP/1.1 200 Connection established\r\n\r\n"
    assert [row.outcome for row in book.records()] == ["allowed"]


def test_c14_a_listed_host_that_does_not_answer_is_said_so():
    with socket.create_server(("127.0.0.1", 0)) as closing:
        target = f"127.0.0.1:{closing.getsockname()[1]}"
    head = f"CONNECT {target} HTTP/1.1\r\n\r\n".encode()
    got, book = exchanged(ProxyBounds(), [target, "no-such-name.invalid:443"], head)
    unknown, _ = exchanged(
        ProxyBounds(), ["no-such-name.invalid"], b"CONNECT no-such-name.invalid:443 HTTP/1.1\r\n\r\n"
    )

    assert got.startswith(b"HTTP/1.1 502 ")
    assert unknown.startswith(b"HTTP/1.1 502 ")
    assert [row.outcome for row in book.records()] == ["unreachable"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("api.example.org", HostPort("api.example.org", 443)),
        ("API.Example.org.:8443", HostPort("api.example.org", 8443)),
        ("192.0.2.1:80", HostPort("192.0.2.1", 80)),
        ("[2001:DB8::1]:80", HostPort("2001:db8::1", 80)),
        ("a-b_c.example:1", HostPort("a-b_c.example", 1)),
        ("*.example.org", None),
        ("2001:db8::1", None),
        ("127.1:80", None),
        ("0x7f000001", None),
        ("example.org:0", None),
        ("example.org:65536", None),
        ("example.org:", None),
        ("https://example.org", None),
        ("user@example.org", None),
        ("exämple.org", None),
        ("a..b", None),
        ("-a", None),
        (" a", None),
        ("a\n", None),
        ("", None),
        ("x" * 254, None),
    ],
)
def test_hosts_are_read_strictly(text: str, expected: HostPort | None) -> None:
    assert parse_authority(text, 443) == expected
    if expected is None:
        with pytest.raises(Refused, match="network-host"):
            Network.proxy([text])
    else:
        assert Network.proxy([text]).hosts == (str(expected),)


@pytest.mark.parametrize(
    ("address", "admitted"),
    [
        ("1.1.1.1", True),
        ("2606:4700::1111", True),
        ("127.0.0.1", False),
        ("127.8.8.8", False),
        ("10.0.0.5", True),  # listed literally, with this port
        ("10.0.0.6", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("100.64.0.1", False),
        ("169.254.169.254", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("ff02::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:1.1.1.1", True),
        ("64:ff9b::7f00:1", False),
        ("64:ff9b::101:101", True),
        ("2002:7f00:1::", False),
        ("no address", False),
    ],
)
def test_names_lead_to_public_or_listed_addresses_only(address: str, admitted: bool) -> None:
    allowed = AllowList.parse(["api.example.org:443", "10.0.0.5:443", "10.0.0.6:80"])

    assert allowed.admits(address, 443) is admitted


@pytest.mark.parametrize(
    ("head", "forwarded"),
    [
        ("GET http://a.example/p?q HTTP/1.1\r\nHost: b\r\nX: y\r\n\r\n", "/p?q"),
        ("GET http://a.example HTTP/1.0\r\n\r\n", "/"),
        (
            "GET HTTP://a.example?q HTTP/1.1\r\nProxy-Authorization: z\r\nConnection: keep-alive\r\n\r\n",
            "/?q",
        ),
    ],
)
def test_a_plain_request_is_forwarded_under_its_targets_name(head: str, forwarded: str) -> None:
    request = parse_head(head.encode())
    lines = request.forwarded.decode().split("\r\n")

    assert request.destination == HostPort("a.example", 80)
    assert lines[:2] == [f"GET {forwarded} HTTP/1.1", "Host: a.example"]
    assert lines[-3:] == ["Connection: close", "", ""]
    assert not any(line.startswith("Proxy-") for line in lines)
    assert sum(line.lower().startswith(("host:", "connection:")) for line in lines) == 2


@pytest.mark.parametrize("target", ["a", "a:", ":443", "http://a:443", "/", "*", "a:443/", "a:443?x"])
def test_a_tunnel_needs_a_host_and_a_port(target: str) -> None:
    with pytest.raises(MalformedHead):
        parse_head(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())


def test_c14_a_proxy_that_cannot_be_started_is_a_refusal_and_no_wait():
    """A coordinator without descriptors for one more event loop says so; it neither hangs nor goes on."""
    script = (
        "import os, resource, socket\n"
        "from roundkit.host.confine import ConfinementUnavailable\n"
        "from roundkit.host.confine.proxy.service import Proxy\n"
        "proxy, listener = Proxy([]), socket.create_server(('127.0.0.1', 0))\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (listener.fileno() + 1,) * 2)\n"
        "try: proxy.serve(listener)\n"
        "except ConfinementUnavailable as error: print(error.reason, proxy.close())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)

    assert done.stdout == "proxy-start ()\n", done
