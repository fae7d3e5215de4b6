"""What travels between a coordinator and the workers of a cluster."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from roundkit.models.base import Count, Digest, Identifier, Record, UtcTime
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.measurement import MeasurementRequest
from roundkit.models.round_plan import DeviceSet

BatchSystem = Literal["slurm", "pbs", "lsf", "sge"]
ReplyKind = Literal["record", "busy", "missing", "refused"]


class TreeRef(Record):
    """A tree of files by its content.

    Attributes:
        sha256: Digest over its files, as records name a checkout.
        bundle_sha256: Digest of the bundle's bytes that the tree is made from.
        bundle_bytes: Length of the bundle.
        over: The bundle of the tree that this one says the difference to; null where it is whole.
    """

    sha256: Digest
    bundle_sha256: Digest
    bundle_bytes: Count
    over: Digest | None


class RemoteRequest(Record):
    """One experiment for a worker. Places of the coordinator's disk are left out of the request within.

    Attributes:
        run: Identity of this run: the same whenever the same experiment is handed over again.
        store_sha256: Which store asks: that of a copied round directory is another one.
        plan_digest: The frozen plan that it belongs to.
        device_class: Class of the device set that is to measure; null where the plan names none.
        sent_utc: When it was sent, by the coordinator's clock. The record's times are by that clock too.
        clock_offset_s: What is added to the worker's clock to have the coordinator's, as far as is known.
        deadline_utc: When the coordinator takes the worker for lost. Time in which somebody else has the
            devices does not count.
        request: Sides, schedule with coins and seeds, run specification, and the one device set that was
            chosen.
        incumbent: The untouched incumbent that protected files are mounted from.
        base: The tree that both sides are layers over; null where they are folders of their own.
        baseline: The side that is to be beaten.
        candidate: The other side; its bundle comes with the request.
        provision: What the plan's ``provision`` command made; null where the plan has none.
    """

    format: Literal["roundkit-cluster-request/1"]
    run: Digest
    store_sha256: Digest
    plan_digest: Digest
    device_class: Identifier | None
    sent_utc: UtcTime
    clock_offset_s: float
    deadline_utc: UtcTime
    request: MeasurementRequest
    incumbent: TreeRef
    base: TreeRef | None
    baseline: TreeRef
    candidate: TreeRef
    provision: TreeRef | None

    @property
    def kept(self) -> tuple[TreeRef, ...]:
        """The trees that a worker keeps, each after the one that it lies over."""
        kept = (self.incumbent, self.base, self.baseline, self.provision)
        return tuple(tree for tree in kept if tree is not None)


class RemoteReply(Record):
    """What a worker answers to a request.

    Attributes:
        run: The run that was asked for.
        kind: ``record``: it was measured, or broke, on record. ``busy``: somebody outside the cluster has the
            device. ``missing``: trees have to be sent first. ``refused``: it was not even begun.
        record: The experiment.
        missing: Bundles that the worker does not have.
        reason: Stable code of a refusal.
        detail: What was found.
    """

    format: Literal["roundkit-cluster-reply/1"]
    run: Digest
    kind: ReplyKind
    record: ExperimentRecord | None = None
    missing: tuple[Digest, ...] = ()
    reason: str | None = None
    detail: str | None = None


class TrialNote(Record):
    """One finished trial, told while its experiment runs; shown and never counted.

    Attributes:
        done: Trials that are done.
        planned: Trials of the experiment.
        trial: The last one, in words.
    """

    run: Digest
    done: Count
    planned: Count
    trial: str


class FinishedRun(Record):
    """A run whose record still lies at the worker.

    Attributes:
        store_sha256: Which store asked for it.
    """

    run: Digest
    store_sha256: Digest
    plan_digest: Digest
    experiment_id: Identifier


class OfferedSet(Record):
    """One device set of a worker, as it is now.

    Attributes:
        device_set: What it is.
        held: Whether somebody measures on it.
        run: The run that the worker is at on it; null where it is at none.
        waits: Whether that run waits for somebody else to let go of the devices.
        problem: Why nothing may be measured on it; null when it qualifies.
    """

    device_set: DeviceSet
    held: bool
    run: Digest | None = None
    waits: bool = False
    problem: str | None


class WorkerState(Record):
    """What a worker says of itself with every heartbeat.

    Attributes:
        version: Its roundkit.
        machine: Its hardware in words.
        machine_sha256: Which machine it is, by a digest over its hardware's own identity; null where the
            hardware has none to read.
        sets: Its device sets.
        finished: Runs that wait to be collected.
    """

    format: Literal["roundkit-worker/1"]
    version: str
    machine: str
    machine_sha256: Digest | None
    sets: tuple[OfferedSet, ...]
    finished: tuple[FinishedRun, ...] = ()


class WorkerSets(Record):
    """The file that ``roundkit worker --device-sets`` reads: what this machine offers.

    Attributes:
        device_sets: The sets, named as round plans name them.
    """

    format: Literal["roundkit-device-sets/1"]
    device_sets: tuple[DeviceSet, ...] = Field(min_length=1)


class SlurmWorkers(Record):
    """How workers are submitted as batch jobs, as their owner writes it.

    Attributes:
        system: To which batch system.
        jobs: How many workers, one a job.
        device_sets: The nodes' file of device sets, as they see it.
        home: Folder for a worker's trees and records on its node; may name variables of the node's shell.
        roundkit: The command on the nodes; null for this one's own interpreter, on a shared file system.
        options: What ``dask_jobqueue`` takes for it: ``cores``, ``memory``, ``queue``, ``walltime``, …
    """

    format: Literal["roundkit-slurm/1"]
    system: BatchSystem = "slurm"
    jobs: Annotated[int, Field(ge=1)]
    device_sets: str
    home: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_./${}-]+$")]
    roundkit: str | None = None
    options: dict[str, Any]
