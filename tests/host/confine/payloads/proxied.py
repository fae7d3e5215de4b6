"""Tries to reach more than the one host that its proxy allows; prints what came of each attempt."""

# ruff: noqa - plain code for whatever Python is inside; each lambda runs at once

import json
import os
import socket
import sys
import urllib.parse
import urllib.request

allowed, forbidden, udp_port = (int(word) for word in sys.argv[1:4])
abstract = sys.argv[4]
proxy = urllib.parse.urlsplit(os.environ["HTTP_PROXY"])
told = {}


def attempt(name, action):
    try:
        got = action()
    except BaseException as error:
        told[name] = type(error).__name__ + ": " + str(error)
    else:
        told[name] = "SUCCEEDED: " + repr(got)


def said(head, *, then=b""):
    """Send raw bytes to the proxy and return all that comes back."""
    with socket.create_connection((proxy.hostname, proxy.port), timeout=20) as peer:
        try:
            peer.sendall(head)
            if then:
                peer.recv(4096)
                peer.sendall(then)
            peer.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        got = b""
        try:
            while True:
                chunk = peer.recv(65536)
                if not chunk:
                    return got.decode("latin-1")
                got += chunk
        except ConnectionResetError:
            return got.decode("latin-1")


def refused(head, **more):
    """Send raw bytes; anything but an answer of the secret service counts as refused."""
    got = said(head, **more)
    if "SECRET" not in got:
        raise ConnectionRefusedError(got.split("\r\n")[0])
    return got


def ask(target, host="x", version="HTTP/1.1", more=""):
    return ("GET %s %s\r\nHost: %s\r\n%s\r\n" % (target, version, host, more)).encode("latin-1")


def connect(target, more=""):
    return ("CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (target, target, more)).encode("latin-1")


def direct(host, port):
    with socket.create_connection((host, port), timeout=2) as peer:
        peer.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return peer.recv(100)


def datagram(host, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.settimeout(0.5)
        peer.connect((host, port))
        peer.send(b"x")
        return peer.recv(1)


good = "127.0.0.1:%d" % allowed
bad = "127.0.0.1:%d" % forbidden

# Without the proxy.
attempt("direct to the allowed host", lambda: direct("127.0.0.1", allowed))
attempt("direct to another service", lambda: direct("127.0.0.1", forbidden))
attempt("direct to an address of the internet", lambda: direct("192.0.2.1", 80))
attempt("udp to loopback", lambda: datagram("127.0.0.1", udp_port))
attempt("udp to a name server", lambda: datagram("192.0.2.1", 53))
attempt("name service", lambda: socket.getaddrinfo("example.org", 80))
attempt("abstract socket", lambda: socket.socket(socket.AF_UNIX).connect("\0" + abstract))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
attempt("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))

# Other destinations.
for spelling in (
    bad,
    "localhost:%d" % forbidden,
    "LOCALHOST.:%d" % forbidden,
    "localhost:%d" % allowed,
    "127.1:%d" % forbidden,
    "0:%d" % forbidden,
    "0.0.0.0:%d" % forbidden,
    "2130706433:%d" % forbidden,
    "0x7f.1:%d" % forbidden,
    "0177.0.0.1:%d" % forbidden,
    "[::1]:%d" % forbidden,
    "[::ffff:127.0.0.1]:%d" % forbidden,
    "[::ffff:7f00:1]:%d" % forbidden,
    "127.0.0.2:%d" % allowed,
    "example.org:443",
    "user@%s" % bad,
    "%s@%s" % (good, bad),
    "%s#@%s" % (good, bad),
    "%s/@%s" % (good, bad),
    "127.0.0.1:%d:%d" % (allowed, forbidden),
    "127.0.0.1:+%d" % forbidden,
    "127.0.0.1:%d%%00" % forbidden,
    "127.0.0.1:",
    "127.0.0.1:99999",
    "",
):
    attempt("CONNECT " + spelling, lambda: refused(connect(spelling), then=b"GET / HTTP/1.0\r\n\r\n"))
    attempt("GET http://" + spelling, lambda: refused(ask("http://%s/" % spelling)))

# Requests that two readers could take for different ones.
attempt("two hosts", lambda: refused(ask("http://%s/" % good, good, more="Host: %s\r\n" % bad)))
attempt("two hosts, CONNECT", lambda: refused(connect(good, "Host: %s\r\n" % bad)))
attempt("host of another", lambda: refused(ask("http://%s/" % good, bad)))
attempt("origin form", lambda: refused(ask("/", bad)))
attempt("https in absolute form", lambda: refused(ask("https://%s/" % bad)))
attempt("another scheme", lambda: refused(ask("ftp://%s/" % bad)))
attempt("line end in the target", lambda: refused(ask("http://%s/\r\nHost: %s" % (good, bad), good)))
attempt("bare line feed", lambda: refused(ask("http://%s/" % good, "x\nHost: %s" % bad)))
attempt("bare carriage return", lambda: refused(ask("http://%s/" % good, "x\rHost: %s" % bad)))
attempt("null byte", lambda: refused(ask("http://%s/" % good, "x\0%s" % bad)))
attempt("folded line", lambda: refused(ask("http://%s/" % good, "x\r\n %s" % bad)))
attempt("space before the colon", lambda: refused(ask("http://%s/" % good, "x\r\nHost : %s" % bad)))
attempt("blank in the target", lambda: refused(ask("http://%s/ http://%s/" % (good, bad))))
attempt("another version", lambda: refused(ask("http://%s/" % bad, version="HTTP/2.0")))
attempt("no version", lambda: refused(ask("http://%s/" % bad, version="")))
attempt("not http", lambda: refused(b"\x05\x01\x00\r\n\r\n"))
attempt("absolute form in a tunnel", lambda: refused(connect(good), then=ask("http://%s/" % bad, bad)))
attempt("CONNECT in a tunnel", lambda: refused(connect(good), then=connect(bad)))
attempt(
    "second request behind the first",
    lambda: refused(ask("http://%s/" % good, good) + ask("http://%s/" % bad, bad)),
)
attempt(
    "second request as the body of the first",
    lambda: refused(
        ask("http://%s/" % good, good, more="Content-Length: 0\r\nTransfer-Encoding: chunked\r\n")
        + ask("http://%s/" % bad)
    ),
)
attempt("endless head", lambda: refused(b"GET http://" + good.encode() + b"/" + b"x" * (1 << 20)))
attempt("endless headers", lambda: refused(ask("http://%s/" % good, more="X: y\r\n" * 100000)))

# What it may do, so that a proxy that refuses everything does not pass for a good one.
attempt(
    "allowed: absolute form", lambda: urllib.request.urlopen("http://%s/path?query" % good, timeout=20).read()
)


def tunnelled():
    import http.client

    connection = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=20)
    connection.set_tunnel("127.0.0.1", allowed)
    connection.request("POST", "/tunnelled", body=b"x" * 100000)
    return connection.getresponse().read()


attempt("allowed: tunnel", tunnelled)
print(json.dumps(told))
