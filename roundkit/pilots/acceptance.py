"""Acceptance: the task's checks, each over a fresh copy of an archived candidate, confined."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from roundkit.core.clock import Deadline
from roundkit.core.errors import Refused
from roundkit.evidence import pilot_layout as layout
from roundkit.host.confine import Execution
from roundkit.measure.trees import copy_tree, remove_tree
from roundkit.models.pilot_draft import PilotCheck
from roundkit.models.pilot_plan import FrozenTask, PairedPlan
from roundkit.models.pilot_trial import Acceptance, CheckOutcome, CheckResult
from roundkit.pilots.archive import whole_tree
from roundkit.pilots.gateway.programs import Program, start
from roundkit.rules.pilot_outcome import acceptance_of

_BY_EXIT_CODE: dict[int | None, CheckOutcome] = {0: "passed", 1: "failed"}


def decide(plan: PairedPlan, task: FrozenTask, root: Path, candidate: Path) -> Acceptance:
    """Decide whether a candidate is accepted.

    Args:
        plan: The frozen plan.
        task: Its task.
        root: The pilot's folder, for hidden files.
        candidate: The archived candidate; it is only read.

    Raises:
        ConfinementUnavailable: the host cannot confine a check.
        OSError: the candidate cannot be read.
    """
    results = [_decided(plan, task.task.id, check, root, candidate) for check in task.task.checks]
    return acceptance_of(whole_tree(candidate), results)


def _decided(plan: PairedPlan, task: str, check: PilotCheck, root: Path, candidate: Path) -> CheckResult:
    if check.unavailable is not None:
        return CheckResult(check=check.id, outcome="unavailable", reason=check.unavailable)
    hidden = root / layout.task_input(task, f"hidden/{check.id}") if check.hidden is not None else None
    with _fresh_copy(candidate) as copy:
        try:
            ended = start(
                Program(check.argv, hidden),
                (),
                candidate=copy,
                runtime=plan.runtime,
                limits=plan.policy.limits,
                deadline=Deadline.after(plan.policy.check_s),
            )
        except Refused as refused:
            return CheckResult(check=check.id, outcome="unavailable", reason=refused.refusals[0].message)
    outcome = _BY_EXIT_CODE.get(ended.exit_code, "unavailable")
    return CheckResult(
        check=check.id,
        outcome=outcome,
        reason=_why(ended) if outcome == "unavailable" else None,
        stdout_sha256=ended.stdout_sha256,
        stderr_sha256=ended.stderr_sha256,
    )


def _why(ended: Execution) -> str:
    if ended.end_reason != "exited":
        return f"the check was ended: {ended.end_reason}"
    said = ended.stderr_tail.strip().splitlines()
    return f"the check ended with exit code {ended.exit_code}" + (f": {said[-1][:300]}" if said else "")


@contextmanager
def _fresh_copy(candidate: Path) -> Iterator[Path]:
    with TemporaryDirectory(prefix="roundkit-check-") as scratch:
        copy = Path(scratch).resolve() / "candidate"
        copy_tree(candidate, copy)
        try:
            yield copy
        finally:
            remove_tree(copy)
