"""Tries to see what it must not see; prints what came of each attempt."""

# ruff: noqa - plain code for whatever Python is inside; each lambda runs at once

import glob
import json
import os
import socket
import sys

root, coordinator, path_socket, abstract_socket = sys.argv[1:5]
told = {}


def attempt(name, action):
    try:
        got = action()
    except BaseException as error:
        told[name] = type(error).__name__ + ": " + str(error)
    else:
        told[name] = "SUCCEEDED: " + repr(got)[:200]


def read(path):
    with open(path, "rb") as stream:
        return stream.read(100)


for target in ("store/round.db", "campaign/.git/config", "other-lane/patch", "home/.ssh/id_ed25519"):
    path = os.path.join(root, target)
    attempt("read " + target, lambda: read(path))
    attempt("init's root " + target, lambda: read("/proc/1/root" + path))
attempt("other trials", lambda: os.listdir(os.path.join(root, "other-trial")))
for name in ("environ", "cmdline", "maps", "mem", "root", "cwd"):
    attempt("coordinator " + name, lambda: read("/proc/%s/%s" % (coordinator, name)))
for path in (
    "/etc/shadow",
    "/root",
    "/var/run/docker.sock",
    "/run/dbus/system_bus_socket",
    "/sys/kernel",
    "/boot",
    "/run/user",
    "/run/containerd/containerd.sock",
    "/run/systemd/private",
    "/tmp/.X11-unix",
    "/var/lib",
    "/etc/machine-id",
    "/dev/mem",
    "/dev/kmsg",
):
    attempt(path, lambda: os.listdir(path) if os.path.isdir(path) else read(path))


def connect(address, kind=socket.SOCK_STREAM):
    peer = socket.socket(socket.AF_UNIX, kind)
    peer.settimeout(2)
    peer.connect(address)
    return peer.recv(100)


attempt("socket by path", lambda: connect(path_socket))
attempt("abstract socket", lambda: connect("\0" + abstract_socket))
for path in ("/var/run/docker.sock", "/run/dbus/system_bus_socket", "/run/user/0/bus", "\0/tmp/dbus-x"):
    attempt("connect to " + repr(path), lambda: connect(path))


def datagram_pair():
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    pair[0].sendto(b"x", path_socket)


attempt("socket by path from a pair", datagram_pair)

told["processes"] = json.dumps(sorted(int(name) for name in os.listdir("/proc") if name.isdigit()))
told["descriptors"] = json.dumps(
    sorted(int(name) for name in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + name))
)
told["environment"] = json.dumps(dict(os.environ))
told["init environment"] = repr(read("/proc/1/environ"))
told["init arguments"] = repr(open("/proc/1/cmdline", "rb").read())
told["reopened init descriptors"] = json.dumps(
    [
        path
        for path in glob.glob("/proc/1/fd/*")
        if int(path.rsplit("/")[-1]) > 2
        and os.access(path, os.W_OK)
        and not os.readlink(path).startswith("anon_inode:")
    ]
)
told["tmp"] = json.dumps(os.listdir("/tmp"))
told["shm"] = json.dumps(os.listdir("/dev/shm"))
told["home"] = json.dumps(os.listdir(os.environ["HOME"]))
told["run"] = json.dumps(os.listdir("/run"))
told["identity"] = json.dumps([os.getuid(), os.geteuid(), os.getgid(), os.getgroups()])
told["status"] = open("/proc/self/status").read()
print(json.dumps(told))
