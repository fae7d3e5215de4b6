"""The plan's ``provision`` command: the one with a network; what it makes is read-only after."""

from __future__ import annotations

from pathlib import Path

from roundkit.core.clock import Deadline
from roundkit.core.files import tree_digest
from roundkit.host.confine import Execution, Mount, Network, confined_execute
from roundkit.measure.boundary import (
    CHECKOUT,
    PROVISION,
    SCRATCH,
    expand,
    expand_environment,
    hash_seed,
    standing_mounts,
)
from roundkit.measure.broke import MeasurementBroke
from roundkit.measure.trees import copy_tree, remove_tree
from roundkit.models.campaign import Command
from roundkit.models.measurement import ProvisionRef
from roundkit.models.run_spec import RunSpec


def run_provision(
    command: Command, spec: RunSpec, *, checkout: Path, target: Path
) -> tuple[ProvisionRef | None, Execution]:
    """Run the command on a checkout of the incumbent and keep what it left in ``/round/provision``.

    The command sees the host's network and no other lane, candidate or hidden file. What it made is copied,
    so that every later command may read all of it, whatever modes it was written with.

    Args:
        command: The command and its time limit.
        spec: Interpreter, variables and limits.
        checkout: The incumbent without hidden files; the command may write there, and the caller removes it.
        target: The folder to make; missing unless an earlier run was killed. It is whole or absent.

    Returns:
        What was made, null where the command failed; and how the command ended.

    Raises:
        ConfinementUnavailable: the host cannot confine a command; nothing ran.
        MeasurementBroke: ``setup-failed``: the boundary could not be set up.
        OSError: a folder cannot be read or made.
    """
    making, copied, scratch = (
        target.with_name(f"{target.name}.{word}") for word in ("making", "copied", "scratch")
    )
    for folder in (target, making, copied, scratch):
        remove_tree(folder)
    making.mkdir(parents=True)
    scratch.mkdir(mode=0o700)
    seed = hash_seed(spec.round_digest, None)
    try:
        execution = confined_execute(
            expand(command.argv, spec.runtime, seed),
            cwd=CHECKOUT,
            writable=(
                Mount(checkout.resolve(), CHECKOUT),
                Mount(making.resolve(), PROVISION),
                Mount(scratch.resolve(), SCRATCH),
            ),
            readable=standing_mounts(spec.runtime),
            deadline=Deadline.after(command.timeout_s),
            env=expand_environment(spec, seed),
            limits=spec.limits,
            network=Network.host(),
        )
        if execution.end_reason == "setup-failed":
            raise MeasurementBroke("setup-failed", execution.detail or "the boundary could not be set up")
        if execution.end_reason != "exited" or execution.exit_code != 0:
            return None, execution
        copy_tree(making, copied)
        copied.rename(target)
    finally:
        for folder in (making, copied, scratch):
            remove_tree(folder)
    return ProvisionRef(path=str(target), sha256=provision_digest(target)), execution


def provision_digest(folder: Path) -> str:
    """Return the digest over everything below the folder."""
    return tree_digest(folder, skip=frozenset())


def check_provision(provision: ProvisionRef | None) -> None:
    """Check that what was provisioned still is what every earlier build and trial of the round saw.

    Raises:
        MeasurementBroke: ``provision-changed``.
        OSError: it cannot be read.
    """
    if provision is None:
        return
    folder = Path(provision.path)
    if not folder.is_dir() or provision_digest(folder) != provision.sha256:
        raise MeasurementBroke("provision-changed", f"{folder} is not what the provision command made")
