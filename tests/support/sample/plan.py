"""The frozen plan of a sample round."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from support.sample.lanes import Lane

from roundkit.core.canonical import digest_bytes, digest_json
from roundkit.host.confine import Limits
from roundkit.models.campaign import (
    Benchmark,
    CampaignBudget,
    CampaignPlan,
    Command,
    Direction,
    Drift,
    GuardMetric,
    IntakeLimits,
    Metric,
    RepositoryRef,
    TestPlan,
)
from roundkit.models.lane_agent import LaneAgent
from roundkit.models.round_plan import (
    CompositionPolicy,
    DeviceSet,
    FrozenLane,
    FrozenRuntime,
    Gates,
    LaneBudget,
    RoundPlan,
)
from roundkit.models.search_plan import SearchPlanEntry, SearchState

EPOCH = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def invented_commit(*words: str) -> str:
    return digest_json(list(words))[:40]


def sample_plan(
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
        build=Command(argv=("python3", "build.py"), timeout_s=60.0),
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
        incumbent_tree=invented_commit("tree", incumbent),
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
