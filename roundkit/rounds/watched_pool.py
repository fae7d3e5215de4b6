"""A device pool whose experiments show their trials."""

from __future__ import annotations

from concurrent.futures import Future

from roundkit.core.progress import Progress
from roundkit.measure.experiment import Progress as OnTrial
from roundkit.measure.pool import DevicePool
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.measurement import MeasurementRequest
from roundkit.models.round_plan import DeviceSet
from roundkit.models.trial import Trial


class WatchedPool:
    """Hands everything on to another pool, and shows each experiment while it runs.

    Args:
        pool: Who measures.
        progress: Shows how far each experiment is.
    """

    def __init__(self, pool: DevicePool, progress: Progress) -> None:
        self._pool = pool
        self._progress = progress

    def free_sets(self) -> tuple[DeviceSet, ...]:
        """Return what the other pool returns."""
        return self._pool.free_sets()

    def submit(
        self, request: MeasurementRequest, *, progress: OnTrial | None = None
    ) -> Future[ExperimentRecord]:
        """Start an experiment and show it until it ends.

        Raises:
            DeviceBusy: as the other pool.
        """
        trials = len(request.schedule)
        if request.look_plan is None:
            task = self._progress.begin(request.subject, trials, "trials")
        else:
            task = self._progress.begin(request.subject, trials, "trials at most", foresight="bound")

        def on_trial(done: int, planned: int, trial: Trial) -> None:
            task.set(done, planned)
            if progress is not None:
                progress(done, planned, trial)

        try:
            future = self._pool.submit(request, progress=on_trial)
        except BaseException:
            self._progress.end(task)
            raise
        future.add_done_callback(lambda _: self._progress.end(task))
        return future

    def stand_in_line(self, *, wanted: bool) -> None:
        """Hand it on to the other pool."""
        self._pool.stand_in_line(wanted=wanted)

    def trouble(self) -> str | None:
        """Return what the other pool returns."""
        return self._pool.trouble()

    def late_records(self) -> tuple[ExperimentRecord, ...]:
        """Return what the other pool returns."""
        return self._pool.late_records()

    def close(self) -> None:
        """End what runs."""
        self._pool.close()
