"""Captured streams: read as they come, kept bounded, digested in full."""

from __future__ import annotations

import hashlib
import os

_CHUNK_BYTES = 1 << 16


class BoundedCapture:
    """The start, the end, the length and the digest of one stream.

    Args:
        fd: Read end of the pipe, non-blocking; closed by :meth:`close`.
        keep_bytes: Bytes to keep, half from the start of the stream and half from its end.
    """

    def __init__(self, fd: int, keep_bytes: int) -> None:
        self.fd = fd
        self.total_bytes = 0
        self._head_bytes = keep_bytes - keep_bytes // 2
        self._tail_bytes = keep_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._digest = hashlib.sha256()

    def pump(self) -> bool:
        """Take what the pipe holds now, one chunk at most; return False at its end."""
        try:
            chunk = os.read(self.fd, _CHUNK_BYTES)
        except BlockingIOError:
            return True
        if not chunk:
            return False
        self._digest.update(chunk)
        self.total_bytes += len(chunk)
        room = self._head_bytes - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        # Trimmed in large steps: cutting at each chunk would copy the tail every time.
        if len(self._tail) > self._tail_bytes + 16 * _CHUNK_BYTES:
            del self._tail[: len(self._tail) - self._tail_bytes]
        return True

    def drain(self, limit_bytes: int) -> None:
        """Take what is left without waiting, ``limit_bytes`` at most."""
        stop_at = self.total_bytes + limit_bytes
        while self.total_bytes < stop_at:
            before = self.total_bytes
            if not self.pump() or self.total_bytes == before:
                return

    def close(self) -> None:
        """Close the read end."""
        os.close(self.fd)

    def sha256(self) -> str:
        """Return the hexadecimal digest of every byte that was read."""
        return self._digest.hexdigest()

    def text(self) -> str:
        """Return the kept bytes as text; what was left out in the middle is named in its place."""
        tail = bytes(self._tail[max(0, len(self._tail) - self._tail_bytes) :])
        left_out = self.total_bytes - len(self._head) - len(tail)
        head = self._head.decode("utf-8", "replace")
        if not left_out:
            return bytes(self._head + tail).decode("utf-8", "replace")
        return f"{head}\n[… {left_out} bytes left out …]\n{tail.decode('utf-8', 'replace')}"
