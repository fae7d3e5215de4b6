"""One audit: open, verify, then every family of checks in turn; damage is a finding, never a traceback."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from roundkit.audit.attempt_checks import check_attempts
from roundkit.audit.chain_checks import check_chain
from roundkit.audit.decision_checks import check_decisions
from roundkit.audit.experiment_checks import check_experiments
from roundkit.audit.findings import AuditReport, Check
from roundkit.audit.guard import each_family, failures, guarded
from roundkit.audit.index_checks import check_files, check_index
from roundkit.audit.log_checks import check_log
from roundkit.audit.look_checks import check_looks
from roundkit.audit.material import Material, read_material
from roundkit.audit.omission_checks import check_omissions
from roundkit.audit.plan_checks import check_plan
from roundkit.audit.repository_checks import check_repository
from roundkit.audit.role_checks import check_roles
from roundkit.audit.selection_checks import show_selection
from roundkit.audit.ticket_checks import check_tickets
from roundkit.audit.verdict_checks import check_verdicts
from roundkit.core.errors import refuse
from roundkit.core.git import Repository
from roundkit.core.progress import SILENT, Progress
from roundkit.evidence import EvidenceProblem, open_evidence
from roundkit.evidence.layout import INDEX

_FAMILIES: tuple[tuple[str, Callable[[Material], list[Check]]], ...] = (
    ("plan", check_plan),
    ("attempts", check_attempts),
    ("tickets", check_tickets),
    ("experiments", check_experiments),
    ("roles", check_roles),
    ("omissions", check_omissions),
    ("log", check_log),
    ("verdicts", check_verdicts),
    ("looks", check_looks),
    ("decisions", check_decisions),
    ("selection", show_selection),
    ("chain", check_chain),
)


def audit_round(
    path: Path,
    *,
    repository: Path | None = None,
    expect: str | None = None,
    progress: Progress = SILENT,
) -> AuditReport:
    """Recompute everything in the evidence of a round from its bytes and raw samples.

    Args:
        path: The evidence folder.
        repository: The campaign repository, to compare commits with; None leaves them alone.
        expect: The evidence digest as it was published elsewhere.
        progress: Shows how many kinds of checks are done.

    Returns:
        Every check with what agreed or did not. Nothing found wrong in the evidence raises.

    Raises:
        Refused: ``no-repository``: what was named as one is none, which says nothing about the evidence.
    """
    if repository is not None and Repository(repository).git("rev-parse", "--git-dir", check=False).exit_code:
        raise refuse(
            "no-repository",
            f"{repository} is no git repository",
            place="--repository",
            remedy="name the campaign's repository, or a clone of it",
        )
    name = path.resolve().name
    # Reading takes longest: it is a kind of check, too, and so is that of the repository.
    with progress.task(f"audit of {name}", len(_FAMILIES) + 2, "kinds of checks") as task:
        try:
            evidence = open_evidence(path)
        except EvidenceProblem as problem:
            return AuditReport(name, None, tuple(failures("files", problem)))
        checks = check_index(INDEX, evidence.digest, expect)
        checks += check_files(evidence.verify, len(evidence.index.files))
        try:
            material = read_material(evidence)
        except EvidenceProblem as problem:
            return AuditReport(name, evidence.digest, (*checks, *failures("records", problem)))
        task.advance()
        checks += each_family(_FAMILIES, material, task)
        if repository is not None:
            checks += guarded("repository", partial(check_repository, material, repository))
        task.advance()
    return AuditReport(name, evidence.digest, tuple(checks))
