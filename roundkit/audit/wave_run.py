"""One audit of an exported wave campaign: verify its bytes, then every check; damage is a finding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from roundkit.audit import (
    wave_checks,
    wave_drafter_checks,
    wave_draw_checks,
    wave_gate_checks,
    wave_reject_checks,
    wave_time_checks,
)
from roundkit.audit.findings import AuditReport, Check
from roundkit.audit.guard import each_family, failures
from roundkit.audit.index_checks import check_files, check_index
from roundkit.audit.wave_material import CampaignMaterial, read_campaign
from roundkit.core.progress import SILENT, Progress
from roundkit.evidence import wave_layout as layout
from roundkit.evidence.problem import EvidenceProblem
from roundkit.evidence.wave_reader import open_wave_evidence

_FAMILIES: tuple[tuple[str, Callable[[CampaignMaterial], list[Check]]], ...] = (
    ("plan", wave_checks.check_campaign),
    ("draws", wave_draw_checks.check_draws),
    ("shards", wave_checks.check_shards),
    ("requests", wave_checks.check_requests),
    ("workers", wave_checks.check_workers),
    ("times", wave_time_checks.check_times),
    ("drafter", wave_drafter_checks.check_drafter),
    ("ledger", wave_gate_checks.check_rows),
    ("rejects", wave_reject_checks.check_rejects),
)
_UNCHECKED = (
    "drafts, staged files and logs are not in this folder: what a prefilter, a scorer or a gate answered, "
    "and what a commit holds, is taken from the records"
)


def audit_waves(path: Path, *, expect: str | None = None, progress: Progress = SILENT) -> AuditReport:
    """Recompute everything in an exported wave campaign that its records allow.

    Args:
        path: The export.
        expect: The evidence digest as it was published elsewhere.
        progress: Shows how many kinds of checks are done.

    Returns:
        Every check with what agreed or did not. Nothing found wrong in the evidence raises.
    """
    name = path.resolve().name
    # Reading is a kind of check, too.
    with progress.task(f"audit of {name}", len(_FAMILIES) + 1, "kinds of checks") as task:
        try:
            evidence = open_wave_evidence(path)
        except EvidenceProblem as found:
            return AuditReport(name, None, tuple(failures("files", found)))
        checks = check_index(layout.INDEX, evidence.digest, expect)
        checks += check_files(evidence.verify, len(evidence.names))
        try:
            material = read_campaign(evidence)
        except EvidenceProblem as found:
            return AuditReport(name, evidence.digest, (*checks, *failures("records", found)))
        task.advance()
        checks += each_family(_FAMILIES, material, task)
    checks.append(Check("cannot be recomputed", True, "", _UNCHECKED))
    return AuditReport(name, evidence.digest, tuple(checks))
