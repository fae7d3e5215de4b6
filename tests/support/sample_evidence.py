"""A small, complete, synthetic round: numbers from a seeded generator, decisions from the real rules.

Only the times, commits and samples are invented. Whatever a rule decides (schedule, verdict, selection,
order, ratio, names, digests) is decided here by that rule, so that an audit of the exported folder passes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

from roundkit import __version__
from roundkit.core.canonical import digest_bytes, digest_json
from roundkit.core.clock import format_utc
from roundkit.evidence import export_round
from roundkit.host.confine import Boundary, LimitRecord, Limits, MountRecord
from roundkit.models.attempts import AttemptRecord, Cost
from roundkit.models.campaign import (
    Benchmark,
    CampaignBudget,
    CampaignPlan,
    Direction,
    Drift,
    GuardMetric,
    IntakeLimits,
    Metric,
    RepositoryRef,
    SearchPlanEntry,
    SearchState,
    TestPlan,
)
from roundkit.models.evidence import SecretReveal
from roundkit.models.experiment import DeviceReading, ExperimentRecord, Lease, SideIdentity
from roundkit.models.instruments import InstructionCount, ProcessCount
from roundkit.models.lane import Manifest, ManifestEntry
from roundkit.models.lane_agent import LaneAgent
from roundkit.models.ledger import (
    AaCheck,
    CommandLog,
    CompositionStep,
    RejectedSubmission,
    RerunRecord,
    RoundLedger,
    TicketRecord,
)
from roundkit.models.round_plan import (
    CompositionPolicy,
    DeviceSet,
    FrozenLane,
    FrozenRuntime,
    Gates,
    LaneBudget,
    RoundPlan,
)
from roundkit.models.run_spec import RunSpec
from roundkit.models.trial import ConfinedRun, Role, Trial, TrialResources
from roundkit.models.verdict import VerdictRecord
from roundkit.rules.attempts import account, next_binding
from roundkit.rules.drift import aa_check
from roundkit.rules.identity import experiment_name, ticket_key, ticket_name
from roundkit.rules.outcome import STATEMENT, ending_of, lane_records
from roundkit.rules.ratio import BY_CONSTRUCTION, interaction_ratio
from roundkit.rules.remeasure import is_measured_again
from roundkit.rules.run_spec import run_spec_of
from roundkit.rules.schedule import plan_schedule
from roundkit.rules.selection import composition_order, select_tickets
from roundkit.rules.verdict import decide

EPOCH = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
BASE_MS = 12.0
SIGMA = 0.004


@dataclass(frozen=True)
class Submission:
    """One submission of a scripted lane: its true gain, or how it ends without one."""

    gain: float = 0.0
    path: str | None = None
    reject: tuple[str, str] | None = None
    broke: tuple[str, str] | None = None


@dataclass(frozen=True)
class Lane:
    """One scripted lane: what it submits, and the lanes whose gain swallows its own."""

    id: str
    submissions: tuple[Submission, ...]
    overlaps: frozenset[str] = frozenset()
    hypothesis: str = "Doing less work takes less time."
    plane: str = "algorithm"


STANDARD_LANES = (
    Lane("L1", (Submission(0.04), Submission(0.08)), hypothesis="One compiled expression beats a loop."),
    Lane(
        "L2",
        (Submission(0.12),),
        hypothesis="An index that fits the cache is read faster.",
        plane="memory-layout",
    ),
    Lane("L3", (Submission(0.06),), overlaps=frozenset({"L2"}), hypothesis="Remembering beats asking again."),
    Lane(
        "L4",
        (
            Submission(0.0),
            Submission(-0.05),
            Submission(path="bench/driver.py", reject=("protected-path", "'bench/driver.py' is protected")),
            Submission(reject=("build", "SyntaxError: '(' was never closed")),
            Submission(broke=("candidate-crashed", "the worker was ended by signal 11")),
        ),
        hypothesis="Joined once, a page copies less.",
        plane="build",
    ),
)
NO_GAIN_LANES = (
    Lane("L1", (Submission(0.0),)),
    Lane("L2", (Submission(-0.06),)),
)


@dataclass
class SampleRound:
    """Everything that an export takes."""

    plan: RoundPlan
    run_spec: RunSpec
    secret: bytes
    ledger: RoundLedger
    experiments: list[ExperimentRecord]
    blobs: dict[str, bytes]
    events: list[dict[str, Any]]


@dataclass
class _Bench:
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


def sample_round(
    lanes: tuple[Lane, ...] = STANDARD_LANES,
    *,
    round_id: str = "r01",
    campaign_id: str = "demo",
    seed: int = 1,
    incumbent: str | None = None,
    harness: str = "command",
    provenance: str = "scripted",
    text: Mapping[str, str] | None = None,
    opened: datetime = EPOCH,
    forgeable: bool = False,
    fresh_standalone: bool = False,
    rerun_gain: float | None = None,
    direction: Direction = "lower",
    counted: bool = False,
) -> SampleRound:
    """Run the scripted lanes through the rules.

    Args:
        lanes: What each lane submits.
        round_id: Name of the round.
        campaign_id: Name of the campaign.
        seed: Seed of the noise, and of the coordinator's secret.
        incumbent: I0; invented from the round's name when not given.
        harness: Harness that the plan names.
        provenance: What the tickets claim to come from.
        text: Untrusted text by field (``hypothesis``, ``detail``, ``path``, ``entry``, ``tail``), planted
            in place of the harmless one.
        opened: When the round was frozen.
        forgeable: Whether the benchmark is one process.
        fresh_standalone: Whether the plan measures composed lanes alone once more.
        rerun_gain: True gain that the final rerun finds; what the steps add up to when not given.
        direction: Which way of the metric is better.
        counted: Whether instructions decide, counted by valgrind.
    """
    secret = digest_bytes(f"secret {round_id} {seed}".encode()).encode()[:32]
    plan = _plan(
        lanes, round_id, campaign_id, incumbent or _commit("incumbent", round_id), harness, secret,
        text or {}, opened, forgeable, fresh_standalone, direction, counted,
    )  # fmt: skip
    bench = _Bench(plan, run_spec_of(plan), secret, random.Random(seed), text or {}, rerun_gain)
    for devices in plan.device_sets:
        bench.free[devices.id] = opened + timedelta(minutes=2)
    aa = [_aa(bench, 1, [])]
    tickets, blobs = _tickets(bench, lanes, provenance, aa)
    steps, rerun = _close(bench, lanes, tickets)
    attempts = _attempts(bench, provenance)
    ending = ending_of(rerun)
    accepted = ending.accepted
    advanced = accepted is not None
    closed = max(bench.free.values()) + timedelta(minutes=1)
    bench.say(closed, "round-closed", advanced=advanced)
    ledger = RoundLedger(
        format="roundkit-round-ledger/1", round_id=round_id, round_digest=plan.digest(),
        campaign_id=campaign_id, incumbent=plan.incumbent,
        head=accepted.commit if accepted else plan.incumbent,
        head_tree=accepted.tree if accepted else plan.incumbent_tree, advanced=advanced,
        opened_utc=opened, closed_utc=closed,
        lanes=lane_records(plan, tickets, _selected(plan, tickets), steps, ending, attempts),
        attempts=tuple(attempts),
        tickets=tuple(tickets),
        rejected_submissions=(
            RejectedSubmission(
                lane=lanes[-1].id, entry=bench.text.get("entry", "not-a-digest"), cause="malformed",
                detail=bench.text.get("detail", "manifest.json: not strict JSON"),
                intake_utc=opened + timedelta(minutes=9),
            ),
        ),
        aa_checks=tuple(aa), order=tuple(step.lane for step in steps), composition=tuple(steps),
        rerun=tuple(rerun), gain=accepted.verdict.gain if accepted else None, statement=STATEMENT,
    )  # fmt: skip
    bench.events.sort(key=lambda event: event["time"])
    return SampleRound(plan, bench.spec, secret, ledger, bench.records, blobs, bench.events)


def export_sample(target: Path, sample: SampleRound, scratch: Path, *, previous: str | None = None) -> Path:
    """Export a sample round to ``target`` (blobs are staged in ``scratch``) and return ``target``."""
    scratch.mkdir(parents=True, exist_ok=True)
    for digest, data in sample.blobs.items():
        (scratch / digest).write_bytes(data)
    export_round(
        target,
        plan_bytes=sample.plan.to_bytes(),
        ledger=sample.ledger,
        run_spec=sample.run_spec,
        secret=SecretReveal(format="roundkit-secret/1", secret_hex=sample.secret.hex()),
        experiments=sample.experiments,
        blobs={digest: scratch / digest for digest in sample.blobs},
        events=sample.events,
        previous=previous,
        exported_utc=sample.ledger.closed_utc + timedelta(seconds=5),
        tool_version=__version__,
    )
    return target


def _commit(*words: str) -> str:
    return digest_json(list(words))[:40]


def _plan(
    lanes: tuple[Lane, ...],
    round_id: str,
    campaign_id: str,
    incumbent: str,
    harness: str,
    secret: bytes,
    text: Mapping[str, str],
    opened: datetime,
    forgeable: bool,
    fresh_standalone: bool,
    direction: Direction,
    counted: bool,
) -> RoundPlan:
    gates = Gates(
        ab_ba_pairs=6,
        repetitions=3,
        min_gain=0.01,
        loss_margin=0.005,
        sigma_min=2.0,
        order_margin=0.0,
        remeasure_limit=1,
    )
    shape: dict[str, Any] = (
        {"argv": ("{python}", "-I", "bench/bench.py")}
        if forgeable
        else {
            "driver": ("{python}", "-I", "bench/driver.py"),
            "worker": ("{python}", "-I", "bench/worker.py"),
        }
    )
    campaign = CampaignPlan(
        format="roundkit-campaign/1",
        campaign_id=campaign_id,
        repository=RepositoryRef(path=".", branch="main"),
        metric=Metric(
            name="latency_ms",
            unit="instructions" if counted else "ms",
            direction=direction,
            guards=(GuardMetric(name="errors", direction="lower", limit=0.0),),
        ),
        benchmark=Benchmark(
            timeout_s=30.0,
            instrument="instructions" if counted else "reported",
            clock_tolerance=0.05,
            **shape,
        ),
        protected_paths=("bench/**", "build.py"),
        environment={"LC_ALL": "C.UTF-8"},
        limits=Limits(
            output_bytes=65536,
            output_kill_bytes=1 << 24,
            file_bytes=1 << 26,
            open_files=256,
            tmp_bytes=1 << 26,
        ),
        intake=IntakeLimits(max_files=100, max_file_bytes=1 << 20, max_total_bytes=1 << 22),
        test_plan=TestPlan(
            ab_ba_pairs=gates.ab_ba_pairs,
            repetitions=gates.repetitions,
            min_gain=gates.min_gain,
            loss_margin=gates.loss_margin,
            sigma_min=gates.sigma_min,
            order_margin=gates.order_margin,
            remeasure_limit=gates.remeasure_limit,
            drift=Drift(allowance=0.5, limit=5.0, single_limit=4.0),
        ),
        search_plan=tuple(
            SearchPlanEntry(
                id=f"E{number}",
                target_stage=f"stage-{number}",
                exposed_share=0.2,
                conditional_headroom=0.1,
                plane=lane.plane,
                hypothesis=text.get("hypothesis", lane.hypothesis),
                status="planned",
            )
            for number, lane in enumerate(lanes, 1)
        ),
        budget=CampaignBudget(lanes_per_round=64),
        search_state=SearchState(incumbent_revision=incumbent),
    )
    deadline = opened + timedelta(hours=2)
    return RoundPlan(
        format="roundkit-round-plan/1",
        round_id=round_id,
        frozen_utc=opened,
        campaign=campaign,
        campaign_path="/srv/campaign/campaign.yaml",
        campaign_sha256=digest_bytes(b"campaign.yaml"),
        repository="/srv/campaign",
        incumbent=incumbent,
        incumbent_tree=_commit("tree", incumbent),
        gates=gates,
        protected_paths=("bench/**", "build.py"),
        protected_files={
            "bench/driver.py": digest_bytes(b"driver"),
            "bench/worker.py": digest_bytes(b"worker"),
            "build.py": digest_bytes(b"build"),
        },
        runtime=FrozenRuntime(python="/usr/bin/python3", readable=()),
        device_sets=(
            DeviceSet(id="cpu-0", platform="cpu", devices=("0",)),
            DeviceSet(id="cpu-1", platform="cpu", devices=("1",)),
        ),
        cpu_pinning=True,
        aa_interval=4,
        composition=CompositionPolicy(fallback="best-single", fresh_standalone=fresh_standalone),
        deadline_utc=deadline,
        lane_environment="none",
        lanes=tuple(
            FrozenLane(
                id=lane.id,
                entry=entry.id,
                plane=lane.plane,
                target_stage=entry.target_stage,
                hypothesis=entry.hypothesis,
                globs=(f"src/{lane.id}/**",),
                harness=harness,  # type: ignore[arg-type]
                model=None,
                budget=LaneBudget(tokens=90_000, micro_usd=3_000_000),
                attempt_worst_case=LaneBudget(tokens=30_000, micro_usd=1_000_000, wall_s=900),
                attempts=3,
                submission_cap=8,
                deadline_utc=deadline - timedelta(minutes=30),
                changed_condition=None,
                replay=(),
                exploration_devices=(),
                agent=LaneAgent(provenance="scripted"),
            )
            for lane, entry in zip(lanes, campaign.search_plan, strict=True)
        ),
        secret_sha256=digest_bytes(secret),
        counting_tool="valgrind" if counted else None,
    )


def _attempts(bench: _Bench, provenance: str) -> list[AttemptRecord]:
    """Let every lane's agent run once; the last lane's dies on the way and is run again."""
    plan = bench.plan
    attempts: list[AttemptRecord] = []
    for number, lane in enumerate([*plan.lanes, plan.lanes[-1]]):
        binding = next_binding(plan.digest(), account(lane, attempts), "run-1")
        dies = number == len(plan.lanes) - 1
        begins = plan.frozen_utc + timedelta(minutes=2, seconds=number)
        attempts.append(
            AttemptRecord(
                binding=binding, phase="claimed" if dies else "settled", provenance=provenance,
                reserved_utc=begins, claimed_utc=begins + timedelta(seconds=1),
                ended_utc=None if dies else begins + timedelta(minutes=10),
                actual=None if dies else Cost(turns=7, tokens=21_000, micro_usd=400_000, wall_s=599),
            )
        )  # fmt: skip
        bench.say(begins, "attempt-reserved", lane=lane.id, ordinal=binding.ordinal, run_id=binding.run_id)
    return attempts


def _tickets(
    bench: _Bench, lanes: tuple[Lane, ...], provenance: str, aa: list[AaCheck]
) -> tuple[list[TicketRecord], dict[str, bytes]]:
    tickets: list[TicketRecord] = []
    blobs: dict[str, bytes] = {}
    measured = 0
    sequence = 0
    for turn in range(max(len(lane.submissions) for lane in lanes)):
        for lane in lanes:
            if turn >= len(lane.submissions):
                continue
            sequence += 1
            ticket = _ticket(bench, lane, lane.submissions[turn], turn, sequence, provenance, blobs)
            tickets.append(ticket)
            measured += ticket.state == "measured"
            if ticket.state == "measured" and measured % bench.plan.aa_interval == 0:
                aa.append(_aa(bench, len(aa) + 1, aa))
    return tickets, blobs


def _ticket(
    bench: _Bench,
    lane: Lane,
    submission: Submission,
    turn: int,
    sequence: int,
    provenance: str,
    blobs: dict[str, bytes],
) -> TicketRecord:
    plan = bench.plan
    content = f"# {lane.id} {turn}\nFACTOR = {submission.gain}\n".encode()
    entries = [
        ManifestEntry(
            path=submission.path or f"src/{lane.id}/{bench.text.get('path', 'work.py')}",
            mode="100644",
            deleted=False,
            sha256=digest_bytes(content),
        ),
        ManifestEntry(path=f"src/{lane.id}/old.py", mode=None, deleted=True, sha256=None),
    ]
    manifest = Manifest(
        format="roundkit-manifest/1",
        lane=lane.id,
        entries=tuple(sorted(entries, key=lambda entry: entry.path)),
    )
    blobs[digest_bytes(content)] = content
    key = ticket_key(bench.spec.round_digest, lane.id, manifest.content_digest())
    name = ticket_name(plan.round_id, lane.id, key)
    intake = plan.frozen_utc + timedelta(minutes=3, seconds=40 * sequence)
    bench.say(
        intake, "intake", ticket=name, lane=lane.id, state="rejected" if submission.reject else "queued"
    )
    common: dict[str, Any] = {
        "ticket": name, "key": key, "lane": lane.id, "sequence": sequence, "manifest": manifest,
        "manifest_digest": manifest.content_digest(), "intake_utc": intake, "provenance": provenance,
    }  # fmt: skip
    if submission.reject is not None:
        cause, detail = submission.reject
        tail = bench.text.get("tail", detail)
        logs = (CommandLog(step="build", exit_code=1, end_reason="exited", wall_s=0.4, tail=tail),)
        return TicketRecord(
            **common, state="rejected", reject_cause=cause, reject_detail=bench.text.get("detail", detail),
            candidate_commit=None, candidate_tree=None, commands=logs if cause == "build" else (),
            experiments=(), verdict=None, measured_utc=None,
        )  # fmt: skip
    commit = _commit("candidate", name)
    ran = _until_decided(
        bench, "ticket", name, lane.id, plan.incumbent, commit, submission.gain, intake, submission.broke
    )
    record = ran[-1]
    log = CommandLog(step="build", exit_code=0, end_reason="exited", wall_s=0.4, tail="")
    decided = decide(record, bench.spec)
    bench.say(record.ended_utc, "verdict", ticket=name, verdict=decided.verdict, reason=decided.reason)
    return TicketRecord(
        **common, state="measured", reject_cause=None, reject_detail=None, candidate_commit=commit,
        candidate_tree=_commit("tree", commit), commands=(log,),
        experiments=tuple(item.experiment_id for item in ran),
        verdict=decided, measured_utc=record.ended_utc,
    )  # fmt: skip


def _count(values: tuple[float, ...]) -> InstructionCount:
    """Let a parent and a child have executed a million instructions a millisecond."""
    parent, child = round(median(values) * 900_000), round(median(values) * 100_000)
    processes = (ProcessCount(pid=2, instructions=parent), ProcessCount(pid=3, instructions=child))
    return InstructionCount(
        tool="valgrind", version="Valgrind-3.19.0", total=parent + child, processes=processes
    )


def _experiment(
    bench: _Bench,
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
        factor = 1 - gain if planned.side == "candidate" else 1.0
        level = BASE_MS * factor if plan.campaign.metric.direction == "lower" else BASE_MS / factor
        problem = broke if broke is not None and planned.side == "candidate" else None
        values = tuple(
            round(level * math.exp(bench.noise.gauss(0, SIGMA)), 6) for _ in range(plan.gates.repetitions)
        )
        ended = now + timedelta(seconds=1.5)
        count = _count(values) if spec.counting_tool is not None and not problem else None
        values = values if count is None else (float(count.total),)
        trials.append(
            Trial(
                planned=planned, started_utc=now, ended_utc=ended,
                metrics={} if problem else {"latency_ms": values, "errors": (0.0,)},
                value=None if problem else float(median(values)),
                problem=problem[0] if problem else None,
                detail=bench.text.get("detail", problem[1]) if problem else None,
                resources=TrialResources(wall_s=1.4, cpu_s=1.3, peak_memory_bytes=48 << 20, load_1min=0.2),
                executions=_runs(spec),
                validated=None if problem else True,
                counted=count,
            )
        )  # fmt: skip
        now = ended + timedelta(seconds=0.2)
        if problem:
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
    bench.say(released, "experiment-ended", experiment=experiment_id, outcome=record.outcome)
    return record


def _side(commit: str) -> SideIdentity:
    files = digest_json(["files", commit])
    return SideIdentity(
        commit=commit, tree=_commit("tree", commit), files_sha256_before=files, files_sha256_after=files
    )


def _runs(spec: RunSpec) -> dict[Role, ConfinedRun]:
    roles: tuple[Role, ...] = ("benchmark",) if spec.benchmark.single_process else ("driver", "worker")
    return {role: _run() for role in roles}


_BOUNDARY = Boundary(
    version="bubblewrap 0.11.0", uid=65534, dropped_from_root=True, network="none", seccomp=True,
    mounts=(MountRecord(source="/usr", at="/usr", mode="ro"),),
    limits=(LimitRecord(name="memory", value=float(1 << 30), scope="run", by="cgroup"),),
    cpus=(0,), env_names=("LC_ALL",),
)  # fmt: skip
_BOUNDARY_DIGEST = digest_json(_BOUNDARY.model_dump(mode="json"))


def _run() -> ConfinedRun:
    return ConfinedRun(
        exit_code=0, signal=None, end_reason="exited", wall_s=1.4, cpu_s=1.3, cpu_source="cgroup",
        peak_memory_bytes=48 << 20, stdout_tail="", stderr_tail="",
        stdout_sha256=digest_bytes(b""), stderr_sha256=digest_bytes(b""), stdout_bytes=0, stderr_bytes=0,
        boundary=_BOUNDARY_DIGEST,
    )  # fmt: skip


def _aa(bench: _Bench, number: int, before: list[AaCheck]) -> AaCheck:
    incumbent = bench.plan.incumbent
    ready = max(bench.free.values())
    for devices in bench.free:
        bench.free[devices] = ready
    record = _experiment(bench, "aa", f"aa-{number}", None, incumbent, incumbent, 0.0, ready)
    for devices in bench.free:
        bench.free[devices] = record.ended_utc
    drift = bench.plan.campaign.test_plan.drift
    return aa_check(record, decide(record, bench.spec), before, drift, resumes=False)


def _close(
    bench: _Bench, lanes: tuple[Lane, ...], tickets: list[TicketRecord]
) -> tuple[list[CompositionStep], list[RerunRecord]]:
    script = {lane.id: lane for lane in lanes}
    chosen = composition_order(select_tickets(tickets, [lane.id for lane in lanes]))
    head, kept, total = bench.plan.incumbent, [], 1.0
    steps: list[CompositionStep] = []
    for number, ticket in enumerate(chosen, 1):
        lane = script[ticket.lane]
        true_gain = next(
            item.gain for turn, item in enumerate(lane.submissions) if _made_by(ticket, turn, item)
        )
        if number == 1:
            experiment, decision, commit = (
                ticket.experiments[-1],
                _verdict(ticket),
                str(ticket.candidate_commit),
            )
            ratio = BY_CONSTRUCTION
            if bench.plan.composition.fresh_standalone:
                _measure(
                    bench, "standalone", f"alone-{lane.id}", lane.id, bench.plan.incumbent, commit, true_gain
                )
        else:
            commit = _commit("step", head, ticket.ticket)
            true_gain = -0.01 if lane.overlaps & set(kept) else true_gain
            record = _measure(
                bench, "compose", f"step-{number}-{ticket.lane}", ticket.lane, head, commit, true_gain
            )
            experiment, decision = record.experiment_id, decide(record, bench.spec)
            alone, fresh = _verdict(ticket), bench.plan.composition.fresh_standalone
            if fresh:
                gain = next(
                    item.gain for turn, item in enumerate(lane.submissions) if _made_by(ticket, turn, item)
                )
                again = _measure(
                    bench, "standalone", f"alone-{lane.id}", lane.id, bench.plan.incumbent,
                    str(ticket.candidate_commit), gain,
                )  # fmt: skip
                alone = decide(again, bench.spec)
            ratio = interaction_ratio(decision, alone, bench.plan.campaign.metric.direction, fresh=fresh)
        keep = decision.verdict == "pass"
        steps.append(
            CompositionStep(
                step=number, lane=ticket.lane, ticket=ticket.ticket, head_before=head, candidate=commit,
                tree=_commit("tree", commit), experiment=experiment, reused=number == 1, verdict=decision,
                kept=keep, ratio=ratio,
            )
        )  # fmt: skip
        if keep:
            head, total = commit, total * (1 - true_gain)
            kept.append(ticket.lane)
    if not kept:
        return steps, []
    record = _measure(
        bench,
        "rerun",
        "rerun",
        None,
        bench.plan.incumbent,
        head,
        bench.rerun_gain if bench.rerun_gain is not None else 1 - total,
    )
    rerun = [_rerun("rerun", head, tuple(kept), record, bench)]
    if rerun[0].verdict.verdict != "pass" and len(kept) > 1:
        best = steps[0]
        record = _measure(bench, "fallback", "fallback", None, bench.plan.incumbent, str(best.candidate), 0.1)
        rerun.append(_rerun("fallback", str(best.candidate), (best.lane,), record, bench))
    return steps, rerun


def _selected(plan: RoundPlan, tickets: list[TicketRecord]) -> dict[str, TicketRecord | None]:
    return select_tickets(tickets, [lane.id for lane in plan.lanes])


def _rerun(
    kind: Any, commit: str, lanes: tuple[str, ...], record: ExperimentRecord, bench: _Bench
) -> RerunRecord:
    return RerunRecord(
        kind=kind, commit=commit, tree=_commit("tree", commit), lanes=lanes, experiment=record.experiment_id,
        verdict=decide(record, bench.spec),
    )  # fmt: skip


def _measure(
    bench: _Bench, purpose: str, subject: str, lane: str | None, baseline: str, candidate: str, gain: float
) -> ExperimentRecord:
    """Measure once every device is free, as close does."""
    ready = max(bench.free.values())
    return _until_decided(bench, purpose, subject, lane, baseline, candidate, gain, ready)[-1]


def _until_decided(bench: _Bench, *arguments: Any) -> list[ExperimentRecord]:
    """Repeat an experiment for as long as the real rule asks for it."""
    ran: list[ExperimentRecord] = []
    while True:
        record = _experiment(bench, *arguments, attempt=len(ran) + 1)
        if not is_measured_again(record, decide(record, bench.spec), ran, bench.spec.gates):
            return [*ran, record]
        ran.append(record)


def _made_by(ticket: TicketRecord, turn: int, submission: Submission) -> bool:
    content = f"# {ticket.lane} {turn}\nFACTOR = {submission.gain}\n".encode()
    return any(entry.sha256 == digest_bytes(content) for entry in ticket.manifest.entries)


def _verdict(ticket: TicketRecord) -> VerdictRecord:
    assert ticket.verdict is not None
    return ticket.verdict
