"""One experiment as it was run: lease, devices, sides and trials. Nothing in it is a decision."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from roundkit.host.confine import Boundary
from roundkit.models.base import CommitId, Count, Digest, Identifier, Record, UtcTime, is_missing
from roundkit.models.clocks import ClockPair
from roundkit.models.measurement import LookPlan, Purpose, SessionNoise
from roundkit.models.trial import Trial

CheckoutKind = Literal["plain", "overlay"]
"""Whether a checkout is a folder of its own or a layer over one that it shares; both give the same files."""
Outcome = Literal["complete", "candidate-broke", "baseline-broke", "infrastructure"]


class Lease(Record):
    """One interval in which an experiment held a device set.

    Attributes:
        devices: Its devices.
        acquired_utc: Start of the lease.
        released_utc: End of the lease.
        holder_pid: Process that held it.
    """

    device_set: Identifier
    devices: tuple[str, ...]
    acquired_utc: UtcTime
    released_utc: UtcTime
    holder_pid: int


class DeviceReading(Record):
    """What a device said before or after an experiment; ``problem`` is null when it qualified.

    Attributes:
        identity: What the device says that it is.
        readings: Its readings, each with its unit in its name; null where it gives none.
    """

    device: str
    identity: str
    readings: dict[str, float | str | None]
    problem: str | None


class SideIdentity(Record):
    """What one side was: commit, tree, and the digest of its built files before and after the experiment.

    A digest is null where the experiment ended, by its ``reason``, before it was taken. ``checkout`` says how
    its files were laid on the disk, and is not written where it is ``plain``, as in all older evidence.

    Attributes:
        checkout: How its files were laid on the disk.
        files_sha256_before: Digest of its built files before the experiment; null where not taken.
        files_sha256_after: The same after it.
    """

    commit: CommitId
    tree: CommitId
    checkout: CheckoutKind = Field(default="plain", exclude_if=lambda kind: kind == "plain")
    files_sha256_before: Digest | None
    files_sha256_after: Digest | None


class ExperimentRecord(Record):
    """One experiment as it was run. Nothing in it is a decision.

    Attributes:
        subject: Ticket or step that it is for.
        baseline: The side that is to be beaten.
        candidate: The other side.
        ended_clock: Its end on both of the host's clocks; missing in older records, and where another machine
            measured, whose clock is not the coordinator's.
        lease: Null where no device was leased.
        machine: Name of the machine's hardware (processor, cores), without host name.
        machine_sha256: Which machine it was, by a digest over the hardware's own identity; null where the
            hardware tells none.
        devices_before: Readings before the first trial.
        devices_after: Readings after the last.
        trials: Every trial, warm-ups included, in order of time.
        boundaries: Every boundary that held around a trial, by its digest. Trials alike share one: the
            coordinator's own folders are written ``{work}``, ``{incumbent}`` and ``{roundkit}``, numbers of
            trials ``N``.
        look_plan: When it may end early; null: it may not.
        session_noise: What estimates vary by between sessions; null where not known.
        outcome: ``complete``, or which side broke it.
        reason: Stable code of what broke; null when complete.
    """

    format: Literal["roundkit-experiment/1"]
    experiment_id: Identifier
    round_id: Identifier
    purpose: Purpose
    subject: str
    lane: Identifier | None
    attempt: Count
    run_spec_sha256: Digest
    baseline: SideIdentity
    candidate: SideIdentity
    started_utc: UtcTime
    ended_utc: UtcTime
    ended_clock: ClockPair | None = Field(default=None, exclude_if=is_missing)
    lease: Lease | None
    machine: str
    machine_sha256: Digest | None = Field(default=None, exclude_if=is_missing)
    devices_before: tuple[DeviceReading, ...]
    devices_after: tuple[DeviceReading, ...]
    trials: tuple[Trial, ...]
    boundaries: dict[Digest, Boundary]
    look_plan: LookPlan | None = None
    session_noise: SessionNoise | None = None
    outcome: Outcome
    reason: str | None
    detail: str | None
