"""What an audit says: one row a check that agrees, one row for each place that does not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from roundkit.rules.disagreement import Disagreement, differs

__all__ = ["AuditReport", "Check", "Disagreement", "conclude", "differs"]


@dataclass(frozen=True)
class Check:
    """One comparison of what stands in the evidence with what follows from it.

    Attributes:
        name: What was checked, e.g. ``verdicts``.
        passed: Whether everything agreed.
        where: File, ticket or experiment; empty when the whole folder was meant.
        detail: What agreed, or what stands there and what was computed.
    """

    name: str
    passed: bool
    where: str
    detail: str


@dataclass(frozen=True)
class AuditReport:
    """Every check of one evidence folder.

    Attributes:
        subject: The folder's name, without the path that leads to it.
        digest: The evidence digest; None when the index could not be read, or nothing is decided yet.
        checks: In the order in which they were made.
    """

    subject: str
    digest: str | None
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether every check passed; an audit without a check passes nothing."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that did not pass."""
        return tuple(check for check in self.checks if not check.passed)

    def to_json_value(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "format": "roundkit-audit/1",
            "subject": self.subject,
            "evidence_digest": self.digest,
            "passed": self.passed,
            "checks": [
                {"name": check.name, "passed": check.passed, "where": check.where, "detail": check.detail}
                for check in self.checks
            ],
        }


def conclude(name: str, disagreements: Iterable[Disagreement], agreed: str) -> list[Check]:
    """Return one failed check a disagreement, or one passed check that says what agreed."""
    failed = [Check(name, False, found.where, found.detail) for found in disagreements]
    return failed or [Check(name, True, "", agreed)]
