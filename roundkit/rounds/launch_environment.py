"""A lane's private environment, and the proof that the target package is the clone's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from roundkit.core.clock import Deadline
from roundkit.core.errors import Refused, refuse
from roundkit.core.process import run
from roundkit.host.confine import Execution, Mount, confined_execute
from roundkit.measure.boundary import CHECKOUT, expand_environment, standing_mounts
from roundkit.models.round_plan import RoundPlan
from roundkit.rules.run_spec import run_spec_of

# What was found is written before anything of the package runs.
_PROBE = """
import importlib.util, json, os, sys
name = sys.argv[1]
sys.path.insert(0, os.getcwd())
spec = importlib.util.find_spec(name.partition(".")[0])
places = [] if spec is None else list(spec.submodule_search_locations or [spec.origin])
print(json.dumps([os.path.realpath(place) for place in places]))
"""


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
    if "/" in target or target.endswith(".py"):
        found = (clone / target).resolve()
        places = (
            [str(CHECKOUT / found.relative_to(clone))]
            if found.exists() and found.is_relative_to(clone)
            else []
        )
    else:
        places = _find(clone, plan, environment, target)
    inside = [Path(place) for place in places if Path(place).is_relative_to(CHECKOUT)]
    if not places or len(inside) != len(places):
        raise _refusal(target, clone, f"resolves to {', '.join(places) or 'nothing'}")
    return inside[0].relative_to(CHECKOUT).as_posix()


def _find(clone: Path, plan: RoundPlan, environment: Path | None, target: str) -> list[str]:
    spec = run_spec_of(plan)
    own = CHECKOUT / environment.relative_to(clone) / "bin" / "python" if environment else None
    done = confined_execute(
        [str(own or plan.runtime.python), "-c", _PROBE, target],
        cwd=CHECKOUT,
        writable=(),
        readable=[Mount(clone, CHECKOUT), *standing_mounts(plan.runtime)],
        deadline=Deadline.after(spec.benchmark.timeout_s),
        env=expand_environment(spec, seed=0),
        limits=spec.limits,
    )
    places = _first_line(done)
    if done.exit_code != 0 or not isinstance(places, list):
        raise _refusal(target, clone, f"cannot be looked for ({done.end_reason}): {done.stderr_tail.strip()}")
    return [str(place) for place in places]


def _first_line(done: Execution) -> Any:
    try:
        return json.loads((done.stdout_tail or "").partition("\n")[0])
    except ValueError:
        return None


def _refusal(target: str, clone: Path, what: str) -> Refused:
    return refuse(
        "import-probe",
        f"the target package {target!r} {what}",
        place=str(clone),
        remedy="it must be imported from the clone; correct `target_package` or PYTHONPATH in `environment`",
    )
