"""What travels between driver and worker: one JSON value a frame, behind its length.

A frame is four bytes (the length, big-endian) and that many bytes of UTF-8 JSON. Nothing is ever
unpickled, and no frame longer than the limit is read or written.
"""

from __future__ import annotations

import json
import os
import struct
from typing import Any, BinaryIO, NoReturn

FRAME_LIMIT_BYTES = 64 * 1024 * 1024

_LENGTH = struct.Struct(">I")


class FrameError(Exception):
    """A message that cannot be sent: no JSON, or over the frame limit."""


class PipeBroken(Exception):
    """The other side closed the pipe, died, or sent bytes that are not what was agreed."""


class Pipe:
    """One side's private end of the two pipes, taken away from standard input and output.

    Attributes:
        limit_bytes: The longest frame that is read or written.
    """

    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO, limit_bytes: int = FRAME_LIMIT_BYTES) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self.limit_bytes = limit_bytes

    @classmethod
    def from_standard_streams(cls, limit_bytes: int = FRAME_LIMIT_BYTES) -> Pipe:
        """Take descriptors 0 and 1 for the protocol; leave /dev/null and stderr in their place.

        Whatever the program prints or reads afterwards cannot disturb the frames, and since the
        private descriptors are not inheritable, neither can the programs that it starts.
        """
        incoming = os.fdopen(os.dup(0), "rb")
        outgoing = os.fdopen(os.dup(1), "wb")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        return cls(incoming, outgoing, limit_bytes)

    def send(self, frame: bytes) -> None:
        """Write one encoded frame.

        Raises:
            PipeBroken: Nobody reads the other end any more.
        """
        try:
            self._outgoing.write(frame)
            self._outgoing.flush()
        except (BrokenPipeError, ConnectionError) as error:
            raise PipeBroken("the pipe was closed") from error

    def receive(self) -> bytes | None:
        """Read the body of one frame; None where the other side closed the pipe between frames.

        Raises:
            PipeBroken: The pipe ended inside a frame, or the frame announces more than the limit.
        """
        header = self._incoming.read(_LENGTH.size)
        if not header:
            return None
        if len(header) < _LENGTH.size:
            raise PipeBroken("the pipe ended inside a frame")
        (length,) = _LENGTH.unpack(header)
        if length > self.limit_bytes:
            raise PipeBroken(f"a frame of {length} bytes is over the limit of {self.limit_bytes}")
        body = self._incoming.read(length)
        if len(body) < length:
            raise PipeBroken("the pipe ended inside a frame")
        return body


def encode(message: object, limit_bytes: int = FRAME_LIMIT_BYTES) -> bytes:
    """Turn a JSON value into the bytes of one frame.

    Args:
        message: Built from dict, list, str, int, finite float, bool and None.
        limit_bytes: The longest body allowed.

    Raises:
        FrameError: The message is no JSON value, or its body is over the limit.
    """
    try:
        body = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise FrameError(f"not a JSON value: {error}") from error
    if len(body) > limit_bytes:
        raise FrameError(f"a frame of {len(body)} bytes is over the limit of {limit_bytes}")
    return _LENGTH.pack(len(body)) + body


def decode(body: bytes) -> dict[str, Any]:
    """Turn the body of a frame into the object that every message is.

    Raises:
        PipeBroken: The body is no JSON object, or holds NaN or an infinity.
    """
    try:
        message = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise PipeBroken("a frame is not JSON") from error
    if not isinstance(message, dict):
        raise PipeBroken("a frame is not a JSON object")
    return message


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
