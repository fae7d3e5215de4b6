"""What an agent's harness starts as its server: it carries bytes to the gateway outside and back.

Standard library only: it is mounted into the boundary. It decides nothing and knows no protocol.
"""

from __future__ import annotations

import fcntl
import os
import sys
import threading

_CHUNK_BYTES = 1 << 16


def main(folder: str) -> int:
    """Carry lines between standard input and output and the two pipes in a folder, until either side ends."""
    lock = os.open(os.path.join(folder, "lock"), os.O_RDONLY)  # noqa: PTH118 - fast to start
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("the task's server has another connection already", file=sys.stderr)
        return 1
    requests = os.open(os.path.join(folder, "requests"), os.O_WRONLY)  # noqa: PTH118
    answers = os.open(os.path.join(folder, "answers"), os.O_RDONLY)  # noqa: PTH118
    # Ends what a connection that broke off may have left.
    _write(requests, b"\n")
    threading.Thread(target=_carry, args=(answers, 1), daemon=True).start()
    _carry(0, requests)
    return 0


def _carry(source: int, target: int) -> None:
    while chunk := os.read(source, _CHUNK_BYTES):
        _write(target, chunk)


def _write(target: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(target, view) :]


if __name__ == "__main__":
    sys.exit(main(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
