"""Tries to reach the host's network; prints what came of each attempt."""

# ruff: noqa - plain code for whatever Python is inside; each lambda runs at once

import json
import socket
import sys
import threading

tcp_port, udp_port = int(sys.argv[1]), int(sys.argv[2])
told = {}


def attempt(name, action):
    try:
        got = action()
    except BaseException as error:
        told[name] = type(error).__name__ + ": " + str(error)
    else:
        told[name] = "SUCCEEDED: " + repr(got)


def connect(host, port):
    peer = socket.create_connection((host, port), timeout=1)
    peer.close()


def send(host, port):
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    peer.settimeout(0.5)
    peer.connect((host, port))
    peer.send(b"x")
    peer.recv(1)


attempt("tcp to loopback", lambda: connect("127.0.0.1", tcp_port))
attempt("tcp to loopback, IPv6", lambda: connect("::1", tcp_port))
attempt("tcp to an address of the internet", lambda: connect("192.0.2.1", 80))
attempt("udp to loopback", lambda: send("127.0.0.1", udp_port))
attempt(
    "udp outside", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53))
)
attempt("name service", lambda: socket.getaddrinfo("example.org", 80))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
for name in ("AF_UNIX", "AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_ALG", "AF_BLUETOOTH", "AF_KCM", "AF_XDP"):
    family = getattr(socket, name, {"AF_KCM": 41, "AF_XDP": 44}.get(name))
    if family is not None:
        attempt(
            name,
            lambda: socket.socket(family, socket.SOCK_DGRAM if name != "AF_NETLINK" else socket.SOCK_RAW),
        )


def own_loopback():
    server = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=lambda: server.accept())
    thread.start()
    connect("127.0.0.1", server.getsockname()[1])
    thread.join()


attempt("allowed: own loopback", own_loopback)
print(json.dumps(told))
