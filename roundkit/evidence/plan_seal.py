"""The seal of a pilot's frozen plan: its digest in a file beside it, compared before a field is trusted."""

from __future__ import annotations

from roundkit.core.canonical import digest_bytes
from roundkit.evidence.problem import EvidenceProblem, problem

PLAN = "plan.json"
SEAL = "plan.json.sha256"
"""The plan's digest, as it was frozen."""


def seal_bytes(digest: str) -> bytes:
    """Return the bytes of the seal, in the form that ``sha256sum --check`` takes."""
    return f"{digest}  {PLAN}\n".encode()


def seal_problem(plan: bytes, seal: bytes | None) -> str | None:
    """Say what is wrong with the seal of a plan's bytes; null where it names their digest."""
    if seal is None:
        return "is missing"
    return None if seal == seal_bytes(digest_bytes(plan)) else "does not name the digest of the plan"


def plan_changed(said: str) -> EvidenceProblem:
    """Return the refusal of a plan that is not the frozen one, for ``raise plan_changed(...)``."""
    return problem(
        "plan-changed",
        f"the frozen pilot was edited after freezing: {SEAL} {said}",
        where=PLAN,
        remedy="restore it, or prepare a new pilot; a frozen plan is never edited",
    )
