"""What an agent prints: cut into lines, kept bounded, digested in full, and without its keys."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from roundkit.agents.redaction import Redaction
from roundkit.models.agent_run import LogDigest

MOST_LINE_BYTES = 8 << 20
"""A longer line is kept in pieces; no event of any tool is that long."""


class Lines:
    """Cuts a stream into lines as it comes.

    Args:
        redaction: What is taken out before anybody sees a line.
    """

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._rest = b""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the lines that a chunk completes, each with its end."""
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        for line in whole:
            yield self._redaction.bytes(line + b"\n")
        if len(self._rest) > MOST_LINE_BYTES:
            yield from self._piece()

    def end(self) -> Iterator[bytes]:
        """Yield what is left when the stream ends."""
        if self._rest:
            yield self._redaction.bytes(self._rest)
        self._rest = b""

    def _piece(self) -> Iterator[bytes]:
        """Yield a piece of an overlong line, and keep what may be the beginning of a key."""
        clean = self._redaction.bytes(self._rest)
        at = len(clean) - self._redaction.longest
        yield clean[:at]
        self._rest = clean[at:]


class BoundedLog:
    """A log in the store: its start and its end, with the digest of all.

    The start is on the disk at once, for whoever looks while the agent runs, or after a crash.

    Args:
        path: The file, which must not exist.
        keep_bytes: Bytes to keep, half from the start and half from the end.
    """

    def __init__(self, path: Path, keep_bytes: int) -> None:
        self._file = path.open("xb", buffering=0)
        self._head_bytes = keep_bytes - keep_bytes // 2
        self._tail_bytes = keep_bytes // 2
        self._tail: deque[bytes] = deque()
        self._tail_held = 0
        self._digest = hashlib.sha256()
        self._written = 0
        self.total_bytes = 0

    def add(self, content: bytes) -> None:
        """Take more of the stream."""
        self._digest.update(content)
        self.total_bytes += len(content)
        head = content[: self._head_bytes - self._written]
        self._file.write(head)
        self._written += len(head)
        if rest := content[len(head) :]:
            self._tail.append(rest)
            self._tail_held += len(rest)
        while self._tail and self._tail_held - len(self._tail[0]) >= self._tail_bytes:
            self._tail_held -= len(self._tail.popleft())

    def close(self) -> LogDigest:
        """Write the end of the log and return what is known of it."""
        tail = b"".join(self._tail)
        tail = tail[len(tail) - min(len(tail), self._tail_bytes) :]
        kept = self._written + len(tail)
        told = LogDigest(sha256=self._digest.hexdigest(), bytes=self.total_bytes, kept_bytes=kept)
        self._file.write(told.notice.encode())
        self._file.write(tail)
        os.fsync(self._file.fileno())
        self._file.close()
        return told
