"""What builds need from outside: provisioned once a round, and the same for everybody after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from roundkit.core.errors import RoundkitError, refuse
from roundkit.core.globs import GlobSet
from roundkit.host.confine import Execution
from roundkit.measure.broke import MeasurementBroke
from roundkit.measure.checkout import materialize
from roundkit.measure.provision import check_provision, run_provision
from roundkit.measure.trees import remove_tree
from roundkit.models.measurement import ProvisionRef
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.requests import Bench
from roundkit.store import RoundStore

_EVENT = "provisioned"


def provisioned(bench: Bench, store: RoundStore, report: Callable[[str], None]) -> Bench:
    """Return the bench with what the plan's ``provision`` command made; the first caller runs it.

    Args:
        bench: The round.
        store: Its store; the digest is recorded there, as an event.
        report: Takes one line before the command runs and one after it.

    Raises:
        Refused: ``provision-failed``, or ``provision-changed``: it is not what the round began with.
    """
    if bench.plan.campaign.provision is None:
        return bench
    target = bench.folder.provision
    made = recorded_provision(bench.folder, store)
    if made is None:
        report("provisioning on the incumbent, with the host's network")
        made, execution = provision_incumbent(bench, target)
        with store.transaction():
            store.events.add(
                _EVENT, sha256=made.sha256, network=execution.boundary.network, wall_s=execution.wall_s
            )
        report(f"provisioned: {made.sha256}")
    return replace(bench, provision=made)


def recorded_provision(folder: RoundFolder, store: RoundStore) -> ProvisionRef | None:
    """Return what the round has provisioned already, checked; null when nothing was.

    Raises:
        Refused: ``provision-changed``.
    """
    digests = [str(event.fields["sha256"]) for event in store.events.all() if event.kind == _EVENT]
    if not digests:
        return None
    made = ProvisionRef(path=str(folder.provision), sha256=digests[-1])
    try:
        check_provision(made)
    except (MeasurementBroke, OSError) as error:
        raise refuse(
            "provision-changed",
            f"what the round provisioned is gone or was changed: {error}",
            place=str(folder.provision),
            remedy="restore the folder, or prepare a new round: all tickets are measured with the same",
        ) from error
    return made


def provision_incumbent(bench: Bench, target: Path) -> tuple[ProvisionRef, Execution]:
    """Run the plan's ``provision`` command on a fresh checkout of the incumbent.

    Args:
        bench: The round; its plan has the command.
        target: Where what it makes goes.

    Raises:
        Refused: ``provision-failed``, with the tail of the command's output.
        RoundkitError: the plan has no such command.
    """
    command = bench.plan.campaign.provision
    if command is None:
        raise RoundkitError("the plan has no provision command")
    checkout = target.with_name(f"{target.name}.checkout")
    target.parent.mkdir(exist_ok=True)
    remove_tree(checkout)
    try:
        omit = GlobSet(bench.plan.campaign.hidden_paths)
        materialize(bench.folder.repository, bench.plan.incumbent, checkout, omit=omit)
        made, execution = run_provision(command, bench.spec, checkout=checkout, target=target)
    finally:
        remove_tree(checkout)
    if made is None:
        tail = f"{execution.stdout_tail or ''}{execution.stderr_tail}".strip()
        ended = (
            f"exit code {execution.exit_code}" if execution.end_reason == "exited" else execution.end_reason
        )
        raise refuse(
            "provision-failed",
            f"the provision command ended with {ended}: {tail or execution.detail}",
            place=str(bench.folder.plan_file),
            remedy="run it again when its sources answer; a wrong command needs a new round",
        )
    return made, execution
