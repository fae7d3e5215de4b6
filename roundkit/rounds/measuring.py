"""One measurement of ``close``: build both sides anew, measure, repeat what broke by no fault of theirs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from roundkit.measure.broke import DeviceBusy
from roundkit.measure.pool import DevicePool
from roundkit.models.measurement import ExperimentRecord, MeasurementRequest, Purpose, VerdictRecord
from roundkit.rounds.building import build_side
from roundkit.rounds.candidate import Laid
from roundkit.rounds.requests import Bench, open_experiment
from roundkit.rules.remeasure import is_measured_again
from roundkit.rules.verdict import decide, unmeasured
from roundkit.store import RoundStore

_BUSY_POLL_S = 0.5


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

    def measure(
        self, purpose: Purpose, subject: str, lane: str | None, baseline: Laid, candidate: Laid
    ) -> Measured:
        """Measure one commit against another until there is a verdict.

        A finished experiment of the same subject that an earlier, killed close left is used as it is.
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
                name=name,
                provision=self.bench.provision,
            )
            if built.side is None:
                broken = unmeasured(f"candidate-{built.cause}", self.bench.spec, verdict_name="fail")
                return Measured(broken, None)
            sides.append(built.side)
        while True:
            self.report(f"{subject} measuring")
            request = open_experiment(
                self.bench,
                self.store,
                purpose=purpose,
                subject=subject,
                lane=lane,
                baseline=sides[0],
                candidate=sides[1],
            )
            record = self._run(request)
            with self.store.transaction():
                self.store.experiments.finish(record)
                self.store.events.add(
                    "experiment-finished", experiment=record.experiment_id, outcome=record.outcome
                )
            verdict = decide(record, self.bench.spec)
            earlier = self.store.experiments.records(subject)[:-1]
            if not is_measured_again(record, verdict, earlier, self.bench.spec.gates.remeasure_limit):
                self.report(f"{subject} {verdict.verdict}: {verdict.sentence}")
                return Measured(verdict, record.experiment_id)

    def _run(self, request: MeasurementRequest) -> ExperimentRecord:
        """Wait for a free device set, however long another round holds it, and measure."""
        waiting = False
        while True:
            try:
                return self.pool.submit(request).result()
            except DeviceBusy as busy:
                if not waiting:
                    self.report(f"{request.subject} waits: {busy}")
                waiting = True
                time.sleep(_BUSY_POLL_S)

    def _finished_before(self, subject: str) -> Measured | None:
        records = self.store.experiments.records(subject)
        if not records:
            return None
        verdict = decide(records[-1], self.bench.spec)
        limit = self.bench.spec.gates.remeasure_limit
        if is_measured_again(records[-1], verdict, records[:-1], limit):
            return None
        return Measured(verdict, records[-1].experiment_id)
