"""The drafter: the half that must never stop. It draws, shares out, drafts and hands on, wave after wave."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from roundkit.core.clock import is_expired, now_utc
from roundkit.core.progress import Progress
from roundkit.models.wave_records import DrafterState
from roundkit.rounds.disk_space import means_full
from roundkit.rounds.stopping import StopRequest, stop_on_signal
from roundkit.rules.wave_draw import DRAW_FAILED, NO_AGENTS
from roundkit.waves import locks, stop
from roundkit.waves.agent_place import inherited_values
from roundkit.waves.drafter_state import write_state
from roundkit.waves.drafting_wave import DraftingWave, begin_wave, end_lost, lost_shards, resume_wave
from roundkit.waves.draw import UNKNOWN, Banked, undrafted
from roundkit.waves.draw_ahead import DrawAhead
from roundkit.waves.folder import CampaignFolder, open_campaign
from roundkit.waves.freeze import check_tools
from roundkit.waves.host_room import make_room
from roundkit.waves.shard_run import AgentSetting
from roundkit.waves.telemetry import EventCollector, read_events
from roundkit.waves.workers import WorkerDecisions

_TICK_S = 0.25
_COLLECT_EVERY_S = 0.5
_FULL = ("waiting", "disk-full")


def run_drafter(root: Path, *, banked: Banked, progress: Progress) -> int:
    """Draft a campaign's waves until the waves, the credit, the deadline or somebody ends it.

    SIGTERM or Ctrl-C ends the running agents; nothing on disk is lost, and the same command goes on.

    Args:
        root: The campaign's folder.
        banked: Tells what the tree's commits bank.
        progress: Takes one line for each thing that happens.

    Returns:
        The exit code: 1 where the campaign's ``draw`` kept failing, or no agent of a wave could be started.

    Raises:
        Refused: there is no campaign, its tools changed, a key is not set, a drafter runs already, or the
            machine has no room for so many agents.
        ConfinementUnavailable: the host cannot confine anything; nothing ran.
    """
    folder = open_campaign(root)
    with locks.hold(folder, "drafter"), stop_on_signal() as asked:
        check_tools(folder)
        make_room(folder.plan.plan)
        setting = AgentSetting.of(folder, inherited_values(folder.plan, os.environ))
        return Drafter(folder, setting, banked, progress, asked).run()


@dataclass
class Drafter:
    """The loop over the waves of one campaign.

    Attributes:
        waves: What is being drafted, oldest first, stragglers among them.
        final: Why nothing more will be drawn; null while something may be.
    """

    folder: CampaignFolder
    setting: AgentSetting
    banked: Banked
    progress: Progress
    asked: StopRequest
    waves: list[DraftingWave] = field(default_factory=list)
    final: str | None = None

    def __post_init__(self) -> None:
        self._woken = threading.Event()
        self._events = EventCollector(self.folder, time.time)
        self._workers = WorkerDecisions(self.folder, self._events)
        self._state: tuple[str, str] | None = None
        self._credit = UNKNOWN
        self._collect_s = 0.0
        self._draws = DrawAhead(self.folder, self.banked, self._woken.set)

    def run(self) -> int:
        """Draft until there is nothing left to do."""
        try:
            self._until_there_is_room(self._resume)
            while not self._is_done():
                self._while_there_is_room(self._step)
                self._woken.wait(self._pause_s())
                self._woken.clear()
        finally:
            self._end_all()
        self._until_there_is_room(lambda: self._tell("ended", self.final or "stop"))
        return 1 if self.final in {DRAW_FAILED, NO_AGENTS} else 0

    def _resume(self) -> None:
        """Take up what an earlier drafter left; of waves that it handed on, only their lost stragglers."""
        held = {wave.tag for wave in self.waves}
        for tag in self.folder.tags():
            dealt = self.folder.dealt(tag)
            handed = self.folder.drafted(tag) is not None
            if tag in held or dealt is None or (handed and not lost_shards(self.folder, tag)):
                continue
            collected = Counter(event.shard for event in read_events(self.folder, tag))
            if handed:
                end_lost(self.folder, tag, self._events, collected)
                self._events.forget(tag)
                continue
            self.waves.append(resume_wave(self.folder, tag, dealt, self._events, collected))
            self.progress.say(f"{tag}: taken up again, {len(self.waves[-1].pending)} shards to start")

    def _step(self) -> None:
        """Do everything that can be done now."""
        if self.asked.is_set or self._is_unauthorized():
            self._end_agents()
        for wave in self.waves:
            for line in wave.reap(self._events):
                self.progress.say(line)
        if time.monotonic() >= self._collect_s:
            self._collect_s = time.monotonic() + _COLLECT_EVERY_S
            self._events.collect()
            for wave in self.waves:
                wave.end_spent(self._events)
        self._hand_on()
        self._take_draw()
        if not self._is_ending() and self.final != NO_AGENTS:
            self._begin_next()
            self._start_due()
        self.final = self.final or self._draws.final
        self._describe()

    def _hand_on(self) -> None:
        for wave in self.waves:
            if wave.may_be_handed(time.monotonic()):
                self._decide_after(wave)
                self._workers.write_traffic(wave)
                wave.hand_on()
                if wave.none_started:
                    self.final = NO_AGENTS
                self.progress.say(f"{wave.tag}: handed on, {len(wave.running)} of its shards still running")
            if wave.is_over:
                self._events.forget(wave.tag)
        self.waves = [wave for wave in self.waves if not wave.is_over]

    def _begin_next(self) -> None:
        """Begin the next wave once the last one is in its tail; see to it that there is one."""
        last = self.waves[-1] if self.waves else None
        if last is not None and last.pending:
            return
        ready = undrafted(self.folder)
        if ready is None:
            self._draws.request()
            return
        if last is not None and not last.in_tail:
            return
        if last is not None:
            self._decide_after(last)
        workers = self._workers.next_workers()
        self.waves.append(begin_wave(self.folder, ready, workers=workers))
        self.progress.say(
            f"{ready}: {len(self.waves[-1].wave.targets)} targets in {len(self.waves[-1].pending)} shards,"
            f" {workers} workers"
        )

    def _start_due(self) -> None:
        """Start what the ramp and the number of workers let start; the oldest wave first."""
        for wave in self.waves:
            while (
                wave.pending
                and self._room() > 0
                and not wave.ramp.wait_s(time.monotonic())
                and not self._is_unauthorized()
            ):
                wave.start_next(self.setting, self._events, self._woken.set, time.monotonic())

    def _room(self) -> int:
        workers = self.waves[-1].dealt.workers
        return workers - sum(len(wave.running) for wave in self.waves)

    def _decide_after(self, wave: DraftingWave) -> None:
        decision = self._workers.decide_after(wave)
        if decision is not None:
            self.progress.say(
                f"{wave.tag}: {decision.reason} at {decision.workers} workers, then {decision.next_workers}"
            )

    def _take_draw(self) -> None:
        """Take what a draw came to, if one has ended."""
        drawn = self._draws.taken(self.progress.say)
        if drawn is None:
            return
        self._credit = drawn.credit
        if drawn.wave is not None:
            wave = drawn.wave
            left = {**wave.left_out, "without input": wave.missing_inputs}
            self.progress.say(
                f"{wave.tag}: drawn, {len(wave.targets)} targets of band {wave.band}, lever set"
                f" {wave.lever_set}; left out: {', '.join(f'{count} {why}' for why, count in left.items())}"
            )

    def _is_ending(self) -> bool:
        return self.asked.is_set or self._is_unauthorized() or stop.is_asked(self.folder)

    def _is_unauthorized(self) -> bool:
        authorization = self.folder.plan.plan.authorization
        return authorization is not None and is_expired(authorization.until_utc, now_utc())

    def _is_done(self) -> bool:
        if self._draws.is_busy or any(wave.running or not wave.pending for wave in self.waves):
            return False
        # What is pending of a wave then is started by whoever goes on.
        if self._is_ending():
            self.final = "authorization" if self._is_unauthorized() else "stop"
            return True
        if self.final == NO_AGENTS:
            return True
        return not self.waves and self.final is not None and undrafted(self.folder) is None

    def _end_agents(self) -> None:
        """End every agent that runs, and the draw."""
        self._draws.end_now()
        for wave in self.waves:
            for run in wave.running.values():
                run.end_now()

    def _end_all(self) -> None:
        """Leave nothing running, whatever happened; what can be written down is."""
        self._end_agents()
        self._draws.close()
        for wave in self.waves:
            for run in wave.running.values():
                run.wait()
            with suppress(OSError):
                wave.reap(self._events)

    def _while_there_is_room(self, work: Callable[[], None]) -> None:
        """Do something that a full disk may interrupt at any point; it is done again once there is room."""
        try:
            work()
        except OSError as error:
            if not means_full(error, self.folder.root):
                raise
            if self._state != _FULL:
                self._state = _FULL
                self.progress.say(
                    f"disk-full: {self.folder.root} has no space left; it goes on once there is some"
                )

    def _until_there_is_room(self, work: Callable[[], None]) -> None:
        """Do something that has to be done before anything else, unless somebody asks for the end."""
        self._while_there_is_room(work)
        while self._state == _FULL and not self.asked.is_set:
            self._woken.wait(_TICK_S)
            self._state = None
            self._while_there_is_room(work)

    def _describe(self) -> None:
        """Say what it is at, wherever that has changed."""
        if any(wave.running or wave.pending for wave in self.waves):
            self._tell("drafting", ", ".join(wave.tag for wave in self.waves))
        elif self.final is None:
            self._tell("waiting", self._draws.waits)

    def _tell(self, state: Literal["drafting", "waiting", "ended"], reason: str) -> None:
        if self._state == (state, reason):
            return
        write_state(
            self.folder,
            DrafterState(
                at_utc=now_utc(),
                state=state,
                reason=reason,
                credit_usd=self._credit.usd,
                credit_reason=self._credit.reason,
            ),
        )
        self._state = (state, reason)
        if state != "drafting":
            self.progress.say(f"drafter {state}: {reason}")

    def _pause_s(self) -> float:
        ramps = [
            wave.ramp.wait_s(time.monotonic()) for wave in self.waves if wave.pending and self._room() > 0
        ]
        return min([_TICK_S, *ramps])
