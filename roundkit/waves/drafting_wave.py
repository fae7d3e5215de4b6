"""One wave while it is drafted: its starts, its tail, and its hand-over, which stragglers outlive."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from roundkit.core.clock import now_utc
from roundkit.evidence import wave_layout as names
from roundkit.models.wave_plan import DraftRules
from roundkit.models.wave_records import Dealt, Drafted, Shard, Slice, Wave
from roundkit.rules.wave_caps import beyond, caps_of
from roundkit.rules.wave_ramp import Ramp, pause_s
from roundkit.rules.wave_shards import deal
from roundkit.waves.folder import CampaignFolder, write_once
from roundkit.waves.shard_run import (
    LOST,
    NOT_STARTED,
    AgentSetting,
    ShardRun,
    lay_lessons,
    lever_of,
    prepare_shard,
    record_lost,
)
from roundkit.waves.telemetry import EventCollector


@dataclass
class DraftingWave:
    """A wave that is being drafted, or whose stragglers still run.

    Attributes:
        wave: The wave.
        dealt: How it was shared out.
        pending: Slices that were not started yet.
        running: Shards whose agent runs, or whose end is not written down yet.
        ended: How many shards have their end.
        refused: Of them, how many had no boundary, so that their agent never ran.
        handed: Whether it was handed on.
    """

    folder: CampaignFolder
    wave: Wave
    dealt: Dealt
    ramp: Ramp
    pending: deque[Slice]
    running: dict[int, ShardRun] = field(default_factory=dict)
    ended: int = 0
    refused: int = 0
    handed: bool = False
    _tail_s: float | None = None

    @property
    def tag(self) -> str:
        """The wave's tag."""
        return self.wave.tag

    @property
    def is_over(self) -> bool:
        """Whether it was handed on and nothing of it runs."""
        return self.handed and not self.running

    @property
    def none_started(self) -> bool:
        """Whether the boundary refused every one of its agents."""
        return self.refused == len(self.dealt.slices)

    @property
    def in_tail(self) -> bool:
        """Whether every shard was started and enough of them have ended for the next wave to begin."""
        return not self.pending and self.ended >= self._rules.tail * len(self.dealt.slices)

    def start_next(
        self, setting: AgentSetting, events: EventCollector, woken: Callable[[], None], now_s: float
    ) -> None:
        """Start the next slice.

        Raises:
            OSError: its folder cannot be made; it stays the next one.
        """
        shard = prepare_shard(self.folder, self.wave, self.pending[0])
        run = ShardRun(self.folder, shard, setting, woken)
        self.pending.popleft()
        self.running[shard.index] = run
        events.follow(shard)
        run.start()
        self.ramp.started(now_s)

    def reap(self, events: EventCollector) -> list[str]:
        """Write down the end of every shard whose agent has ended; return a line for each that failed.

        Raises:
            OSError: there is no room; what is not written yet is written by the next call.
        """
        said = []
        for index, run in list(self.running.items()):
            if not run.is_over:
                continue
            end = run.record(events.finish(run.shard, run.ended_utc))
            run.close()
            del self.running[index]
            self.ended += 1
            self.refused += end.end_reason == NOT_STARTED
            if end.end_reason != "exited" or end.exit_code != 0:
                how = f"exit code {end.exit_code}" if end.end_reason == "exited" else end.end_reason
                said.append(
                    f"{self.tag}: shard {index} ended: {how}{': ' + end.detail if end.detail else ''}"
                )
        return said

    def end_spent(self, events: EventCollector) -> None:
        """End every agent that told of more turns, or of a higher cost, than its targets may take."""
        lever = lever_of(self.folder, self.wave)
        for run in self.running.values():
            caps = caps_of(self.folder.plan.plan, lever, len(run.shard.targets))
            turns, micro_usd = events.used(run.shard)
            if (what := beyond(caps, turns=turns, micro_usd=micro_usd)) is not None:
                run.end_spent(what)

    def may_be_handed(self, now_s: float) -> bool:
        """Say whether its time is over: all shards have ended, or the tail had its grace.

        An agent that has ended is written down first: who is said to run when it is handed on did run.
        """
        if self.handed or not self.in_tail or any(run.is_over for run in self.running.values()):
            return False
        if self._tail_s is None:
            self._tail_s = now_s
        return not self.running or now_s >= self._tail_s + self._rules.grace_s

    def hand_on(self) -> None:
        """Pass it to the gater. What still runs goes on running.

        Raises:
            OSError: there is no room for the marker.
        """
        place = self.folder.wave(self.tag) / names.DRAFTED
        began = min(shard.started_utc for shard, _ in self.folder.shards(self.tag))
        marker = Drafted(
            tag=self.tag,
            began_utc=began,
            handed_utc=now_utc(),
            workers=self.dealt.workers,
            shards=len(self.dealt.slices),
            running=len(self.running),
        )
        if not place.exists():
            write_once(place, marker)
        self.handed = True

    @property
    def _rules(self) -> DraftRules:
        return self.folder.plan.plan.draft


def begin_wave(folder: CampaignFolder, tag: str, *, workers: int) -> DraftingWave:
    """Share a drawn wave out among workers; nothing of it is started yet.

    Raises:
        OSError: there is no room.
    """
    plan, wave = folder.plan.plan, folder.read_wave(tag)
    lay_lessons(folder, tag)
    slices = deal(wave.targets, workers=workers, pools=plan.pools, attempts=plan.draft.attempts)
    dealt = Dealt(tag=tag, dealt_utc=now_utc(), workers=workers, slices=slices)
    write_once(folder.wave(tag) / names.DEALT, dealt)
    return _drafting(folder, wave, dealt, slices)


def resume_wave(
    folder: CampaignFolder, tag: str, dealt: Dealt, events: EventCollector, collected: Mapping[int, int]
) -> DraftingWave:
    """Take up a wave that an earlier drafter left: what it never started is pending, what ran is lost.

    Args:
        folder: The campaign.
        tag: A wave that was shared out and not handed on.
        dealt: How it was shared out.
        events: Takes up the events that nobody had collected.
        collected: How many of each shard's events are in the campaign's file.

    Raises:
        OSError: there is no room.
    """
    begun = list(folder.shards(tag))
    for shard, end in begun:
        if end is not None:
            events.follow(shard, skip=collected.get(shard.index, 0))
            events.finish(shard, None if end.end_reason == LOST else end.ended_utc)
    end_lost(folder, tag, events, collected)
    started = {shard.index for shard, _ in begun}
    left = [slice_ for slice_ in dealt.slices if slice_.index not in started]
    drafting = _drafting(folder, folder.read_wave(tag), dealt, left)
    drafting.ended = len(started)
    return drafting


def end_lost(folder: CampaignFolder, tag: str, events: EventCollector, collected: Mapping[int, int]) -> None:
    """Write down the end of every shard of a wave whose agent died with an earlier drafter.

    Raises:
        OSError: there is no room.
    """
    for shard in lost_shards(folder, tag):
        events.follow(shard, skip=collected.get(shard.index, 0))
        record_lost(folder, shard, events.finish(shard))


def lost_shards(folder: CampaignFolder, tag: str) -> list[Shard]:
    """Return the shards of a wave that were started and have no end, while no drafter runs."""
    return [shard for shard, end in folder.shards(tag) if end is None]


def _drafting(
    folder: CampaignFolder, wave: Wave, dealt: Dealt, pending: list[Slice] | tuple[Slice, ...]
) -> DraftingWave:
    rules = folder.plan.plan.draft
    pause = pause_s(len(dealt.slices), window_s=rules.ramp_s, most_s=rules.most_ramp_s)
    return DraftingWave(folder, wave, dealt, Ramp(pause), deque(pending))
