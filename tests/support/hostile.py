"""Candidates that attack from their build and their trial, and what a round must look like afterwards."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundkit.core.files import tree_digest
from roundkit.rounds.layout import RoundFolder

ATTACK = '''\
import ctypes, glob, os, signal, subprocess, sys

PLACES = PLACES_HERE
tried, through = 0, []


def attempt(name, action):
    global tried
    tried += 1
    try:
        action()
    except BaseException:
        return
    through.append(name)


def write(path):
    with open(path, "wb") as stream:
        stream.write(b"owned")


def read(path):
    if os.path.isdir(path):
        os.listdir(path)
    else:
        open(path, "rb").read(1)


def by_link(path, here):
    link = os.path.join(here, "link")
    if os.path.lexists(link):
        os.unlink(link)
    os.symlink(path, link)
    try:
        write(link)
    finally:
        os.unlink(link)


def over(path, here):
    write(os.path.join(here, "evil"))
    try:
        os.rename(os.path.join(here, "evil"), path)
    finally:
        if os.path.lexists(os.path.join(here, "evil")):
            os.unlink(os.path.join(here, "evil"))


def unnamed(path, here):
    descriptor = os.open(here, os.O_TMPFILE | os.O_RDWR, 0o644)
    os.link("/proc/self/fd/%d" % descriptor, path, follow_symlinks=True)


def attack(here):
    """Try to change and to read what lies outside, in every way, from a folder that may be written."""
    for path in PLACES:
        attempt("read " + path, lambda: read(path))
        attempt("write " + path, lambda: write(path))
        attempt("dots " + path, lambda: write(os.path.relpath("/", os.getcwd()) + path))
        attempt("root " + path, lambda: write("/proc/1/root" + path))
        attempt("link " + path, lambda: by_link(path, here))
        attempt("hard link " + path, lambda: os.link(path, os.path.join(here, "hard")))
        attempt("rename " + path, lambda: over(path, here))
        attempt("O_TMPFILE " + path, lambda: unnamed(path, here))
        attempt("remove " + path, lambda: os.unlink(path))
    for path in glob.glob("bench/*.py"):
        attempt("judge " + path, lambda: write(path))
        attempt("judge rename " + path, lambda: over(path, here))
        attempt("judge remove " + path, lambda: os.unlink(path))
        attempt("judge mode " + path, lambda: os.chmod(path, 0o777))
    attempt("judges away", lambda: os.rename("bench", "bench.old"))
    libc = ctypes.CDLL(None)
    attempt("mount", lambda: libc.mount(b"t", here.encode(), b"tmpfs", 0, None) and 1 / 0)
    attempt("namespace", lambda: libc.unshare(0x10000000) and 1 / 0)
    for pid in glob.glob("/proc/[0-9]*"):
        if pid != "/proc/%d" % os.getpid():
            attempt("memory " + pid, lambda: open(pid + "/mem", "wb"))
    print("attacked: %d tried, through: %s" % (tried, through), file=sys.stderr, flush=True)


def outlive():
    """Leave processes that ignore what is sent to them, in sessions of their own."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    for words in (["setsid", "sleep", "600"], ["sh", "-c", "sleep 600 & sleep 600"]):
        null = subprocess.DEVNULL
        subprocess.Popen(words, stdin=null, stdout=null, stderr=null)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            null = os.open("/dev/null", os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            signal.pause()
        os._exit(0)
'''

STARTUP_FILES = (
    "sitecustomize.py", "usercustomize.py", "conftest.py", "roundkit.py", "json.py", "os.py", "time.py",
    "random.py", "evil.pth", "pyvenv.cfg", "python311._pth",
)  # fmt: skip
"""Names by which Python or a tool might load a file unasked, written into every folder of a checkout."""


@dataclass(frozen=True)
class State:
    """What a round's candidates must not change: its files by name, and its database by table."""

    files: Mapping[str, str]
    rows: Mapping[str, tuple[tuple[Any, ...], ...]]


def state_of(folder: RoundFolder, program: Path, lanes: Sequence[str]) -> State:
    """Return the state of a round that no process serves.

    Args:
        folder: The round.
        program: The campaign repository.
        lanes: Lanes whose clones nobody works in.
    """
    files = {"program": tree_digest(program, skip=frozenset())}
    for path in (folder.plan_file, folder.launch_file, folder.secret_file, folder.store / "plan-digest"):
        files[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    for lane in lanes:
        files[f"lane {lane}"] = tree_digest(folder.clone(lane), skip=frozenset({"status"}))
    files["incumbent"] = tree_digest(folder.checkouts / "pristine", skip=frozenset())
    return State(files, dict(_rows(folder.database)))


def _rows(database: Path) -> Iterator[tuple[str, tuple[tuple[Any, ...], ...]]]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in sorted(tables):
            yield table, tuple(connection.execute(f"SELECT * FROM {table}"))


def mentions(row: Sequence[Any]) -> str:
    """Return a row as text, to look for names in it."""
    return " ".join(
        value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value) for value in row
    )
