"""How many workers a campaign's waves have: decided from each wave's requests, and written beside them."""

from __future__ import annotations

from roundkit.core.files import atomic_write
from roundkit.evidence import wave_layout as names
from roundkit.models.wave_traffic import WaveTraffic, WorkerDecision, WorkerStep
from roundkit.rules.wave_traffic import traffic_of
from roundkit.rules.wave_workers import decide, next_workers
from roundkit.waves.drafting_wave import DraftingWave
from roundkit.waves.folder import CampaignFolder, read_record
from roundkit.waves.telemetry import EventCollector, read_memory


class WorkerDecisions:
    """Every decision of one campaign so far, in the order of the waves."""

    def __init__(self, folder: CampaignFolder, events: EventCollector) -> None:
        """Read what an earlier drafter decided."""
        self._folder = folder
        self._events = events
        found = (read_record(folder.wave(tag) / names.DECISION, WorkerStep) for tag in folder.tags())
        self._steps = [step for step in found if step is not None]

    def next_workers(self) -> int:
        """Return how many workers the next wave has."""
        return next_workers(self._folder.plan.plan.workers, self._steps)

    def decide_after(self, wave: DraftingWave) -> WorkerDecision | None:
        """Decide from a wave's requests how many workers the next one has; None where that is decided."""
        if any(step.decision.tag == wave.tag for step in self._steps):
            return None
        traffic = self._traffic(wave)
        rules = self._folder.plan.plan.workers
        decision = decide(rules, wave.tag, wave.dealt.workers, traffic, self._steps)
        step = WorkerStep(decision=decision, traffic=traffic)
        atomic_write(self._folder.wave(wave.tag) / names.DECISION, step.to_bytes())
        self._steps.append(step)
        return decision

    def write_traffic(self, wave: DraftingWave) -> None:
        """Write down what a wave's requests came to."""
        atomic_write(self._folder.wave(wave.tag) / names.TRAFFIC, self._traffic(wave).to_bytes())

    def _traffic(self, wave: DraftingWave) -> WaveTraffic:
        events, bad_lines = self._events.of_wave(wave.tag)
        return traffic_of(events, bad_lines=bad_lines, memory=read_memory())
