"""One door for evidence of every kind: rounds, pilots and wave campaigns."""

from __future__ import annotations

from pathlib import Path

from roundkit.audit.findings import AuditReport
from roundkit.audit.pilot_run import audit_pilot
from roundkit.audit.policy import audit_policy
from roundkit.audit.run import audit_round
from roundkit.audit.wave_run import audit_waves
from roundkit.core.progress import SILENT, Progress
from roundkit.evidence.kinds import evidence_kind


def audit_evidence(
    path: Path,
    *,
    repository: Path | None = None,
    expect: str | None = None,
    progress: Progress = SILENT,
) -> AuditReport:
    """Recompute everything in an evidence folder, of whatever kind it is.

    Args:
        path: The evidence of a round, a pilot or a wave campaign.
        repository: The campaign repository, to compare a round's commits with; None leaves them alone.
        expect: The digest as it was published elsewhere.
        progress: Shows how many kinds of checks are done.

    Returns:
        Every check with what agreed or did not. Nothing found wrong in the evidence raises.

    Raises:
        Refused: ``no-repository``: what was named as one is none.
    """
    match evidence_kind(path):
        case "round":
            return audit_round(path, repository=repository, expect=expect, progress=progress)
        case "paired":
            return audit_pilot(path, expect=expect, progress=progress)
        case "policy":
            return audit_policy(path, expect=expect, progress=progress)
        case "waves":
            return audit_waves(path, expect=expect, progress=progress)
