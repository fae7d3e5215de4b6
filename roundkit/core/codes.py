"""Every stable code with its meaning and what to do: read from ``codes.toml``, which lies beside."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from roundkit.core.errors import Refusal, Refused, RoundkitError

FAMILIES = {
    "refusals": "Refusals: nothing was done, and what had been recorded stays as it was (exit code 3)",
    "words": "Verdicts, and states of tickets and of the search plan's entries",
    "verdicts": "Reasons of verdicts",
    "trials": "Problems of one trial, with `candidate-` or `baseline-` before them by whose run it was",
    "infrastructure": "Why an experiment is `invalid`: no result for or against anything; it is repeated",
    "rejections": "Why a submission is rejected: it stays on record and costs no measurement",
    "lanes": "What became of a lane when its round was closed",
    "agents": "How a lane's agent ended, which says nothing about what it submitted",
    "findings": "What a pilot's finding is about",
    "audit": "Checks of an audit: one that fails is a difference between what stands there and what follows "
    "from it (exit code 1)",
}
"""What the codes of each family say."""


@dataclass(frozen=True)
class Code:
    """One stable code.

    Attributes:
        code: As it is printed and recorded.
        family: One of :data:`FAMILIES`.
        meaning: What it says, in a sentence; of a verdict's reason the verdict first.
        remedy: What to do about it; empty for an audit's checks.
    """

    code: str
    family: str
    meaning: str
    remedy: str


@cache
def all_codes() -> tuple[Code, ...]:
    """Return every code, family by family."""
    content = tomllib.loads((files("roundkit.core") / "codes.toml").read_text(encoding="utf-8"))
    return tuple(
        Code(code, family, said[0], said[1] if len(said) > 1 else "")
        for family, rows in content.items()
        for code, said in rows.items()
    )


def told(error: RoundkitError) -> str:
    """Return an error as people are told it: a refusal without a remedy of its own has its code's."""
    if not isinstance(error, Refused):
        return str(error)
    return "\n".join(str(_with_remedy(refusal)) for refusal in error.refusals)


def _with_remedy(refusal: Refusal) -> Refusal:
    if refusal.remedy:
        return refusal
    known = [code.remedy for code in all_codes() if code.family == "refusals" and code.code == refusal.code]
    return replace(refusal, remedy=known[0] if known else "")


def codes_named(code: str) -> list[Code]:
    """Return what a printed code may mean: of each family that has it, also behind the side that ran."""
    plain = code.removeprefix("candidate-").removeprefix("baseline-")
    shown = "guard:NAME" if code.startswith("guard:") else code
    return [
        each
        for each in all_codes()
        if each.code == shown or (each.family == "trials" and each.code == plain and plain != code)
    ]
