"""Reading a trial's result file: hostile bytes become finite numbers here, or a reason why not."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from roundkit.core.canonical import parse_json
from roundkit.core.errors import Refused
from roundkit.models.readings import LARGEST_FIGURE, figure_problem

Metrics = Mapping[str, tuple[float, ...]]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SHOWN_CHARACTERS = 80
_SHOWN_METRICS = 6


class ResultProblem(Exception):
    """The result is not usable; the message says why."""


def parse_result(data: bytes) -> dict[str, tuple[float, ...]]:
    """Read ``{"metrics": {name: number or list of numbers}}``.

    Other keys are ignored, except a ``timeout`` that is set: a benchmark that says so has no result.

    Returns:
        Every metric with all its repetitions, each finite and at most 1e30 in size.

    Raises:
        ResultProblem: it is something else.
    """
    try:
        content = parse_json(data, place="result")
    except Refused as error:
        raise ResultProblem(error.refusals[0].message) from error
    if not isinstance(content, dict):
        raise ResultProblem("the result is no JSON object")
    if content.get("timeout") not in (None, False):
        raise ResultProblem("the benchmark says that it timed out")
    metrics = content.get("metrics")
    if not isinstance(metrics, dict) or not metrics:
        raise ResultProblem("the result has no metrics")
    return {_checked_name(name): _repetitions(name, value) for name, value in metrics.items()}


def check_metrics(metrics: Metrics, deciding: str | None, guards: Iterable[str]) -> None:
    """Check that the metrics that a verdict needs are there and possible.

    Args:
        metrics: What was reported.
        deciding: Name of the metric that decides, where the benchmark reports it itself.
        guards: Names of the guard metrics that the benchmark reports.

    Raises:
        ResultProblem: one is missing; the deciding one is not above zero, or a guard is below it.
    """
    if deciding is not None:
        _check_figures(metrics, deciding, decides=True)
    for name in guards:
        _check_figures(metrics, name, decides=False)


def reduce_repetitions(values: tuple[float, ...]) -> float:
    """Return the one figure that stands for a trial: the median over its repetitions."""
    return float(statistics.median(values))


def _check_figures(metrics: Metrics, name: str, *, decides: bool) -> None:
    if name not in metrics:
        shown = sorted(metrics)[:_SHOWN_METRICS]
        left = len(metrics) - len(shown)
        has = ", ".join(shown) + (f" and {left} more" if left else "")
        raise ResultProblem(f"the result has no metric {name}" + (f"; it has {has}" if has else ""))
    if problem := figure_problem(name, metrics[name], decides=decides):
        raise ResultProblem(problem)


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ResultProblem(f"{name[:_SHOWN_CHARACTERS]!r} is no name of a metric")
    return name


def _repetitions(name: str, value: Any) -> tuple[float, ...]:
    values = value if isinstance(value, list) else [value]
    if not values:
        raise ResultProblem(f"metric {name} is an empty list")
    return tuple(_number(name, item) for item in values)


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ResultProblem(f"metric {name} is {repr(value)[:_SHOWN_CHARACTERS]}, which is no number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ResultProblem(f"metric {name} is not finite")
    if abs(number) > LARGEST_FIGURE:
        raise ResultProblem(
            f"metric {name} is {number!r}; the most that is reckoned with is {LARGEST_FIGURE!r}"
        )
    return number
