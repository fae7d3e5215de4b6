"""A lane's private environment, and the proof that the target package is the clone's own."""

from __future__ import annotations

from pathlib import Path

from roundkit.core.errors import Refused, refuse
from roundkit.core.process import run
from roundkit.measure.boundary import CHECKOUT
from roundkit.measure.materialized import Checkout
from roundkit.measure.probe import found_places, import_probe
from roundkit.models.round_plan import RoundPlan
from roundkit.rules.run_spec import run_spec_of


def make_environment(clone: Path, plan: RoundPlan) -> Path:
    """Make an empty virtual environment in a clone and return its folder."""
    folder = clone / ".roundkit" / "venv"
    run([plan.runtime.python, "-I", "-m", "venv", "--without-pip", "--symlinks", folder])
    return folder


def import_place(clone: Path, plan: RoundPlan, environment: Path | None) -> str:
    """Return where the target package resolves, relative to the clone.

    Raises:
        Refused: ``import-probe``: it resolves nowhere, or outside the clone.
        ConfinementUnavailable: the host cannot confine the probe.
    """
    target = plan.campaign.target_package or ""
    spec = run_spec_of(plan)
    own = str(CHECKOUT / environment.relative_to(clone) / "bin" / "python") if environment else "{python}"
    log = import_probe(
        target,
        spec,
        checkout=Checkout(clone),
        timeout_s=spec.benchmark.timeout_s,
        scratch=clone / ".roundkit" / "scratch" / "probe",
        python=own,
    )
    if not log.succeeded:
        raise _refusal(target, clone, log.tail.strip().rpartition("\n")[2] or f"it ended: {log.end_reason}")
    return found_places(log)[0].relative_to(CHECKOUT).as_posix()


def _refusal(target: str, clone: Path, what: str) -> Refused:
    return refuse(
        "import-probe",
        f"the target package {target!r} must be imported from the clone: {what}",
        place=str(clone),
        remedy="correct `target_package`, or PYTHONPATH in `environment`",
    )
