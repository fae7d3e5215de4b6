"""One simulated run of a policy pilot: virtual agents and gains, the rules of real rounds between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from roundkit.models.attempts import Cost
from roundkit.models.policy_plan import Assumptions
from roundkit.models.policy_run import RunEnd
from roundkit.rules.policy_queue import Served, Submission, VirtualQueue, serve_virtually
from roundkit.rules.policy_stopping import DIMENSIONS, RunRules, chained_gain, next_step
from roundkit.rules.selection import composition_order, select_tickets


@dataclass(frozen=True)
class SimulatedGates:
    """What decides about a simulated candidate; of the campaign and the round.

    Attributes:
        fallback: Whether the best single lane is measured when the rerun of the whole fails.
    """

    sigma_min: float
    min_gain: float
    aa_interval: int
    device_sets: int
    fallback: bool


@dataclass(frozen=True, slots=True)
class SimulatedVerdict:
    """A verdict of a simulated measurement."""

    verdict: str
    gain: float | None


@dataclass(frozen=True, slots=True)
class SimulatedTicket:
    """A simulated candidate, as selection sees it; ``delta`` is its true log gain alone."""

    ticket: str
    lane: str
    sequence: int
    verdict: SimulatedVerdict | None
    delta: float


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """What came of one simulated run.

    Attributes:
        end: Why it ended.
        minutes: From the first launch to its end.
        target_minutes: Until the passing rerun that reached the target; None when it is censored.
        final_gain: As reruns measured it.
        device_minutes: Held by all device sets together.
        wait_minutes: Each measured ticket's wait for a device set.
        attempts: Attempts of agents.
        rounds: Rounds closed.
        experiments: Experiments without A/A checks.
    """

    end: RunEnd
    minutes: float
    target_minutes: float | None
    final_gain: float
    device_minutes: float
    wait_minutes: tuple[float, ...]
    attempts: int
    rounds: int
    experiments: int


class World:
    """One repetition: what each lane's direction is worth, and a source of chance.

    Both arms of a pair may be given the same world, and then differ by their policy and their agents alone.
    """

    def __init__(self, assumed: Assumptions, gates: SimulatedGates, random: Random) -> None:
        self._assumed, self._gates, self._random = assumed, gates, random
        self._lane_delta = -math.log1p(-assumed.lane_gain)

    def run(self, rules: RunRules) -> SimulatedRun:
        """Simulate one run by the frozen rules."""
        overlapping = {lane: self._chance(self._assumed.overlap) for lane in rules.order}
        planned, kept = set(rules.order), set[str]()
        charged = dict.fromkeys(DIMENSIONS, 0)
        gains: list[float] = []
        clock = busy = 0.0
        attempts = rounds = experiments = 0
        waits: list[float] = []
        last: str | None = None
        while True:
            step = next_step(
                rules, gain=chained_gain(gains), charged=Cost(**charged), planned=planned, last=last
            )
            if isinstance(step, str):
                reached = clock if step == "target" else None
                return SimulatedRun(
                    step,
                    clock,
                    reached,
                    chained_gain(gains),
                    busy,
                    tuple(waits),
                    attempts,
                    rounds,
                    experiments,
                )
            outcome = self._round(step, overlapping, bool(kept))
            clock += outcome.minutes
            busy += outcome.device_minutes
            waits += outcome.waits
            attempts, rounds = attempts + len(step), rounds + 1
            experiments += outcome.experiments
            for lane in step:
                for name in DIMENSIONS:
                    charged[name] += getattr(rules.worst[lane], name) or 0
            if outcome.gain is not None:
                gains.append(outcome.gain)
            kept |= outcome.kept
            planned -= outcome.kept | outcome.rejected
            last = step[-1]

    def _round(self, lanes: Sequence[str], overlapping: Mapping[str, bool], advanced: bool) -> _Round:
        """Simulate one round, from its launch to the end of its close."""
        deltas = {
            (lane, number): self._candidate(overlapped=overlapping[lane] and advanced)
            for lane in lanes
            for number in range(self._assumed.submissions)
        }
        agents = {lane: self._agent() for lane in lanes}
        served = serve_virtually(agents, self._queue(lanes))
        tickets = [
            SimulatedTicket(
                f"{lane}-{number}", lane, served.sequences[lane, number],
                None if agents[lane][number].minutes is None else self._judged(delta), delta,
            )
            for (lane, number), delta in deltas.items()
        ]  # fmt: skip
        order = composition_order(select_tickets(tickets, lanes))
        return self._closed(lanes, tickets, order, overlapping, served)

    def _closed(
        self,
        lanes: Sequence[str],
        tickets: Sequence[SimulatedTicket],
        order: Sequence[SimulatedTicket],
        overlapping: Mapping[str, bool],
        served: Served,
    ) -> _Round:
        """Compose, rerun and record as close does."""
        head, kept, steps = 0.0, list[str](), 0
        for position, ticket in enumerate(order):
            delta = 0.0 if position and kept and overlapping[ticket.lane] else ticket.delta
            steps += position > 0
            if position == 0 or self._judged(delta).verdict == "pass":
                head += delta
                kept.append(ticket.lane)
        reruns = 0
        final: SimulatedVerdict | None = None
        if kept:
            final, reruns = self._judged(head), 1
            if final.verdict != "pass" and self._gates.fallback and len(kept) > 1:
                final, kept, reruns = self._judged(order[0].delta), kept[:1], 2
        passed = final is not None and final.verdict == "pass"
        close = sum(self._measuring() for _ in range(steps + reruns))
        selected = {ticket.lane for ticket in order}
        measured = sum(ticket.verdict is not None for ticket in tickets)
        return _Round(
            minutes=self._assumed.round_minutes + served.minutes + close,
            device_minutes=served.queue.busy + close,
            waits=tuple(served.queue.waited),
            experiments=measured + steps + reruns,
            gain=final.gain if passed and final is not None else None,
            kept=frozenset(kept) if passed else frozenset(),
            rejected=frozenset(lanes) - selected,
        )

    def _agent(self) -> list[Submission]:
        assumed, count = self._assumed, self._assumed.submissions
        work = self._spread(assumed.agent_minutes, assumed.agent_spread) / count
        return [
            Submission(
                work, assumed.build_minutes, None if self._chance(assumed.rejected) else self._measuring()
            )
            for _ in range(count)
        ]

    def _queue(self, lanes: Sequence[str]) -> VirtualQueue:
        return VirtualQueue(lanes, self._gates.device_sets, self._gates.aa_interval, self._measuring)

    def _candidate(self, *, overlapped: bool) -> float:
        """Return a candidate's true log gain over the incumbent."""
        if overlapped or self._chance(self._assumed.fruitless):
            return 0.0
        return self._lane_delta + self._assumed.gain_spread * self._random.gauss(0.0, 1.0)

    def _judged(self, delta: float) -> SimulatedVerdict:
        """Measure a log gain, and judge it by the gates."""
        error = self._assumed.measured_error
        seen = delta + error * self._random.gauss(0.0, 1.0) if error else delta
        gain = -math.expm1(-seen)
        clear = seen >= self._gates.sigma_min * error and seen > 0.0
        return SimulatedVerdict("pass" if clear and gain >= self._gates.min_gain else "not-measured", gain)

    def _measuring(self) -> float:
        return self._spread(self._assumed.measurement_minutes, self._assumed.measurement_spread)

    def _spread(self, minutes: float, spread: float) -> float:
        return minutes * math.exp(spread * self._random.gauss(0.0, 1.0)) if spread else minutes

    def _chance(self, probability: float) -> bool:
        return bool(probability) and self._random.random() < probability


@dataclass(frozen=True, slots=True)
class _Round:
    minutes: float
    device_minutes: float
    waits: tuple[float, ...]
    experiments: int
    gain: float | None
    kept: frozenset[str]
    rejected: frozenset[str]
