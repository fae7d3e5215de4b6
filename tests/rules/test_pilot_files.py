"""What lies at each path between a trial's calls."""

from __future__ import annotations

from typing import Any

import pytest

from roundkit.models.pilot_trial import DriftReceipt, GatewayCall
from roundkit.rules.pilot_files import follow

A, B, C = ("a" * 64, "b" * 64, "c" * 64)


def call(sequence: int, tool: str, found: str | None, after: str | None, **more: Any) -> GatewayCall:
    values = {
        "path": "f.py", "argv": (), "code": "ok", "exit_code": 0, "expected_sha256": None, "wall_ms": 0,
        "stdout_sha256": A, "stderr_sha256": A, "request_line": sequence, "response_line": None,
    }  # fmt: skip
    return GatewayCall.model_validate(
        {**values, "sequence": sequence, "tool": tool, "found_sha256": found, "after_sha256": after, **more}
    )


def read(sequence: int, found: str | None) -> GatewayCall:
    return call(sequence, "read", found, found)


def write(sequence: int, found: str | None, after: str, **more: Any) -> GatewayCall:
    return call(sequence, "write", found, after, expected_sha256=found, **more)


DRIFT = DriftReceipt(
    format="roundkit-pilot-drift/1", tuple_id="t.v.1", path="f.py", trigger_sequence=1, before_sha256=A,
    after_sha256=B, preimage="drift-preimage",
)  # fmt: skip
PROGRAM = call(2, "tests", None, None, path=None, code="program")


@pytest.mark.parametrize(
    ("calls", "drift", "left"),
    [
        ([read(1, A), write(2, A, B), read(3, B)], None, {"f.py": B}),
        ([read(1, A), read(2, B)], DRIFT, {"f.py": B}),
        ([read(1, A), PROGRAM, read(3, C)], None, {"f.py": C}),
        ([read(1, A), PROGRAM], None, {}),
        ([call(1, "delete", A, None, expected_sha256=A), read(2, None)], None, {"f.py": None}),
        ([read(1, None), write(2, None, B)], None, {"f.py": B}),
        ([call(1, "read", None, None, path=None, code="malformed")], None, {"f.py": A}),
    ],
)
def test_calls_find_what_was_left(
    calls: list[GatewayCall], drift: DriftReceipt | None, left: dict[str, str | None]
) -> None:
    before = {} if calls[0].found_sha256 is None and calls[0].path else {"f.py": A}
    assert follow(calls, before, drift) == (left, None)


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ([read(1, B)], "call 1 found"),
        ([read(1, A), write(2, A, B), read(3, A)], "call 3 found"),
        ([call(1, "read", A, B)], "call 1 changed nothing"),
        ([write(1, A, B, code="stale")], "was answered stale"),
        ([call(1, "write", A, B, expected_sha256=C)], "was answered ok"),
        ([call(1, "delete", A, A, expected_sha256=A)], "call 1 deleted f.py and left"),
        ([call(1, "write", A, B, expected_sha256=C, code="stale")], "call 1 changed nothing"),
    ],
)
def test_a_call_that_cannot_be_is_told(calls: list[GatewayCall], words: str) -> None:
    _, problem = follow(calls, {"f.py": A}, None)
    assert problem is not None
    assert words in problem
