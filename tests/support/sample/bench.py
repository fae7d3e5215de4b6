"""The bench of a sample round: invented clock, devices and noise, and experiments whose verdicts are real."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from support.sample.plan import invented_commit

from roundkit.core.canonical import digest_bytes, digest_json
from roundkit.core.clock import format_utc
from roundkit.host.confine import Boundary, LimitRecord, MountRecord
from roundkit.models.experiment import DeviceReading, ExperimentRecord, Lease, SideIdentity
from roundkit.models.instruments import InstructionCount, ProcessCount
from roundkit.models.ledger import AaCheck
from roundkit.models.round_plan import RoundPlan
from roundkit.models.run_spec import RunSpec
from roundkit.models.trial import ConfinedRun, PlannedTrial, Role, Trial, TrialResources
from roundkit.rules.drift import aa_check
from roundkit.rules.identity import experiment_name
from roundkit.rules.remeasure import is_measured_again
from roundkit.rules.schedule import plan_schedule
from roundkit.rules.verdict import decide

BASE_MS = 12.0
SIGMA = 0.004

_BOUNDARY = Boundary(
    version="bubblewrap 0.11.0", uid=65534, dropped_from_root=True, network="none", seccomp=True,
    mounts=(MountRecord(source="/usr", at="/usr", mode="ro"),),
    limits=(LimitRecord(name="memory", value=float(1 << 30), scope="run", by="cgroup"),),
    cpus=(0,), env_names=("LC_ALL",),
)  # fmt: skip
_BOUNDARY_DIGEST = digest_json(_BOUNDARY.model_dump(mode="json"))


@dataclass
class SampleBench:
    """The invented clock, devices and noise of one round."""

    plan: RoundPlan
    spec: RunSpec
    secret: bytes
    noise: random.Random
    text: Mapping[str, str]
    rerun_gain: float | None = None
    free: dict[str, datetime] = field(default_factory=dict)
    records: list[ExperimentRecord] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)

    def say(self, time: datetime, kind: str, **fields: Any) -> None:
        self.events.append({"time": format_utc(time), "kind": kind, "fields": fields})


def measure_until_decided(bench: SampleBench, *arguments: Any) -> list[ExperimentRecord]:
    """Repeat an experiment for as long as the real rule asks for it."""
    ran: list[ExperimentRecord] = []
    while True:
        record = _run_experiment(bench, *arguments, attempt=len(ran) + 1)
        verdict = decide(record, bench.spec)
        if not is_measured_again(record, verdict, ran, bench.spec.gates):
            return [*ran, record]
        if record.purpose == "ticket":
            bench.say(record.ended_utc, "requeued", ticket=record.subject, reason=verdict.reason)
        ran.append(record)


def measure_when_free(
    bench: SampleBench,
    purpose: str,
    subject: str,
    lane: str | None,
    baseline: str,
    candidate: str,
    gain: float,
) -> ExperimentRecord:
    """Measure once every device is free, as close does."""
    ready = max(bench.free.values())
    return measure_until_decided(bench, purpose, subject, lane, baseline, candidate, gain, ready)[-1]


def measure_aa(bench: SampleBench, number: int, before: list[AaCheck]) -> AaCheck:
    incumbent = bench.plan.incumbent
    ready = max(bench.free.values())
    for devices in bench.free:
        bench.free[devices] = ready
    record = _run_experiment(bench, "aa", f"aa-{number}", None, incumbent, incumbent, 0.0, ready)
    for devices in bench.free:
        bench.free[devices] = record.ended_utc
    drift = bench.plan.campaign.test_plan.drift
    check = aa_check(record, decide(record, bench.spec), before, drift, resumes=False)
    told = {"z": check.z, "cusum": check.cusum, "passed": check.passed}
    bench.say(record.ended_utc, "aa", experiment=check.experiment, **told)
    return check


def _run_experiment(
    bench: SampleBench,
    purpose: str,
    subject: str,
    lane: str | None,
    baseline: str,
    candidate: str,
    gain: float,
    ready: datetime,
    broke: tuple[str, str] | None = None,
    attempt: int = 1,
) -> ExperimentRecord:
    plan, spec = bench.plan, bench.spec
    devices = min(plan.device_sets, key=lambda item: (bench.free[item.id], item.id))
    acquired = max(ready + timedelta(seconds=2), bench.free[devices.id] + timedelta(seconds=1))
    experiment_id = experiment_name(subject, attempt)
    schedule = plan_schedule(bench.secret, spec.round_digest, experiment_id, plan.gates.ab_ba_pairs)
    trials: list[Trial] = []
    now = acquired + timedelta(seconds=1)
    for planned in schedule:
        trials.append(_trial(bench, planned, gain, broke, now))
        now = trials[-1].ended_utc + timedelta(seconds=0.2)
        if trials[-1].problem:
            break
    released = now + timedelta(seconds=1)
    bench.free[devices.id] = released
    reading = DeviceReading(
        device=devices.devices[0], identity=f"core {devices.devices[0]}", readings={}, problem=None
    )
    record = ExperimentRecord(
        format="roundkit-experiment/1", experiment_id=experiment_id, round_id=plan.round_id,
        purpose=purpose, subject=subject, lane=lane, attempt=attempt, run_spec_sha256=spec.digest(),
        baseline=_side(baseline), candidate=_side(candidate), started_utc=acquired, ended_utc=released,
        lease=Lease(
            device_set=devices.id, devices=devices.devices, acquired_utc=acquired, released_utc=released,
            holder_pid=4242,
        ),
        machine="8-core x86-64", devices_before=(reading,), devices_after=(reading,), trials=tuple(trials),
        boundaries={_BOUNDARY_DIGEST: _BOUNDARY},
        outcome="candidate-broke" if broke else "complete", reason=broke[0] if broke else None,
        detail=bench.text.get("detail", broke[1]) if broke else None,
    )  # fmt: skip
    bench.records.append(record)
    bench.say(acquired, "experiment-started", experiment=experiment_id, purpose=purpose, subject=subject)
    if purpose not in {"aa", "ticket"}:
        bench.say(released, "experiment-finished", experiment=experiment_id, outcome=record.outcome)
    return record


def _trial(
    bench: SampleBench,
    planned: PlannedTrial,
    gain: float,
    broke: tuple[str, str] | None,
    started: datetime,
) -> Trial:
    candidate = planned.side == "candidate"
    problem = broke if candidate else None
    factor = 1 - gain if candidate else 1.0
    level = BASE_MS * factor if bench.plan.campaign.metric.direction == "lower" else BASE_MS / factor
    values = tuple(
        round(level * math.exp(bench.noise.gauss(0, SIGMA)), 6) for _ in range(bench.plan.gates.repetitions)
    )
    count = _count(values) if bench.spec.counting_tool is not None and not problem else None
    values = values if count is None else (float(count.total),)
    return Trial(
        planned=planned, started_utc=started, ended_utc=started + timedelta(seconds=1.5),
        metrics={} if problem else {"latency_ms": values, "errors": (0.0,)},
        value=None if problem else float(median(values)),
        problem=problem[0] if problem else None,
        detail=bench.text.get("detail", problem[1]) if problem else None,
        resources=TrialResources(wall_s=1.4, cpu_s=1.3, peak_memory_bytes=48 << 20, load_1min=0.2),
        executions=_runs(bench.spec, broke=problem is not None),
        validated=None if problem else True,
        counted=count,
    )  # fmt: skip


def _count(values: tuple[float, ...]) -> InstructionCount:
    """Let a parent and a child have executed a million instructions a millisecond."""
    parent, child = round(median(values) * 900_000), round(median(values) * 100_000)
    processes = (ProcessCount(pid=2, instructions=parent), ProcessCount(pid=3, instructions=child))
    return InstructionCount(
        tool="valgrind", version="Valgrind-3.19.0", total=parent + child, processes=processes
    )


def _side(commit: str) -> SideIdentity:
    files = digest_json(["files", commit])
    return SideIdentity(
        commit=commit,
        tree=invented_commit("tree", commit),
        files_sha256_before=files,
        files_sha256_after=files,
    )


def _runs(spec: RunSpec, *, broke: bool) -> dict[Role, ConfinedRun]:
    """Let every process end well, but the candidate's where it broke: that one by signal 11."""
    roles: tuple[Role, ...] = ("benchmark",) if spec.benchmark.single_process else ("driver", "worker")
    runs = {role: _run() for role in roles}
    if broke:
        died = {"exit_code": None, "signal": 11, "end_reason": "signal"}
        runs[roles[-1]] = runs[roles[-1]].model_copy(update=died)
    return runs


def _run() -> ConfinedRun:
    return ConfinedRun(
        exit_code=0, signal=None, end_reason="exited", wall_s=1.4, cpu_s=1.3, cpu_source="cgroup",
        peak_memory_bytes=48 << 20, stdout_tail="", stderr_tail="",
        stdout_sha256=digest_bytes(b""), stderr_sha256=digest_bytes(b""), stdout_bytes=0, stderr_bytes=0,
        boundary=_BOUNDARY_DIGEST,
    )  # fmt: skip
