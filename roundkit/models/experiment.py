"""One experiment as it was run: lease, devices, sides and trials. Nothing in it is a decision."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from roundkit.host.confine import Boundary
from roundkit.models.base import CommitId, Count, Digest, Identifier, Record, UtcTime, is_missing
from roundkit.models.measurement import LookPlan, Purpose, SessionNoise
from roundkit.models.trial import Trial

CheckoutKind = Literal["plain", "overlay"]
"""Whether a checkout is a folder of its own or a layer over one that it shares; both give the same files."""
Outcome = Literal["complete", "candidate-broke", "baseline-broke", "infrastructure"]


class Lease(Record):
    """One interval in which an experiment held a device set."""

    device_set: Identifier
    devices: tuple[str, ...]
    acquired_utc: UtcTime
    released_utc: UtcTime
    holder_pid: int


class DeviceReading(Record):
    """What a device said before or after an experiment; ``problem`` is null when it qualified."""

    device: str
    identity: str
    readings: dict[str, float | str | None]
    problem: str | None


class SideIdentity(Record):
    """What one side was: commit, tree, and the digest of its built files before and after the experiment.

    A digest is null where the experiment ended, by its ``reason``, before it was taken. ``checkout`` says how
    its files were laid on the disk, and is not written where it is ``plain``, as in all older evidence.
    """

    commit: CommitId
    tree: CommitId
    checkout: CheckoutKind = Field(default="plain", exclude_if=lambda kind: kind == "plain")
    files_sha256_before: Digest | None
    files_sha256_after: Digest | None


class ExperimentRecord(Record):
    """One experiment as it was run. Nothing in it is a decision.

    Attributes:
        outcome: ``complete``, or which side broke it.
        reason: Stable code of what broke; null when complete.
        boundaries: Every boundary that held around a trial, by its digest. Trials alike share one: the
            coordinator's own folders are written ``{work}``, ``{incumbent}`` and ``{roundkit}``, numbers of
            trials ``N``.
        machine: Name of the machine's hardware (processor, cores), without host name.
        machine_sha256: Which machine it was, by a digest over the hardware's own identity; null where the
            hardware tells none.
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
