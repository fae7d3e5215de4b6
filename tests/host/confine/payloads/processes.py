"""Tries to get at other processes and at more rights; prints what came of each attempt."""

# ruff: noqa - plain code for whatever Python is inside; each lambda runs at once

import ctypes
import fcntl
import json
import os
import signal
import struct
import subprocess
import sys

coordinator, other_uid_process = int(sys.argv[1]), int(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
told = {}
X86 = os.uname().machine == "x86_64"


def attempt(name, action):
    try:
        got = action()
    except BaseException as error:
        told[name] = type(error).__name__ + ": " + str(error)
    else:
        told[name] = "SUCCEEDED: " + repr(got)


def call(x86, arm, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(x86 if X86 else arm, *arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


for name, pid in (("coordinator", coordinator), ("other", other_uid_process)):
    attempt("kill " + name, lambda: os.kill(pid, 0))
    attempt("ptrace attach " + name, lambda: call(101, 117, 16, pid, 0, 0))
    attempt("process_vm_writev " + name, lambda: call(311, 271, pid, 0, 0, 0, 0, 0))
    attempt("pidfd " + name, lambda: os.pidfd_open(pid))
attempt("ptrace init", lambda: call(101, 117, 16, 1, 0, 0))
attempt("ptrace traceme", lambda: call(101, 117, 0, 0, 0, 0))
attempt("process_vm_readv init", lambda: call(310, 270, 1, 0, 0, 0, 0, 0))
attempt("init memory", lambda: open("/proc/1/mem", "r+b"))
attempt("pidfd_getfd", lambda: call(438, 438, os.pidfd_open(os.getpid()), 0, 0))
attempt("kcmp", lambda: call(312, 272, 1, os.getpid(), 0, 0, 0))
MINE = {os.getpid()}
attempt(
    "signal another process",
    lambda: next(pid for pid in range(2, 400) if pid not in MINE and os.kill(pid, 0) is None),
)
attempt("setuid root", lambda: os.setuid(0))
attempt("setgid root", lambda: os.setgid(0))
attempt("setgroups", lambda: os.setgroups([0]))
for name, flag in (("user", 0x10000000), ("mount", 0x20000), ("pid", 0x20000000), ("net", 0x40000000)):
    attempt("unshare " + name, lambda: call(272, 97, flag))
    attempt("clone " + name, lambda: call(56, 220, flag | signal.SIGCHLD, 0, 0, 0, 0))
attempt("clone3", lambda: call(435, 435, ctypes.create_string_buffer(88), 88))
attempt("setns", lambda: call(308, 268, os.open("/proc/1/ns/user", os.O_RDONLY), 0))
attempt(
    "unshare(1)", lambda: subprocess.run(["unshare", "-Ur", "true"], check=True, stderr=subprocess.DEVNULL)
)
attempt("add_key", lambda: call(248, 217, b"user", b"k", b"v", 1, -3))
attempt("keyctl", lambda: call(250, 219, 0, -3, 1))
attempt("bpf", lambda: call(321, 280, 0, 0, 0))
attempt("perf_event_open", lambda: call(298, 241, 0, 0, -1, -1, 0))
attempt("userfaultfd", lambda: call(323, 282, 0))
attempt("io_uring", lambda: call(425, 425, 1, ctypes.create_string_buffer(200)))
attempt("open_by_handle_at", lambda: call(304, 265, -100, ctypes.create_string_buffer(64), 0))
attempt("open_tree", lambda: call(428, 428, -100, b"/", 1))
attempt("mount_setattr", lambda: call(442, 442, -100, b"/", 0, ctypes.create_string_buffer(32), 32))
attempt("a call newer than the filter", lambda: call(467, 467, 0, 0, 0, 0, 0))
attempt("TIOCSTI", lambda: fcntl.ioctl(0, 0x5412, b"x"))
attempt("TIOCLINUX", lambda: fcntl.ioctl(0, 0x541C, b"\x03"))
attempt("terminal", lambda: os.open("/dev/tty", os.O_RDWR))


def with_mode(change):
    with open("made", "w"):
        pass
    change()
    return oct(os.stat("made").st_mode)


attempt("chmod setuid", lambda: with_mode(lambda: os.chmod("made", 0o4755)))
attempt("chmod setgid", lambda: with_mode(lambda: os.chmod("made", 0o2755)))
attempt("fchmod setuid", lambda: with_mode(lambda: os.fchmod(os.open("made", os.O_RDONLY), 0o4755)))
attempt("fchmodat2 setuid", lambda: call(452, 452, -100, b"made", 0o4755, 0))
attempt("open setuid", lambda: os.open("made2", os.O_CREAT | os.O_WRONLY, 0o4755))
attempt("mknod setuid", lambda: os.mknod("made3", 0o104755))
attempt("openat2 setuid", lambda: call(437, 437, -100, b"made4", struct.pack("=QQQ", 0o101, 0o4755, 0), 24))
if X86:
    attempt("creat setuid", lambda: call(85, 0, b"made5", 0o4755))
    attempt("x32 chmod setuid", lambda: call(0x40000000 | 90, 0, b"made", 0o4755))
attempt(
    "setuid helper",
    lambda: subprocess.run(
        ["/usr/bin/su", "-c", "true"],
        check=True,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        timeout=20,
    ),
)
attempt("core pattern", lambda: open("/proc/sys/kernel/core_pattern", "w"))
attempt("real-time priority", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
attempt("higher priority", lambda: os.setpriority(os.PRIO_PROCESS, 0, -5))
attempt("a core of its own", lambda: call(157, 167, 62, 1, 0, 0, 0))
attempt("host name", lambda: __import__("socket").sethostname("owned"))
attempt("clock", lambda: __import__("time").clock_settime(0, 0))

attempt("allowed: chmod", lambda: with_mode(lambda: os.chmod("made", 0o755)))
attempt("allowed: fifo", lambda: os.mkfifo("fifo"))
attempt("allowed: name of a thread", lambda: call(157, 167, 15, b"busy", 0, 0, 0))
attempt("allowed: own child", lambda: subprocess.run(["true"], check=True))
attempt("allowed: thread", lambda: __import__("threading").Thread(target=int).start())
attempt("allowed: pair", lambda: __import__("socket").socketpair())
attempt("allowed: pool", lambda: __import__("multiprocessing").get_context("spawn").Value("i", 1).value)
print(json.dumps(told))
