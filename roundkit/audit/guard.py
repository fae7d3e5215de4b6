"""What every audit does with evidence that cannot even be recomputed: a failed check, never a traceback."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from roundkit.audit.findings import Check
from roundkit.core.errors import RoundkitError
from roundkit.core.progress import Task
from roundkit.evidence.problem import EvidenceProblem

M = TypeVar("M")
Family = tuple[str, Callable[[M], list[Check]]]
"""A kind of checks: its name, and what makes them of the material."""
BROKEN = (
    RoundkitError, ValueError, LookupError, ArithmeticError, TypeError, AttributeError, AssertionError,
    RuntimeError, OSError,
)  # fmt: skip
"""What reading or recomputing forged evidence may raise."""


def failures(name: str, problem: EvidenceProblem) -> Iterator[Check]:
    """Yield one failed check a refusal."""
    for refusal in problem.refusals:
        what = f"{refusal.message}; {refusal.remedy}" if refusal.remedy else refusal.message
        yield Check(name, False, refusal.place, f"[{refusal.code}] {what}")


def guarded(family: str, check: Callable[[], list[Check]]) -> list[Check]:
    """Evidence that does not even fit the rules' assumptions disagrees, whatever the rule raised."""
    try:
        return check()
    except EvidenceProblem as problem:
        return list(failures(family, problem))
    except BROKEN as error:
        return [Check(family, False, "", f"cannot be recomputed: {type(error).__name__}: {error}")]


def each_family(families: Iterable[Family[M]], material: M, task: Task) -> list[Check]:
    """Make the checks of every family, and tell of each that is made.

    Args:
        families: Names with what checks them.
        material: What was read of the evidence.
        task: Whom to tell.
    """
    checks: list[Check] = []
    for name, check in families:
        checks += guarded(name, partial(check, material))
        task.advance()
    return checks
