"""What a checkout goes through before any device is taken: build, import probe, smoke; all confined."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Literal

from roundkit.core.clock import Deadline
from roundkit.core.errors import Refused
from roundkit.core.globs import GlobSet
from roundkit.host.confine import CpuSet, Execution, Mount, Overlay, confined_execute
from roundkit.measure.boundary import (
    CHECKOUT,
    SCRATCH,
    expand,
    expand_environment,
    hash_seed,
    provision_mounts,
    standing_mounts,
)
from roundkit.measure.broke import MeasurementBroke
from roundkit.measure.materialized import Checkout
from roundkit.measure.protect import plan_protection
from roundkit.measure.trees import remove_tree
from roundkit.models.campaign import Command
from roundkit.models.ledger import CommandLog
from roundkit.models.measurement import ProvisionRef
from roundkit.models.run_spec import RunSpec

Step = Literal["build", "import-path", "smoke"]

# Finds a package the way in which the harness's worker does: behind the standard library, which nobody
# may shadow, but before anything installed. A single-process benchmark has the checkout first. A target
# that is a path needs only to be there, and to stay inside. What was found is the first line.
_FIND_TARGET = """
import importlib.util, json, os, sys
target, checkout, first = sys.argv[1], os.getcwd(), sys.argv[2] == "first"
library = os.path.dirname(os.__file__)
behind = [n for n, entry in enumerate(sys.path) if entry in (library, os.path.join(library, "lib-dynload"))]
sys.path.insert(0 if first else max(behind, default=len(sys.path) - 1) + 1, checkout)
def find():
    if "/" in target or target.endswith(".py"):
        return [target] if os.path.exists(target) else []
    try:
        spec = importlib.util.find_spec(target)
    except ImportError as error:
        print(error, file=sys.stderr)
        spec = None
    return [] if spec is None else [*(spec.submodule_search_locations or ()), *filter(None, [spec.origin])]
places = [os.path.realpath(place) for place in find()]
inside = [place for place in places if place.startswith(checkout + os.sep)]
print(json.dumps(places))
print(f"{target} is found at {', '.join(places) or 'no place'}")
sys.exit(0 if places and len(inside) == len(places) else 1)
"""


def run_command_confined(
    step: Step,
    command: Command,
    spec: RunSpec,
    *,
    checkout: Checkout,
    incumbent_built: Path,
    scratch: Path,
    provision: ProvisionRef | None = None,
    cpus: CpuSet | None = None,
) -> CommandLog:
    """Run a build or smoke command in a checkout, with the incumbent's protected files over it.

    The checkout is writable, so that a build can leave its output there; what is protected is not.

    Args:
        step: What the command is, for the log.
        command: The command and its time limit.
        spec: Interpreter, variables, limits and protected paths.
        checkout: The checkout, which the caller owns and in which nothing else runs.
        incumbent_built: Where protected files come from; may be the checkout itself.
        scratch: A folder for the command's own files; emptied before, removed afterwards.
        provision: What the round's ``provision`` command made; read-only here.
        cpus: Cores that it is bound to; None for any.

    Returns:
        How it ended. A checkout that cannot take the protected files over it, since something else lies
        in their place, is logged with end reason ``refused``.

    Raises:
        ConfinementUnavailable: the host cannot confine a command; nothing ran.
        MeasurementBroke: ``setup-failed``: the boundary could not be set up.
        Refused: the plan asks for something that is never granted, or is not there.
        OSError: a folder cannot be read or made.
    """
    protected, hidden = GlobSet(spec.protected_paths), GlobSet(spec.hidden_paths)
    protection = plan_protection(incumbent_built.resolve(), protected, hidden)
    return _run(
        step,
        command.argv,
        command.timeout_s,
        spec,
        scratch=scratch,
        writable=checkout.mounts(CHECKOUT),
        overlay=checkout.overlay(CHECKOUT, writable=True),
        cpus=cpus,
        readable=(*protection.mounts(CHECKOUT), *provision_mounts(provision)),
    )


def import_probe(
    target: str,
    spec: RunSpec,
    *,
    checkout: Checkout,
    timeout_s: float,
    scratch: Path,
    provision: ProvisionRef | None = None,
    python: str = "{python}",
    cpus: CpuSet | None = None,
) -> CommandLog:
    """Check that the target package resolves inside the checkout, as the benchmark will import it.

    Else every comparison would silently be one of an installed copy with itself.

    Args:
        target: Name of the package or module, or a path in the checkout.
        spec: Interpreter, variables and limits.
        checkout: The built checkout.
        timeout_s: Time limit in seconds.
        scratch: As for :func:`run_command_confined`.
        provision: As for :func:`run_command_confined`.
        python: Another interpreter than the plan's.
        cpus: As for :func:`run_command_confined`.

    Returns:
        The log; exit code 0 where the package resolves inside. :func:`found_places` reads where.

    Raises:
        ConfinementUnavailable, MeasurementBroke, Refused: as for :func:`run_command_confined`.
    """
    position = "first" if spec.benchmark.single_process else "behind"
    return _run(
        "import-path",
        (python, "-s", "-P", "-c", _FIND_TARGET, target, position),
        timeout_s,
        spec,
        scratch=scratch,
        writable=(),
        readable=(*checkout.mounts(CHECKOUT), *provision_mounts(provision)),
        overlay=checkout.overlay(CHECKOUT, writable=False),
        cpus=cpus,
    )


def found_places(log: CommandLog) -> tuple[PurePosixPath, ...]:
    """Return where an import probe found its target, as paths inside; none if it did not get that far."""
    try:
        places = json.loads(log.tail.partition("\n")[0])
    except ValueError:
        return ()
    return tuple(map(PurePosixPath, places)) if isinstance(places, list) else ()


def _run(
    step: Step,
    argv: Sequence[str],
    timeout_s: float,
    spec: RunSpec,
    *,
    scratch: Path,
    writable: Sequence[Mount],
    readable: Sequence[Mount],
    overlay: Overlay | None,
    cpus: CpuSet | None,
) -> CommandLog:
    seed = hash_seed(spec.round_digest, None)
    remove_tree(scratch)
    scratch.mkdir(parents=True, mode=0o700)
    try:
        execution = confined_execute(
            expand(argv, spec.runtime, seed),
            cwd=CHECKOUT,
            writable=(*writable, Mount(scratch.resolve(), SCRATCH)),
            readable=(*readable, *standing_mounts(spec.runtime)),
            overlay=overlay,
            deadline=Deadline.after(timeout_s),
            env=expand_environment(spec, seed),
            limits=spec.limits,
            cpus=cpus,
        )
    except Refused as error:
        if error.refusals[0].code != "mount-point":
            raise
        return CommandLog(step=step, exit_code=None, end_reason="refused", wall_s=0.0, tail=str(error))
    finally:
        remove_tree(scratch)
    if execution.end_reason == "setup-failed":
        raise MeasurementBroke("setup-failed", execution.detail or "the boundary could not be set up")
    return _log(step, execution)


def _log(step: Step, execution: Execution) -> CommandLog:
    tail = f"{execution.stdout_tail or ''}{execution.stderr_tail}"
    if execution.detail:
        tail = f"{tail}\n{execution.detail}" if tail else execution.detail
    return CommandLog(
        step=step,
        exit_code=execution.exit_code,
        end_reason=execution.end_reason,
        wall_s=execution.wall_s or 0.0,
        tail=tail,
    )
