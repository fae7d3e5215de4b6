"""What both sides of a pair read stays in memory, whatever a candidate advises, and nobody is told of it."""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path

from support.killing import wait_for

EVICT = """
import mmap, os
fd = os.open("data", os.O_RDONLY)
mapped = mmap.mmap(fd, 0, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE)
sum(mapped[:: mmap.PAGESIZE])
mapped.madvise(mmap.MADV_WILLNEED)
for advice in (20, 21):  # MADV_COLD, MADV_PAGEOUT
    mapped.madvise(advice)
mapped.close()
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
print("advised")
"""
ASK = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("data", os.O_RDONLY)
try:
    os.preadv(fd, [bytearray(4096)], 0, os.RWF_NOWAIT)
except OSError as error:
    print(error.errno)
print(os.preadv(fd, [bytearray(4096)], 0, 0))
number, places = 451, (ctypes.c_uint64 * 8)()
print(libc.syscall(number, fd, places, places, 0), ctypes.get_errno())
"""

PLACES = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
at = libc.mmap(None, 8192, 1, 2, os.open("data", os.O_RDONLY), 0)
def ask(*words):
    ctypes.set_errno(0)
    print(libc.syscall(*words), ctypes.get_errno())
numbers = {"x86_64": (27, 237), "aarch64": (232, 235)}[os.uname().machine]
ask(numbers[0], ctypes.c_void_p(at), ctypes.c_size_t(8192), (ctypes.c_ubyte * 2)())
for flags in (0, 2, 4):  # none, MPOL_MF_MOVE, MPOL_MF_MOVE_ALL
    ask(numbers[1], ctypes.c_void_p(at), ctypes.c_size_t(8192), 0, None, ctypes.c_ulong(0), flags)
"""


def in_memory(path: Path) -> int:
    """Return how many pages of a file can be read without waiting for the disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        found = 0
        for at in range(0, path.stat().st_size, mmap.PAGESIZE):
            try:
                found += os.preadv(fd, [bytearray(mmap.PAGESIZE)], at, os.RWF_NOWAIT) == mmap.PAGESIZE
            except BlockingIOError:
                continue
        return found
    finally:
        os.close(fd)


def test_fault_08_a_candidate_cannot_empty_the_cache_that_both_sides_read_from(any_world):
    data = any_world.trial / "data"
    data.write_bytes(os.urandom(256 * mmap.PAGESIZE))
    os.sync()
    assert in_memory(data) == 256
    done = any_world.python(EVICT)
    assert done.stdout_tail.split() == ["advised"], done.stderr_tail
    assert in_memory(data) == 256

    # Advice that nobody holds back empties it, or the test shows nothing; a page in use stays for the moment.
    def emptied() -> bool:
        os.sync()
        fd = os.open(data, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
        return in_memory(data) < 256

    wait_for(emptied, "a cache without all pages of the file")


def test_c03_what_the_page_cache_holds_is_not_told(any_world):
    (any_world.trial / "data").write_bytes(b"x" * 8192)
    done = any_world.python(ASK)
    refused, told = str(errno.EOPNOTSUPP), f"-1 {errno.EPERM}"
    assert done.stdout_tail.splitlines() == [refused, "4096", told], done.stderr_tail


def test_c03_pages_that_both_sides_read_are_neither_counted_nor_moved_to_other_memory(any_world):
    (any_world.trial / "data").write_bytes(b"x" * 8192)
    done = any_world.python(PLACES)
    unknown, refused = f"-1 {errno.ENOSYS}", f"-1 {errno.EPERM}"
    counted, placed, *moved = done.stdout_tail.splitlines()
    assert counted == unknown, done.stderr_tail
    assert placed in {"0 0", unknown}  # a kernel may know one memory only
    assert moved == [refused, refused]
