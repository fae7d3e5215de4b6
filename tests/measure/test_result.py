"""A result is finite numbers under plain names, or a reason why not."""

from __future__ import annotations

import json

import pytest

from roundkit.measure.result import ResultProblem, check_metrics, parse_result, reduce_repetitions


def test_numbers_and_lists_are_kept_raw() -> None:
    data = b'{"metrics": {"latency_ms": [3, 1.5, 2], "memory": 0}, "harness": 1, "timeout": false}'
    metrics = parse_result(data)
    assert metrics == {"latency_ms": (3.0, 1.5, 2.0), "memory": (0.0,)}
    check_metrics(metrics, "latency_ms", ["memory"])
    assert reduce_repetitions(metrics["latency_ms"]) == 2.0
    assert reduce_repetitions((1.0, 2.0)) == 1.5


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not strict JSON"),
        (b"\xff\xfe", "not strict JSON"),
        (b"[" * 100_000, "not strict JSON"),
        (b'{"metrics": {"m": NaN}}', "NaN"),
        (b'{"metrics": {"m": Infinity}}', "Infinity"),
        (b'{"metrics": {"m": -Infinity}}', "-Infinity"),
        (b'{"metrics": {"m": 1e999}}', "not finite"),
        (b'{"metrics": {"m": 1' + b"0" * 400 + b"}}", "not finite"),
        (b'{"metrics": {"m": [1.7e308, 1.7e308]}}', "most that is reckoned with"),
        (b'{"metrics": {"other": -1e31}}', "most that is reckoned with"),
        (b'{"metrics": {"m": 1' + b"0" * 5000 + b"}}", "not strict JSON"),
        (b'{"metrics": {"m": 1, "m": 2}}', "duplicate"),
        (b'{"metrics": {"m": 1}, "metrics": {"m": 2}}', "duplicate"),
        (b'{"metrics": {"m": "1.5"}}', "no number"),
        (b'{"metrics": {"m": true}}', "no number"),
        (b'{"metrics": {"m": null}}', "no number"),
        (b'{"metrics": {"m": {"value": 1}}}', "no number"),
        (b'{"metrics": {"m": [[1]]}}', "no number"),
        (b'{"metrics": {"m": []}}', "empty list"),
        (b'{"metrics": {"": 1}}', "no name"),
        (b'{"metrics": {"a b": 1}}', "no name"),
        (b'{"metrics": {"m\\n": 1}}', "no name"),
        (b'{"metrics": {"\\ud800": 1}}', "no name"),
        (b'{"metrics": {}}', "no metrics"),
        (b'{"metrics": [1]}', "no metrics"),
        (b'{"latency_ms": 1}', "no metrics"),
        (b"[1]", "no JSON object"),
        (b'{"timeout": true}', "timed out"),
        (b'{"timeout": true, "metrics": {"m": 1}}', "timed out"),
        (b'{"timeout": 1, "metrics": {"m": 1}}', "timed out"),
    ],
)
def test_fault_17_m03_an_impossible_result_has_a_reason(data: bytes, why: str) -> None:
    with pytest.raises(ResultProblem, match=why) as caught:
        parse_result(data)
    json.dumps(str(caught.value)).encode()
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("metrics", "why"),
    [
        ({}, "no metric m"),
        ({"m": (0.0,)}, "above zero"),
        ({"m": (1.0, -1.0)}, "above zero"),
        ({"m": (5e-324,)}, "least that is reckoned with"),
        ({"m": (1.0,)}, "no metric g; it has m"),
        ({"m": (1.0,)} | {f"x{n}": (1.0,) for n in range(7)}, "it has m, x0, x1, x2, x3, x4 and 2 more"),
        ({"m": (1.0,), "g": (-1.0,)}, "below zero"),
    ],
)
def test_fault_17_metrics_that_a_verdict_needs_are_there_and_possible(
    metrics: dict[str, tuple[float, ...]], why: str
) -> None:
    with pytest.raises(ResultProblem, match=why):
        check_metrics(metrics, "m", ["g"])
