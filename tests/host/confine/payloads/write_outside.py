"""Tries to change what lies outside; prints what came of each attempt."""

# ruff: noqa - plain code for whatever Python is inside; each lambda runs at once

import ctypes
import json
import os
import sys

root = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
told = {}


def attempt(name, action):
    try:
        action()
    except BaseException as error:
        told[name] = type(error).__name__ + ": " + str(error)
    else:
        told[name] = "SUCCEEDED"


def write(path):
    with open(path, "wb") as stream:
        stream.write(b"owned")


def call(name, *arguments):
    ctypes.set_errno(0)
    if getattr(libc, name)(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


TARGETS = [
    "store/round.db",
    "campaign/.git/config",
    "other-lane/patch",
    "other-trial/result.json",
    "home/.ssh/id_ed25519",
    "incumbent/bench/benchmark.py",
]
here = os.getcwd()
up = os.path.relpath("/", here)
for target in TARGETS:
    path = os.path.join(root, target)
    relative = up + path
    attempt("absolute " + target, lambda: write(path))
    attempt("dots " + target, lambda: write(relative))
    attempt("root link " + target, lambda: write("/proc/self/root" + path))
    attempt("init's root " + target, lambda: write("/proc/1/root" + path))
    attempt("cwd link " + target, lambda: write("/proc/self/cwd/" + relative))

    def through_link():
        link = os.path.join(here, "link")
        if os.path.lexists(link):
            os.unlink(link)
        os.symlink(path, link)
        write(link)

    attempt("symlink " + target, through_link)
    attempt("hard link " + target, lambda: os.link(path, os.path.join(here, "hard")))
    attempt("remove " + target, lambda: os.unlink(path))

    def rename_over():
        source = os.path.join(here, "evil")
        write(source)
        os.rename(source, path)

    attempt("rename over " + target, rename_over)

    def unnamed_then_linked():
        fd = os.open(here, os.O_TMPFILE | os.O_RDWR, 0o644)
        os.link("/proc/self/fd/%d" % fd, path, follow_symlinks=True)

    attempt("O_TMPFILE and link " + target, unnamed_then_linked)

judge = os.path.join(root, "candidate/bench/benchmark.py")
attempt("judge write", lambda: write(judge))
attempt("judge remove", lambda: os.unlink(judge))
attempt("judge chmod", lambda: os.chmod(judge, 0o777))
attempt("judge truncate", lambda: os.truncate(judge, 0))
attempt("judge append", lambda: open(judge, "ab"))
attempt("judge utime", lambda: os.utime(judge, (0, 0)))
attempt("judge rename away", lambda: os.rename(judge, judge + ".old"))
attempt("judge folder rename", lambda: os.rename(os.path.dirname(judge), os.path.dirname(judge) + ".old"))


def rename_over_judge():
    source = os.path.join(root, "candidate/scratch/evil")
    write(source)
    os.rename(source, judge)


attempt("judge rename over", rename_over_judge)


def call_number(x86, arm, *arguments):
    call("syscall", x86 if os.uname().machine == "x86_64" else arm, *arguments)


def reopened():
    held = os.open(judge, os.O_RDONLY)
    write("/proc/self/fd/%d" % held)


def mapped():
    import mmap

    with open(judge, "rb") as stream:
        mmap.mmap(stream.fileno(), 1, mmap.MAP_SHARED, mmap.PROT_WRITE)


evil = os.path.join(root, "candidate/scratch/evil")
attempt("judge reopened through its descriptor", reopened)
attempt("judge mapped", mapped)
attempt("judge exchanged", lambda: call_number(316, 276, -100, evil.encode(), -100, judge.encode(), 2))
attempt("judge attribute", lambda: os.setxattr(judge, "user.x", b"x"))
attempt("judge hard link", lambda: os.link(judge, os.path.join(root, "candidate/scratch/judge")))
attempt("judge owner", lambda: os.chown(judge, os.getuid(), os.getgid()))
attempt("judge in a descriptor's folder", lambda: write("/proc/self/cwd/" + os.path.relpath(judge, here)))

MS_REMOUNT, MS_BIND, MS_MOVE = 32, 4096, 8192
attempt("bind over judge", lambda: call("mount", evil.encode(), judge.encode(), None, MS_BIND, None))
attempt("move over judge", lambda: call("mount", here.encode(), judge.encode(), None, MS_MOVE, None))
attempt("bind root", lambda: call("mount", b"/", here.encode(), None, MS_BIND, None))
attempt("remount root", lambda: call("mount", None, b"/", None, MS_REMOUNT | MS_BIND, None))
attempt("remount usr", lambda: call("mount", None, b"/usr", None, MS_REMOUNT | MS_BIND, None))
attempt("remount judge", lambda: call("mount", None, judge.encode(), None, MS_REMOUNT | MS_BIND, None))
attempt("unmount judge", lambda: call("umount2", judge.encode(), 2))
attempt("mount over", lambda: call("mount", b"t", here.encode(), b"tmpfs", 0, None))
attempt("chroot", lambda: os.chroot(here))
attempt("pivot_root", lambda: call("syscall", 155 if os.uname().machine == "x86_64" else 41, b"/", b"/"))

attempt("usr", lambda: write("/usr/owned"))
attempt("etc", lambda: write("/etc/owned"))
attempt("root folder", lambda: write("/owned"))
attempt("run", lambda: write("/run/owned"))
attempt("dev", lambda: write("/dev/owned"))
for name in ("sys/kernel/core_pattern", "sysrq-trigger", "sys/vm/drop_caches", "self/oom_score_adj"):
    attempt("proc " + name, lambda: write("/proc/" + name))
attempt("character device", lambda: os.mknod(os.path.join(here, "mem"), 0o020666, os.makedev(1, 1)))
attempt("block device", lambda: os.mknod(os.path.join(here, "disk"), 0o060666, os.makedev(8, 0)))

# What it may do, so that a boundary that refuses everything does not pass for a good one.
attempt("allowed: own folder", lambda: write(os.path.join(here, "result.json")))
attempt("allowed: scratch", lambda: write(os.path.join(root, "candidate/scratch/x")))
attempt("allowed: tmp", lambda: write("/tmp/x"))
attempt("allowed: home", lambda: write(os.path.join(os.environ["HOME"], "x")))
attempt("allowed: shm", lambda: write("/dev/shm/x"))
attempt("allowed: read judge", lambda: open(judge).read())
print(json.dumps(told))
