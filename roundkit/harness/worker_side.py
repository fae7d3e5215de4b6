"""The worker: imports the candidate and answers the driver. Sees no clock, no result, no other input."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from roundkit.harness.frames import FRAME_LIMIT_BYTES, FrameError, Pipe, PipeBroken, decode, encode

_MESSAGE_LIMIT_CHARACTERS = 1000


def worker(targets: Mapping[str, str], *, limit_bytes: int = FRAME_LIMIT_BYTES) -> None:
    """Answer the driver's requests with the candidate's functions until the driver closes the pipe.

    Each target takes the request's payload and returns the answer, both JSON values. All targets are
    imported before the driver is told that its clock may start. What the candidate prints goes to
    stderr.

    Args:
        targets: For each method name, where the candidate implements it: ``package.module:function``.
        limit_bytes: The longest frame in either direction.
    """
    pipe = Pipe.from_standard_streams(limit_bytes)
    _add_checkout_to_path()
    try:
        functions = {method: _resolve(target) for method, target in targets.items()}
    except BaseException as error:  # whatever an import raises, SystemExit included, is the candidate's
        pipe.send(encode({"token": "", "error": _describe(error)}))
        return
    try:
        pipe.send(encode({"token": "", "answer": "ready"}))
        while (body := pipe.receive()) is not None:
            pipe.send(_reply(functions, body, limit_bytes))
    except PipeBroken:  # the driver ended first, and has said why
        return


def _add_checkout_to_path() -> None:
    """Let the checkout (the working folder) be imported: behind the standard library, before all else.

    Behind it, so that no candidate module shadows one of the standard library; before installed
    packages, so that the program under test is the checkout's and not an installed copy.
    """
    standard = os.path.dirname(os.__file__)  # noqa: PTH120 - pathlib is an import that candidates need not pay
    native = os.path.join(standard, "lib-dynload")  # noqa: PTH118
    behind = [position for position, entry in enumerate(sys.path) if entry in (standard, native)]
    sys.path.insert(max(behind, default=len(sys.path) - 1) + 1, os.getcwd())  # noqa: PTH109


def _resolve(target: str) -> Callable[[Any], object]:
    module, _, attribute = target.partition(":")
    function: Callable[[Any], object] = getattr(import_module(module), attribute)
    return function


def _reply(functions: Mapping[str, Callable[[Any], object]], body: bytes, limit_bytes: int) -> bytes:
    request = decode(body)
    token = request["token"]
    try:
        answer = functions[request["method"]](request["payload"])
        return encode({"token": token, "answer": answer}, limit_bytes)
    except FrameError as error:
        return encode({"token": token, "error": _bounded(f"the answer cannot be sent: {error}")})
    except BaseException as error:  # SystemExit and KeyboardInterrupt are the candidate's too
        return encode({"token": token, "error": _describe(error)})


def _describe(error: BaseException) -> str:
    return _bounded(f"{type(error).__name__}: {error}")


def _bounded(message: str) -> str:
    return message[:_MESSAGE_LIMIT_CHARACTERS]
