"""One measurement of ``close``: build both sides anew, measure, repeat what broke by no fault of theirs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from roundkit.core.errors import RoundkitError
from roundkit.core.progress import SILENT, Progress
from roundkit.measure.broke import DeviceBusy, is_full
from roundkit.measure.pool import DevicePool
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.ledger import TicketRecord
from roundkit.models.measurement import MeasurementRequest, Purpose
from roundkit.models.round_plan import DeviceSet
from roundkit.models.verdict import VerdictRecord
from roundkit.rounds.building import build_side
from roundkit.rounds.candidate import Laid
from roundkit.rounds.disk_space import DiskFull, full_sentence
from roundkit.rounds.recording import record_late
from roundkit.rounds.requests import Bench, open_experiment
from roundkit.rounds.stopping import StopRequest, record_or_stop
from roundkit.rules.device_class import sets_of_class
from roundkit.rules.remeasure import HOST_STATES, is_measured_again
from roundkit.rules.verdict import decide, unmeasured
from roundkit.rules.verdict_words import in_words
from roundkit.store import RoundStore

_BUSY_POLL_S = 0.5


class CloseStopped(RoundkitError):
    """Close cannot go on now. What it finished is on record, and it goes on from there."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}; nothing is lost: `roundkit close ROUND_DIR` goes on where it was")


@dataclass(frozen=True)
class Measured:
    """A verdict and the experiment behind it; no experiment when a side could not be built."""

    verdict: VerdictRecord
    experiment: str | None


@dataclass(frozen=True)
class Closer:
    """What every step of ``close`` works with."""

    bench: Bench
    store: RoundStore
    pool: DevicePool
    report: Callable[[str], None]
    stop: StopRequest
    progress: Progress = SILENT

    def measure(
        self,
        purpose: Purpose,
        subject: str,
        lane: str | None,
        baseline: Laid,
        candidate: Laid,
        *,
        like: TicketRecord,
    ) -> Measured:
        """Measure one commit against another until there is a verdict.

        A finished experiment of the same subject that an earlier, killed close left is used as it is.

        Args:
            purpose: What the experiment is for.
            subject: Its subject.
            lane: The lane, where it is one lane's.
            baseline: What is to be beaten.
            candidate: What wants to beat it.
            like: The ticket whose device class is used, where the plan demands one.

        Raises:
            CloseStopped: somebody asked for the end, or the host has to be mended first.
        """
        again = self._finished_before(subject)
        if again is not None:
            return again
        sides = []
        for name, laid in (("close-baseline", baseline), ("close-candidate", candidate)):
            built = build_side(
                self.bench.folder,
                self.bench.plan,
                self.bench.spec,
                commit=laid.commit,
                tree=laid.tree,
                target=self.bench.checkout_folder(name),
                provision=self.bench.provision,
            )
            self._check_stop()
            if built.side is None and is_full(self.bench.folder.root):
                raise DiskFull(full_sentence(self.bench.folder.root, "close"))
            if built.side is None and name == "close-baseline":
                raise CloseStopped(f"the baseline of {subject} does not build: {built.cause}: {built.detail}")
            if built.side is None:
                broken = unmeasured(f"candidate-{built.cause}", self.bench.spec, verdict_name="fail")
                return Measured(broken, None)
            sides.append(built.side)
        while True:
            self._check_stop()
            self.report(f"{subject} measuring")
            request = open_experiment(
                self.bench,
                self.store,
                purpose=purpose,
                subject=subject,
                lane=lane,
                baseline=sides[0],
                candidate=sides[1],
                device_sets=self._sets_like(like),
            )
            record = self._run(request)
            for late in self.pool.late_records():
                self.report(record_late(self.store, late, self.bench.spec, self.bench.plan.round_id))
            with self.store.transaction():
                self.store.experiments.finish(record)
                self.store.events.add(
                    "experiment-finished", experiment=record.experiment_id, outcome=record.outcome
                )
            if record.outcome == "infrastructure" and record.reason in HOST_STATES:
                raise CloseStopped(f"{subject} broke: {record.reason}: {record.detail}")
            self._check_stop()
            verdict = decide(record, self.bench.spec)
            earlier = self.store.experiments.records(subject)[:-1]
            if not is_measured_again(record, verdict, earlier, self.bench.spec.gates):
                self.report(f"{subject} {in_words(verdict, record)}")
                return Measured(verdict, record.experiment_id)

    def _run(self, request: MeasurementRequest) -> ExperimentRecord:
        """Wait for a free device set, however long another round holds it, and measure."""
        said: set[str] = set()
        while True:
            try:
                future = self.pool.submit(request)
                self.pool.stand_in_line(wanted=False)
                return record_or_stop(future, self.pool, self.stop)
            except DeviceBusy as busy:
                if str(busy) not in said:
                    self.report(f"{request.subject} waits: {busy}")
                said.add(str(busy))
                self.pool.stand_in_line(wanted=True)
                self._check_stop()
                time.sleep(_BUSY_POLL_S)

    def _sets_like(self, ticket: TicketRecord) -> tuple[DeviceSet, ...]:
        """Return the device sets that may measure what a ticket went into."""
        plan = self.bench.plan
        if not plan.composition.same_device_class:
            return plan.device_sets
        records = self.store.experiments.by_id(ticket.experiments[-1:])
        return sets_of_class(plan.device_sets, next(iter(records.values())))

    def _check_stop(self) -> None:
        if self.stop.is_set:
            raise CloseStopped("close was stopped")

    def _finished_before(self, subject: str) -> Measured | None:
        records = self.store.experiments.records(subject)
        if not records:
            return None
        verdict = decide(records[-1], self.bench.spec)
        if is_measured_again(records[-1], verdict, records[:-1], self.bench.spec.gates):
            return None
        return Measured(verdict, records[-1].experiment_id)
