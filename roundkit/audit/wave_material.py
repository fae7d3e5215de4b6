"""What an audit of a wave campaign works on: every record of its export, read once."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

from roundkit.evidence import wave_layout as layout
from roundkit.evidence.problem import problem
from roundkit.evidence.wave_reader import WaveEvidence
from roundkit.models.wave_plan import WavePlan
from roundkit.models.wave_records import Drafted, DrafterState, LedgerRow, Rejected, Shard, ShardEnd, Wave
from roundkit.models.wave_traffic import RequestEvent, WaveTraffic, WorkerStep

_OF_A_CAMPAIGN = frozenset({layout.PLAN, layout.LEDGER, layout.REJECTS, layout.EVENTS, layout.DRAFTER})
_WAVE = re.compile(r"waves/([0-9]{4,})/(wave|drafted|traffic|decision)\.json")
_SHARD = re.compile(r"waves/([0-9]{4,})/shards/([0-9]{4,})/(shard|end)\.json")


@dataclass(frozen=True)
class WaveMaterial:
    """One wave; None for what it does not have yet.

    Attributes:
        shards: Each shard that was started, by its number, with its end once it has one.
    """

    wave: Wave
    drafted: Drafted | None
    traffic: WaveTraffic | None
    step: WorkerStep | None
    shards: dict[int, tuple[Shard, ShardEnd | None]]

    @property
    def tag(self) -> str:
        """The wave's name."""
        return self.wave.tag

    @property
    def where(self) -> str:
        """Its folder."""
        return layout.wave_folder(self.tag)

    @property
    def is_whole(self) -> bool:
        """Whether it was handed on with no shard running: nothing of it came later."""
        return self.drafted is not None and not self.drafted.running


@dataclass(frozen=True)
class CampaignMaterial:
    """An exported campaign.

    Attributes:
        waves: By their numbers.
        rows: The ledger.
        rejects: Drafts that did not bank.
        events: What the draft agents told of their requests.
        drafter: What the drafter was at; None where none ever ran.
    """

    evidence: WaveEvidence
    plan: WavePlan
    waves: tuple[WaveMaterial, ...]
    rows: tuple[LedgerRow, ...]
    rejects: tuple[Rejected, ...]
    events: tuple[RequestEvent, ...]
    drafter: DrafterState | None

    @cached_property
    def events_of(self) -> dict[tuple[str, int], list[RequestEvent]]:
        """The events of each shard, by its wave and number."""
        found: dict[tuple[str, int], list[RequestEvent]] = defaultdict(list)
        for event in self.events:
            found[event.tag, event.shard].append(event)
        return found

    def wave_events(self, tag: str) -> list[RequestEvent]:
        """Return the events of one wave."""
        return [event for event in self.events if event.tag == tag]

    def steps_before(self, tag: str) -> list[WorkerStep]:
        """Return the decisions on workers that were there when a wave began."""
        return [each.step for each in self.waves if each.step is not None and int(each.tag) < int(tag)]

    def rows_of(self, tag: str) -> list[LedgerRow]:
        """Return a wave's rows of the ledger, its later gates among them."""
        return [row for row in self.rows if row.tag == tag]


def read_campaign(evidence: WaveEvidence) -> CampaignMaterial:
    """Read every record of an exported campaign.

    Raises:
        EvidenceProblem: one cannot be read, or is none that a campaign has.
    """
    tags, numbers = _found(evidence)
    return CampaignMaterial(
        evidence=evidence,
        plan=evidence.record(layout.PLAN, WavePlan),
        waves=tuple(_wave(evidence, tag, sorted(numbers[tag])) for tag in sorted(tags, key=int)),
        rows=tuple(evidence.lines(layout.LEDGER, LedgerRow)),
        rejects=tuple(evidence.lines(layout.REJECTS, Rejected)),
        events=tuple(evidence.lines(layout.EVENTS, RequestEvent)),
        drafter=evidence.optional(layout.DRAFTER, DrafterState),
    )


def _found(evidence: WaveEvidence) -> tuple[set[str], dict[str, set[int]]]:
    tags: set[str] = set()
    numbers: dict[str, set[int]] = defaultdict(set)
    for name in sorted(evidence.names - _OF_A_CAMPAIGN):
        if of_wave := _WAVE.fullmatch(name):
            tags.add(of_wave[1])
        elif of_shard := _SHARD.fullmatch(name):
            tags.add(of_shard[1])
            numbers[of_shard[1]].add(int(of_shard[2]))
        else:
            raise problem("bad-name", f"no campaign has a file {name}", where=name)
    return tags, numbers


def _wave(evidence: WaveEvidence, tag: str, numbers: list[int]) -> WaveMaterial:
    top = layout.wave_folder(tag)
    return WaveMaterial(
        wave=evidence.record(f"{top}/{layout.WAVE}", Wave),
        drafted=evidence.optional(f"{top}/{layout.DRAFTED}", Drafted),
        traffic=evidence.optional(f"{top}/{layout.TRAFFIC}", WaveTraffic),
        step=evidence.optional(f"{top}/{layout.DECISION}", WorkerStep),
        shards={number: _shard(evidence, layout.shard_folder(tag, number)) for number in numbers},
    )


def _shard(evidence: WaveEvidence, place: str) -> tuple[Shard, ShardEnd | None]:
    shard = evidence.record(f"{place}/{layout.SHARD}", Shard)
    return shard, evidence.optional(f"{place}/{layout.END}", ShardEnd)
