"""What is handed to a device pool: sides, schedule and looks of one experiment."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from roundkit.models.base import CommitId, Count, Digest, Identifier, Record
from roundkit.models.round_plan import DeviceSet
from roundkit.models.run_spec import RunSpec
from roundkit.models.trial import PlannedTrial

Purpose = Literal["ticket", "aa", "compose", "rerun", "fallback", "standalone", "compare"]


class SideRef(Record):
    """One side of an experiment.

    Attributes:
        commit: The commit that is measured.
        tree: Its tree id.
        built: Absolute path of the built checkout from which fresh copies are made.
        base: Absolute path of the checkout that the built one is a layer over; null for a plain one.
        built_sha256: Digest over that checkout's files.
    """

    commit: CommitId
    tree: CommitId
    built: str
    base: str | None = None
    built_sha256: Digest


class ProvisionRef(Record):
    """What the plan's ``provision`` command made, once for the whole round.

    Attributes:
        path: Absolute folder; mounted read-only in every build, smoke and trial.
        sha256: Digest over its files.
    """

    path: str
    sha256: Digest


class LookPlan(Record):
    """When an experiment is looked at before its last pair, and what ends it there.

    Attributes:
        looks: Numbers of pairs, rising; the last is the cap.
        boundaries: Evidence, in sigma, that ends the experiment at each look.
        statistic: The test behind it, where the plan fixes one.
        futility_power: Probability of crossing the last boundary below which it ends; null goes on.
        futility_optimism: Standard errors by which the effect seen so far is raised for that.
    """

    looks: Annotated[tuple[int, ...], Field(min_length=1)]
    boundaries: tuple[float, ...]
    statistic: Literal["t", "signed-rank", "each-order"] | None = None
    futility_power: float | None
    futility_optimism: float


class SessionNoise(Record):
    """Noise between sessions, as the round's A/A checks had it when an experiment began.

    Attributes:
        checks: How many A/A checks there were.
        variance: Of an estimate, beyond its own standard error, in squared log units.
    """

    checks: Count
    variance: float


class PlaceNoise(Record):
    """Noise between sessions where an experiment may come to run.

    Attributes:
        machine_sha256: Which machine, as records name it.
        device_set: Which of its device sets.
        noise: What that set's own A/A checks say.
    """

    machine_sha256: Digest | None
    device_set: Identifier
    noise: SessionNoise


class MeasurementRequest(Record):
    """One experiment to run. Pickles and serialises; a cluster engine takes the same request.

    Attributes:
        experiment_id: Unique within the round; a repeated experiment gets a new one.
        subject: Ticket, composition step or check that the experiment is for.
        run_spec: How its trials run.
        baseline: The side that is to be beaten.
        candidate: The side that wants to beat it.
        incumbent_built: Checkout that protected files are mounted from.
        provision: What the round's ``provision`` command made; null where the plan has none.
        device_sets: Any one of these may be used.
        schedule: Every trial in order.
        look_plan: When it may end early; null where it has every pair.
        session_noise: Noise between sessions of the whole round, for device sets that were not checked often
            enough; null where it is not known.
        place_noise: Of device sets that were; see :meth:`noise_at`.
        work_folder: Absolute folder for copies, scratch and results of this experiment.
    """

    format: Literal["roundkit-measurement-request/1"]
    experiment_id: Identifier
    round_id: Identifier
    purpose: Purpose
    subject: str
    lane: Identifier | None
    attempt: Count
    run_spec: RunSpec
    baseline: SideRef
    candidate: SideRef
    incumbent_built: str
    provision: ProvisionRef | None = None
    device_sets: Annotated[tuple[DeviceSet, ...], Field(min_length=1)]
    schedule: tuple[PlannedTrial, ...]
    look_plan: LookPlan | None = None
    session_noise: SessionNoise | None = None
    place_noise: tuple[PlaceNoise, ...] = ()
    work_folder: str

    def noise_at(self, machine_sha256: str | None, device_set: str) -> SessionNoise | None:
        """Return the noise between sessions that evidence from a device set is weakened by."""
        for one in self.place_noise:
            if (one.machine_sha256, one.device_set) == (machine_sha256, device_set):
                return one.noise
        return self.session_noise
