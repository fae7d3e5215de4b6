"""One side of a round, built and on a leased device, for an owner to look at; the store is only read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from roundkit.core.errors import RoundkitError, refuse
from roundkit.core.git import Repository
from roundkit.core.globs import GlobSet
from roundkit.host.devices import Binding, platform_named
from roundkit.host.lease import default_lease_root
from roundkit.measure.boundary import TrialBoundary, TrialFiles, TrialFolders
from roundkit.measure.broke import DeviceBusy
from roundkit.measure.checkout import materialize
from roundkit.measure.experiment import lease_devices, qualify_devices, refuse_problem
from roundkit.measure.free_cores import free_cores
from roundkit.measure.materialized import Base, lay_checkout, overlay_missing
from roundkit.measure.stage import Stage
from roundkit.measure.trees import remove_tree
from roundkit.models.ledger import CommandLog, TicketRecord
from roundkit.models.measurement import MeasurementRequest, SideRef
from roundkit.models.round_plan import DeviceSet
from roundkit.models.trial import PlannedTrial, Side
from roundkit.rounds.building import build_checkout
from roundkit.rounds.layout import RoundFolder, read_plan
from roundkit.rounds.provisioning import provision_incumbent, recorded_provision
from roundkit.rounds.requests import Bench
from roundkit.rounds.serve import Report, open_bench
from roundkit.rules.schedule import plan_schedule
from roundkit.store import open_store

_NAME = "by-hand"


@dataclass(frozen=True)
class Stand:
    """Everything that one trial of a side needs, as an experiment of the round would have it.

    Attributes:
        bench: The round.
        commit: What was built.
        logs: How build, import probe and smoke ended.
        request: The experiment that this stands for; it is never recorded.
        planned: The trial.
        files: What the side's trials see.
        folder: Where the trial's private folders go.
        device_set: What is leased.
        binding: What reaches its devices.
    """

    bench: Bench
    commit: str
    logs: tuple[CommandLog, ...]
    request: MeasurementRequest
    planned: PlannedTrial
    files: TrialFiles
    folder: Path
    device_set: DeviceSet
    binding: Binding

    @property
    def boundary(self) -> TrialBoundary:
        """What the trial's processes are granted."""
        return TrialBoundary(
            self.bench.spec, self.planned, self.files, TrialFolders.at(self.folder), self.binding
        )


@contextmanager
def stand(folder: RoundFolder, *, side: Side, ticket: str | None, report: Report) -> Iterator[Stand]:
    """Build a side in a working folder of its own, lease a device set, and copy the side as a trial sees it.

    Args:
        folder: The round; a running serve is not disturbed.
        side: The incumbent is the baseline.
        ticket: The candidate, for that side.
        report: Takes one line for each step.

    Raises:
        Refused: ``unknown-ticket``, ``ticket-not-built``, ``device-busy``, ``provision-failed``,
            ``provision-changed``, or the plan was changed.
        RoundkitError: build, import probe or smoke fails, with the tail of its output.
    """
    bench = open_bench(folder)
    record = None if ticket is None else _ticket(folder, ticket)
    work = folder.trials / f"{_NAME}-{os.getpid()}"
    try:
        remove_tree(work)
        work.mkdir(parents=True)
        # Passable, not readable: a confined command reaches what it is given as a user of its own.
        work.chmod(0o711)
        bench = _with_provision(bench, work, report)
        built, logs = _build(bench, work, side, record, report)
        request = _request(bench, work, built, side, record)
        with _leased(request) as device_set:
            stage = Stage.prepare(request)
            with stage.fresh_copies(request) as sides:
                planned = next(
                    planned
                    for planned in request.schedule
                    if planned.side == side and planned.pair is not None
                )
                yield Stand(
                    bench=bench,
                    commit=built.commit,
                    logs=logs,
                    request=request,
                    planned=planned,
                    files=sides[side],
                    folder=stage.new_trial_folder(),
                    device_set=device_set,
                    binding=platform_named(device_set.platform).bind(device_set.devices),
                )
    finally:
        remove_tree(work)


def _ticket(folder: RoundFolder, name: str) -> TicketRecord:
    found: list[TicketRecord] = []
    if folder.database.exists():
        with open_store(folder.database, read_only=True) as store:
            names = {name, f"{read_plan(folder).round_id}-{name}"}
            found = [ticket for ticket in store.tickets.all() if ticket.ticket in names]
    if not found:
        raise refuse(
            "unknown-ticket",
            f"the round has no ticket {name!r}",
            place="--ticket",
            remedy="`roundkit status` lists them; `roundkit serve` takes in what was submitted",
        )
    if found[0].candidate_commit is None:
        why = found[0].reject_cause or found[0].state
        raise refuse(
            "ticket-not-built",
            f"ticket {name} has no commit: it is {why}",
            place="--ticket",
            remedy="serve lays accepted tickets on the incumbent; try again once it has come to this one",
        )
    return found[0]


def _with_provision(bench: Bench, work: Path, report: Report) -> Bench:
    """Take what serve has provisioned, else provision for this one trial."""
    if bench.plan.campaign.provision is None:
        return bench
    made = None
    if bench.folder.database.exists():
        with open_store(bench.folder.database, read_only=True) as store:
            made = recorded_provision(bench.folder, store)
    if made is None:
        report("provisioning on the incumbent, with the host's network")
        made, _ = provision_incumbent(bench, work / "provision")
    return replace(bench, provision=made)


def _build(
    bench: Bench, work: Path, side: Side, ticket: TicketRecord | None, report: Report
) -> tuple[SideRef, tuple[CommandLog, ...]]:
    plan, repository = bench.plan, bench.folder.repository
    commit = plan.incumbent if ticket is None or ticket.candidate_commit is None else ticket.candidate_commit
    pristine, checkout = work / "pristine", work / "checkout"
    materialize(repository, plan.incumbent, pristine, omit=None)
    omit = GlobSet(plan.campaign.hidden_paths)
    base = None
    if overlay_missing(work) is None:
        base = Base(work / "base", plan.incumbent)
        materialize(repository, plan.incumbent, base.folder, omit=omit)
    laid = lay_checkout(repository, commit, checkout, base=base, omit=omit)
    report(f"building the {side}, {commit}")
    built = build_checkout(
        plan.campaign,
        bench.spec,
        commit=commit,
        tree=Repository(repository).tree_id(commit),
        checkout=laid,
        pristine=pristine,
        provision=bench.provision,
        cpus=free_cores(plan.device_sets, pinned=plan.cpu_pinning),
    )
    if built.side is None:
        raise RoundkitError(f"the {side}'s {built.cause} fails:\n{built.detail}")
    return built.side, built.logs


def _request(
    bench: Bench, work: Path, built: SideRef, side: Side, ticket: TicketRecord | None
) -> MeasurementRequest:
    plan = bench.plan
    return MeasurementRequest(
        format="roundkit-measurement-request/1",
        experiment_id=_NAME,
        round_id=plan.round_id,
        purpose="aa" if ticket is None else "ticket",
        subject=f"{side} {_NAME}",
        lane=None if ticket is None else ticket.lane,
        attempt=1,
        run_spec=bench.spec,
        baseline=built,
        candidate=built,
        incumbent_built=str(work / "pristine"),
        provision=bench.provision,
        device_sets=plan.device_sets,
        schedule=plan_schedule(bench.secret, bench.spec.round_digest, _NAME, plan.gates.ab_ba_pairs),
        work_folder=str(work / "stage"),
    )


@contextmanager
def _leased(request: MeasurementRequest) -> Iterator[DeviceSet]:
    try:
        device_set, lease = lease_devices(request, default_lease_root())
    except DeviceBusy as busy:
        raise refuse(
            "device-busy",
            f"every device set is held: {', '.join(one.id for one in request.device_sets)}",
            place="device_sets",
            remedy="`roundkit leases` says who holds them; try again when one is free",
        ) from busy
    with lease:
        refuse_problem("device-unqualified", qualify_devices(device_set, ()))
        yield device_set
