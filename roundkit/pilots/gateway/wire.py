"""The wire between agent and gateway: two pipes, and the archive of every message that crosses them."""

from __future__ import annotations

import base64
import os
import select
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from roundkit.core.errors import RoundkitError
from roundkit.models.pilot_trial import WireLine
from roundkit.pilots.gateway import shim

REQUESTS, ANSWERS, LOCK, SHIM = "requests", "answers", "lock", "shim.py"
_CHUNK_BYTES = 1 << 16


class WireFull(RoundkitError):
    """More bytes crossed the wire than the plan allows."""


@dataclass(frozen=True)
class Message:
    """One message from the agent.

    Attributes:
        line: Number of its line in the archive, from 1.
        data: Its bytes; of one that is too long, the beginning.
        size: How many bytes it had.
    """

    line: int
    data: bytes
    size: int

    @property
    def is_cut(self) -> bool:
        """Whether it was too long to be kept."""
        return self.size > len(self.data)


def furnish(folder: Path) -> None:
    """Lay out the folder that is mounted into an agent's boundary: two pipes, and the program at their end.

    Agents run as another user where the coordinator is root, hence the modes.
    """
    folder.mkdir()
    folder.chmod(0o755)
    for name, mode in ((REQUESTS, 0o622), (ANSWERS, 0o644)):
        os.mkfifo(folder / name)
        (folder / name).chmod(mode)
    shutil.copyfile(shim.__file__, folder / SHIM)
    (folder / LOCK).touch()
    for name in (SHIM, LOCK):
        (folder / name).chmod(0o644)


class Wire:
    """The coordinator's ends of the pipes, with the archive.

    Args:
        folder: A furnished folder.
        archive: File for the messages; it must not exist.
        most_message_bytes: Bytes of one message that are kept.
        most_bytes: Bytes that may cross in all.
        clean: Takes an agent's keys out of a message before it is archived or acted on.
    """

    def __init__(
        self,
        folder: Path,
        archive: Path,
        *,
        most_message_bytes: int,
        most_bytes: int,
        clean: Callable[[bytes], bytes] = bytes,
    ) -> None:
        self._archive = archive.open("xb", buffering=0)
        # Both ends are held, so that neither side's coming and going ends the stream.
        flags = os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
        self._requests = os.open(folder / REQUESTS, flags)
        self._answers = os.open(folder / ANSWERS, flags)
        self.stop_read, self._stop_write = os.pipe2(os.O_CLOEXEC)
        self._most_message_bytes = most_message_bytes
        self._most_bytes = most_bytes
        self._clean = clean
        self._pending = bytearray()
        self._pending_size = 0
        self._lines = 0
        self._crossed = 0
        self.cut = False

    def messages(self) -> Iterator[Message]:
        """Yield messages as they come, each archived before it is yielded, until the wire is stopped.

        What an agent had sent and nobody had taken when the wire was stopped is archived and not yielded.

        Raises:
            WireFull: more bytes came than may.
        """
        while True:
            stopped = self._is_stopped(self._requests, select.POLLIN)
            for message in self._take():
                stopped = stopped or self._is_stopped(self._requests, 0, wait=False)
                if not stopped:
                    yield message
            if stopped:
                return

    def send(self, data: bytes) -> int | None:
        """Send a message, and archive it once it is sent; return its line, or null if it could not be sent.

        Raises:
            WireFull: more bytes would cross than may.
        """
        self._count(len(data))
        view = memoryview(data + b"\n")
        while view:
            if self._is_stopped(self._answers, select.POLLOUT):
                return None
            view = view[os.write(self._answers, view) :]
        return self._keep("out", data, len(data))

    def forget_answers(self) -> None:
        """Drop what an earlier connection was sent and did not read."""
        try:
            while os.read(self._answers, _CHUNK_BYTES):
                pass
        except BlockingIOError:
            pass

    def stop(self) -> None:
        """End :meth:`messages`, and whatever watches ``stop_read``; safe from any thread, and twice."""
        os.write(self._stop_write, b"x")

    def close(self) -> None:
        """Close everything; the archive is durable then."""
        os.fsync(self._archive.fileno())
        self._archive.close()
        for descriptor in (self._requests, self._answers, self.stop_read, self._stop_write):
            os.close(descriptor)

    def _is_stopped(self, descriptor: int, event: int, *, wait: bool = True) -> bool:
        """Wait until a pipe is ready or the wire is stopped; say which of the two."""
        poll = select.poll()
        poll.register(descriptor, event)
        poll.register(self.stop_read, select.POLLIN)
        return any(ready == self.stop_read for ready, _ in poll.poll(None if wait else 0))

    def _take(self) -> Iterator[Message]:
        """Take what the pipe holds, and yield the messages that it completes."""
        try:
            chunk = os.read(self._requests, _CHUNK_BYTES)
        except BlockingIOError:
            return
        self._count(len(chunk))
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            self._add(piece)
            if self._pending_size:
                yield self._message()
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        self._pending_size += len(piece)
        self._pending += piece[: self._most_message_bytes - len(self._pending)]

    def _message(self) -> Message:
        kept = bytes(self._pending)
        data = self._clean(kept)
        size = self._pending_size - len(kept) + len(data)
        self._pending.clear()
        self._pending_size = 0
        self.cut = self.cut or size > len(data)
        return Message(self._keep("in", data, size), data, size)

    def _keep(self, way: str, data: bytes, size: int) -> int:
        line = WireLine.model_validate({"way": way, "base64": base64.b64encode(data).decode(), "bytes": size})
        self._archive.write(line.to_bytes() + b"\n")
        self._lines += 1
        return self._lines

    def _count(self, size: int) -> None:
        self._crossed += size
        if self._crossed > self._most_bytes:
            raise WireFull(f"more than {self._most_bytes} bytes crossed the wire")
