"""What every audit does with evidence that cannot even be recomputed: a failed check, never a traceback."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from roundkit.audit.findings import Check
from roundkit.core.errors import RoundkitError
from roundkit.evidence.problem import EvidenceProblem

BROKEN = (
    RoundkitError, ValueError, LookupError, ArithmeticError, TypeError, AttributeError, AssertionError,
    RuntimeError, OSError,
)  # fmt: skip
"""What reading or recomputing forged evidence may raise."""


def failures(name: str, problem: EvidenceProblem) -> Iterator[Check]:
    """Yield one failed check a refusal."""
    for refusal in problem.refusals:
        yield Check(name, False, refusal.place, f"[{refusal.code}] {refusal.message}")


def guarded(family: str, check: Callable[[], list[Check]]) -> list[Check]:
    """Evidence that does not even fit the rules' assumptions disagrees, whatever the rule raised."""
    try:
        return check()
    except EvidenceProblem as problem:
        return list(failures(family, problem))
    except BROKEN as error:
        return [Check(family, False, "", f"cannot be recomputed: {type(error).__name__}: {error}")]
