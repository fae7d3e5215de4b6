"""One audit of a paired pilot: read its folder, then every family of checks; damage is a finding."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from roundkit.audit import pilot_acceptance_checks, pilot_agent_checks, pilot_call_checks, pilot_checks
from roundkit.audit.findings import AuditReport, Check, Disagreement, conclude
from roundkit.audit.guard import BROKEN, each_family, failures, guarded
from roundkit.audit.head_check import posted_head
from roundkit.audit.pilot_ledger_checks import posted_ledgers
from roundkit.audit.pilot_material import PilotMaterial, read_pilot
from roundkit.audit.published_checks import check_published
from roundkit.audit.published_material import read_published
from roundkit.core.progress import SILENT, Progress, Task
from roundkit.evidence.pilot_reader import PilotReader
from roundkit.evidence.problem import EvidenceProblem

_FAMILIES: tuple[tuple[str, Callable[[PilotMaterial], list[Check]]], ...] = (
    ("plan", pilot_checks.check_plan),
    ("inputs", pilot_checks.check_inputs),
    ("tuples", pilot_checks.check_matrix),
    ("chain", pilot_checks.check_chain),
    ("archives", pilot_checks.check_archives),
    ("sameness", pilot_checks.check_sameness),
    ("calls", pilot_call_checks.check_calls),
    ("agents", pilot_agent_checks.check_agents),
    ("reviews", pilot_agent_checks.check_reviews),
    ("acceptance", pilot_acceptance_checks.check_acceptance),
    ("eligibility", pilot_checks.check_eligibility),
    ("findings", pilot_checks.check_findings),
)


def audit_pilot(
    path: Path, *, expect: str | None = None, head: str | None = None, progress: Progress = SILENT
) -> AuditReport:
    """Recompute everything in a paired pilot's folder from its bytes.

    Args:
        path: The folder, or a copy of it on another machine.
        expect: The digest as it was published: the plan's, or that of a published cohort's records.
        head: The head as it was posted after a run: the digest of what was then the last record.
        progress: Shows how many kinds of checks are done.

    Returns:
        Every check with what agreed or did not. Nothing found wrong in the folder raises.
    """
    name = path.resolve().name
    with progress.task(f"audit of {name}", len(_FAMILIES) + 1, "kinds of checks") as task:
        return _audit(path, name, expect, head, task)


def _audit(path: Path, name: str, expect: str | None, head: str | None, task: Task) -> AuditReport:
    try:
        if PilotReader(path).is_published:
            cohort = read_published(path)
            checks = [
                *_expected(cohort.digest, expect),
                *posted_head(None, head),
                *guarded("published", partial(check_published, cohort)),
            ]
            return AuditReport(name, cohort.digest, tuple(checks))
        material = read_pilot(path)
    except EvidenceProblem as problem:
        return AuditReport(name, None, tuple(failures("files", problem)))
    except BROKEN as error:
        said = f"cannot be read: {type(error).__name__}: {error}"
        return AuditReport(name, None, (Check("files", False, "", said),))
    checks = [*_expected(material.cohort.digest, expect), *_head(material, head)]
    task.advance()
    checks += each_family(_FAMILIES, material, task)
    return AuditReport(name, material.cohort.digest, tuple(checks))


def _head(material: PilotMaterial, head: str | None) -> list[Check]:
    return posted_head(material.chain, head, dict(posted_ledgers(material)))


def _expected(digest: str, expect: str | None) -> list[Check]:
    if expect is None:
        return [Check("digest", True, "", f"{digest}; none was given to expect")]
    found = [] if digest == expect else [Disagreement("digest", f"is {digest}, expected {expect}")]
    return conclude("digest", found, "as expected")
