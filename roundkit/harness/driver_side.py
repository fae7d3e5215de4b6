"""The driver: makes inputs, asks the worker, holds clock and result. Runs no candidate code."""

from __future__ import annotations

import json
import os
import random
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from roundkit.harness.frames import FRAME_LIMIT_BYTES, Pipe, PipeBroken, decode, encode

EXIT_NOT_STARTED_BY_COORDINATOR = 2
EXIT_WORKER_LOST = 70
EXIT_CANDIDATE_RAISED = 71

MESSAGE_LIMIT_CHARACTERS = 1000

_OUTPUT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")

Answer = TypeVar("Answer")


class CandidateRaised(Exception):
    """The candidate raised where it should have answered."""


class Session:
    """One trial, as the owner's ``run`` sees it.

    Attributes:
        seed: The coordinator's seed of this trial; both sides of a pair get the same.
        repetitions: How many timed repetitions the plan asks for.
    """

    def __init__(self, pipe: Pipe, *, seed: int, repetitions: int, output_dir: Path) -> None:
        self.seed = seed
        self.repetitions = repetitions
        self._pipe = pipe
        self._output_dir = output_dir
        self._latencies_ms: list[float] = []
        self._elapsed_ns: int | None = None

    @property
    def latencies_ms(self) -> list[float]:
        """The timed repetitions so far, in milliseconds."""
        return list(self._latencies_ms)

    def random(self, repetition: int) -> random.Random:
        """Return the random source for one repetition's inputs: same seed, same numbers everywhere."""
        return random.Random(f"{self.seed}/{repetition}")  # noqa: S311 - inputs, not secrets

    def call(self, method: str, payload: object) -> Any:
        """Ask the worker and return its answer, checked to belong to this very request.

        Only the round trip is on the clock: from the first byte written to the last byte read. The
        request is encoded anew for every call, so no call sees what an earlier one did to its input.

        Args:
            method: A name that the worker file offers.
            payload: Any JSON value.

        Raises:
            CandidateRaised: The candidate raised, or its answer is no JSON value.
            PipeBroken: The worker died or sent something other than one answer to this request.
        """
        # An answer written before its request was seen cannot know the token.
        token = secrets.token_hex(8)
        request = encode({"token": token, "method": method, "payload": payload}, self._pipe.limit_bytes)
        started_ns = time.perf_counter_ns()
        self._pipe.send(request)
        body = self._pipe.receive()
        if self._elapsed_ns is not None:
            self._elapsed_ns += time.perf_counter_ns() - started_ns
        return _answer(body, token)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the calls made inside the block as one repetition.

        Raises:
            RuntimeError: The block made no call, or stands inside another one.
        """
        if self._elapsed_ns is not None:
            raise RuntimeError("timed() inside timed(): a repetition is one block")
        self._elapsed_ns = 0
        try:
            yield
            if self._elapsed_ns == 0:
                raise RuntimeError("timed() without a call: there is nothing to measure")
            self._latencies_ms.append(self._elapsed_ns / 1e6)
        finally:
            self._elapsed_ns = None

    def measure(self, work: Callable[[], Answer]) -> Answer:
        """Run ``work`` as one repetition (see :meth:`timed`) and return what it returns."""
        with self.timed():
            return work()

    def save(self, name: str, value: object) -> None:
        """Store a JSON value for the validator as ``<name>.json`` in the output folder.

        Raises:
            ValueError: The name is not plain (lower-case letters, digits, ``-`` and ``_``).
        """
        if not _OUTPUT_NAME.fullmatch(name):
            raise ValueError(f"not a plain output name: {name!r}")
        _write_json(self._output_dir / f"{name}.json", value)

    def await_ready(self) -> None:
        """Wait until the worker has imported the candidate.

        Raises:
            CandidateRaised: The import failed.
            PipeBroken: The worker died or sent something else.
        """
        if _answer(self._pipe.receive(), token="") != "ready":
            raise PipeBroken("the worker did not say that it is ready")


def driver(
    run: Callable[[Session], None], *, metric: str = "latency_ms", limit_bytes: int = FRAME_LIMIT_BYTES
) -> None:
    """Run a benchmark as the driver process, and write its result where the coordinator looks for it.

    The result file holds ``{"metrics": {<metric>: [<repetition in ms>, …]}, "harness": 1}`` and appears
    only once everything went well. Exit codes: 0 done; 2 not started by roundkit; 70 the worker died or
    garbled; 71 the candidate raised. An exception of ``run`` itself is the owner's and ends with 1.

    Args:
        run: The owner's benchmark; it makes exactly ``session.repetitions`` timed repetitions.
        metric: The name of the metric in the result, in milliseconds.
        limit_bytes: The longest frame in either direction.
    """
    pipe = Pipe.from_standard_streams(limit_bytes)
    try:
        result_path, session = _session_from(os.environ, pipe)
    except ValueError as error:
        _leave(EXIT_NOT_STARTED_BY_COORDINATOR, f"{_one_line(error)}; start it with `roundkit trial`")
    try:
        session.await_ready()
        run(session)
    except PipeBroken as error:
        _leave(EXIT_WORKER_LOST, f"candidate crashed: {_one_line(error)}")
    except CandidateRaised as error:
        _leave(EXIT_CANDIDATE_RAISED, f"candidate raised: {_one_line(error)}")
    made = len(session.latencies_ms)
    if made != session.repetitions:
        raise RuntimeError(f"the benchmark made {made} timed repetitions, not {session.repetitions}")
    _write_json(result_path, {"metrics": {metric: session.latencies_ms}, "harness": 1})


def _session_from(environment: Mapping[str, str], pipe: Pipe) -> tuple[Path, Session]:
    names = ("ROUNDKIT_RESULT_PATH", "ROUNDKIT_OUTPUT_DIR", "ROUNDKIT_SEED", "ROUNDKIT_REPETITIONS")
    missing = [name for name in names if name not in environment]
    if missing:
        raise ValueError(f"not set: {', '.join(missing)}")
    result_path, output_dir, seed, repetitions = (environment[name] for name in names)
    if int(repetitions) < 1:
        raise ValueError(f"ROUNDKIT_REPETITIONS is {repetitions}")
    session = Session(pipe, seed=int(seed), repetitions=int(repetitions), output_dir=Path(output_dir))
    return Path(result_path), session


def _answer(body: bytes | None, token: str) -> Any:
    if body is None:
        raise PipeBroken("the worker is gone")
    message = decode(body)
    if message.get("token") != token or len(message) != 2:
        raise PipeBroken("the worker sent a frame that answers no request")
    if "error" in message:
        raise CandidateRaised(str(message["error"]))
    if "answer" not in message:
        raise PipeBroken("the worker sent a frame that is no answer")
    return message["answer"]


def _write_json(path: Path, value: object) -> None:
    """Write beside the target and rename: a reader sees all of it or nothing."""
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(json.dumps(value, allow_nan=False), encoding="utf-8")
    draft.replace(path)


def _one_line(error: Exception) -> str:
    """Make a message of unknown origin fit for a log: bounded, printable, one line."""
    message = str(error.args[0]) if error.args else type(error).__name__
    printable = "".join(character if character.isprintable() else " " for character in message)
    return printable[:MESSAGE_LIMIT_CHARACTERS]


def _leave(code: int, message: str) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(code)
