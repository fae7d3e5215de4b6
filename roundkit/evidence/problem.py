"""What is wrong with an evidence folder, every problem by code and file name."""

from __future__ import annotations

from roundkit.core.errors import Refusal, Refused


class EvidenceProblem(Refused):
    """The folder is not the evidence that its index describes. Nothing of it was trusted.

    Codes: ``no-evidence``, ``not-a-file``, ``missing-file``, ``hard-linked``, ``extra-file``, ``wrong-size``,
    ``wrong-digest``, ``wrong-seal``, ``too-large``, ``malformed``, ``not-canonical``, ``bad-name``,
    ``digest-mismatch``, ``evidence-differs``.
    """


def problem(code: str, message: str, *, where: str, remedy: str = "") -> EvidenceProblem:
    """Build an :class:`EvidenceProblem` with one refusal, for ``raise problem(...)``."""
    return EvidenceProblem(Refusal(code=code, message=message, place=where, remedy=remedy))
