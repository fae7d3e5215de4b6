"""How a campaign stands, read from its folder alone; safe beside both halves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from roundkit.core.clock import now_utc
from roundkit.evidence import wave_layout as names
from roundkit.models.wave_records import DrafterState, LedgerRow
from roundkit.models.wave_traffic import WaveTraffic, WorkerDecision, WorkerStep
from roundkit.rules.wave_fleet import FleetUse, fleet_use
from roundkit.waves import stop
from roundkit.waves.drafter_state import read_state
from roundkit.waves.folder import CampaignFolder, read_record
from roundkit.waves.locks import runs

WaveState = Literal["drawn", "drafting", "waiting", "gated"]


@dataclass(frozen=True)
class WaveStatus:
    """One wave, as it stands.

    Attributes:
        state: ``drawn``; ``drafting``; ``waiting``, for the gate or in it; ``gated``.
        started: Shards that were started.
        ended: Shards that have ended.
        shards: Shards in all; null before it was shared out.
        workers: Draft agents that may run at once.
        traffic: Its requests, once it was handed on.
        row: Its row in the ledger, once it has one.
    """

    tag: str
    state: WaveState
    band: str
    lever_set: str
    targets: int
    missing_inputs: int
    retried: int
    started: int
    ended: int
    shards: int | None
    workers: int | None
    traffic: WaveTraffic | None
    row: LedgerRow | None


@dataclass(frozen=True)
class CampaignStatus:
    """A campaign, as it stands.

    Attributes:
        drafter: What the drafter last said; null before it first ran.
        drafter_runs: Whether it runs now.
        gater_runs: Whether the gater does.
        stop_asked: Whether the end was asked for.
        queue: Waves that wait for the gate.
        workers: Workers that the next wave would have.
        decision: The last decision about them.
        fleet: How busy the draft agents were.
    """

    campaign_id: str
    plan_sha256: str
    drafter: DrafterState | None
    drafter_runs: bool
    gater_runs: bool
    stop_asked: bool
    queue: tuple[str, ...]
    queue_depth: int
    workers: int
    decision: WorkerDecision | None
    fleet: FleetUse
    waves: tuple[WaveStatus, ...]


def read_status(folder: CampaignFolder) -> CampaignStatus:
    """Read how a campaign stands now.

    Raises:
        Refused: a record cannot be read.
    """
    plan = folder.plan.plan
    rows = {row.tag: row for row in folder.ledger() if row.mode == "wave"}
    waves, intervals = [], []
    for tag in folder.tags():
        status, own = _wave_status(folder, tag, rows.get(tag))
        waves.append(status)
        intervals += own
    steps = [read_record(folder.wave(wave.tag) / names.DECISION, WorkerStep) for wave in waves]
    decisions = [step.decision for step in steps if step is not None]
    return CampaignStatus(
        campaign_id=plan.campaign_id,
        plan_sha256=folder.plan_sha256,
        drafter=read_state(folder),
        drafter_runs=runs(folder, "drafter"),
        gater_runs=runs(folder, "gater"),
        stop_asked=stop.is_asked(folder),
        queue=tuple(wave.tag for wave in waves if wave.state == "waiting"),
        queue_depth=plan.queue_depth,
        workers=decisions[-1].next_workers if decisions else plan.workers.start,
        decision=decisions[-1] if decisions else None,
        fleet=fleet_use(intervals),
        waves=tuple(waves),
    )


def _wave_status(
    folder: CampaignFolder, tag: str, row: LedgerRow | None
) -> tuple[WaveStatus, list[tuple[float, float]]]:
    wave, dealt, drafted = folder.read_wave(tag), folder.dealt(tag), folder.drafted(tag)
    intervals, ended = _wave_intervals(folder, tag)
    state: WaveState = (
        "gated" if row is not None else "waiting" if drafted is not None else "drafting" if dealt else "drawn"
    )
    return WaveStatus(
        tag=tag,
        state=state,
        band=wave.band,
        lever_set=wave.lever_set,
        targets=len(wave.targets),
        missing_inputs=wave.missing_inputs,
        retried=wave.retried,
        started=len(intervals),
        ended=ended,
        shards=None if dealt is None else len(dealt.slices),
        workers=None if dealt is None else dealt.workers,
        traffic=read_record(folder.wave(tag) / names.TRAFFIC, WaveTraffic),
        row=row,
    ), intervals


def _wave_intervals(folder: CampaignFolder, tag: str) -> tuple[list[tuple[float, float]], int]:
    now, begun = now_utc(), list(folder.shards(tag))
    intervals = [
        (shard.started_utc.timestamp(), (now if end is None else end.ended_utc).timestamp())
        for shard, end in begun
    ]
    return intervals, sum(end is not None for _, end in begun)
