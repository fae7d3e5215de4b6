"""``roundkit measure``: both sides built and measured as a round would, from options to a verdict."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from roundkit import __version__
from roundkit.core.errors import RoundkitError, refuse
from roundkit.core.progress import SILENT, Progress
from roundkit.host.devices import machine_identity
from roundkit.host.lease import default_lease_root
from roundkit.host.tuning import read_tuning
from roundkit.measure.broke import DeviceBusy
from roundkit.measure.materialized import Checkout
from roundkit.measure.pool import DevicePool, LocalPool
from roundkit.models.comparison import Comparison, Environment
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.measurement import MeasurementRequest, Purpose, SideRef
from roundkit.models.round_plan import DeviceSet
from roundkit.models.run_spec import RunSpec
from roundkit.models.trial import Side
from roundkit.models.verdict import VerdictRecord
from roundkit.rounds.building import Built, build_checkout
from roundkit.rounds.compare.bench import CompareBench, open_bench
from roundkit.rounds.compare.options import CompareOptions
from roundkit.rounds.compare.sides import locate
from roundkit.rounds.compare.workplace import no_room, workplace
from roundkit.rounds.stopping import StopRequest, record_or_stop, stop_on_signal
from roundkit.rounds.watched_pool import WatchedPool
from roundkit.rules.comparison import SUBJECT, compared, limit_hint, measures_again, unbuilt_verdict
from roundkit.rules.identity import experiment_name
from roundkit.rules.looks import plan_looks
from roundkit.rules.schedule import plan_schedule

STOPPING = "stopping once the running command has ended; Ctrl-C again stops at once"
AT_ONCE = "stopped at once; nothing was kept"


class Stopped(RoundkitError):
    """Somebody asked for the end before there was a verdict."""

    def __init__(self) -> None:
        super().__init__("stopped by hand; nothing was kept, no command runs any more and every core is free")


@dataclass(frozen=True)
class Runner:
    """Who measures, tells and listens while a comparison runs."""

    pool: DevicePool
    stop: StopRequest
    progress: Progress

    def check_stop(self) -> None:
        """Raise where somebody asked for the end.

        Raises:
            Stopped: somebody did.
        """
        if self.stop.is_set:
            raise Stopped

    def run(self, request: MeasurementRequest) -> ExperimentRecord:
        """Run one experiment.

        Raises:
            Refused: ``device-busy``.
            Stopped: somebody asked for the end.
        """
        try:
            future = self.pool.submit(request)
            record = record_or_stop(future, self.pool, self.stop)
        except DeviceBusy as busy:
            raise refuse(
                "device-busy",
                f"none of the cores is free: {busy}",
                place="--cpus",
                remedy="`roundkit leases` says who holds them; name others, or try again when one is free",
            ) from busy
        if record.reason == "disk-full":
            self.progress.say(no_room(Path(request.work_folder)))
        self.check_stop()
        return record


def compare(
    baseline: str, candidate: str, options: CompareOptions, *, progress: Progress = SILENT
) -> Comparison:
    """Measure side B against side A and decide.

    Args:
        baseline: Side A, a folder or ``REPO@REV``.
        candidate: Side B.
        options: What is measured.
        progress: Shows each step and the trials.

    Raises:
        Refused: a side, a command, a core or an option is wrong, or no core is free; nothing is left.
        RoundkitError: the baseline does not build, or it was stopped by hand.
        MeasurementBroke: the boundary cannot be set up.
    """
    sides = locate(baseline, "A"), locate(candidate, "B")
    with stop_on_signal(first=STOPPING, at_once=AT_ONCE) as stop, workplace() as work:
        bench = open_bench(*sides, options, work, name="measure")
        pool = LocalPool(bench.plan.device_sets, lease_root=default_lease_root())
        before = environment(pool, bench.plan.device_sets)
        runner = Runner(WatchedPool(pool, progress), stop, progress)
        try:
            first = build(bench, "baseline", runner)
            second = build(bench, "candidate", runner)
            measured = _measured(bench, runner, first, second)
        finally:
            pool.close()
        return Comparison(
            format="roundkit-comparison/1",
            plan=bench.plan,
            run_spec=bench.spec,
            secret=bench.secret.hex(),
            builds=(first.logs, second.logs),
            experiment=measured.records[-1] if measured.records else None,
            earlier=measured.records[:-1],
            verdict=measured.verdict,
            environment=before,
        )


def build(bench: CompareBench, side: Side, runner: Runner, shown: str | None = None) -> Built:
    """Build one side's checkout, confined.

    Args:
        bench: The bench.
        side: Which.
        runner: Who tells and listens.
        shown: What to call the side.

    Raises:
        Refused: ``package-missing``: the baseline does not give the package of ``--package``.
        RoundkitError: the baseline fails a step, with the tail of its output.
        Stopped: somebody asked for the end.
    """
    doing = "building" if bench.campaign.build is not None else "checking"
    runner.progress.say(f"{doing} the {shown or side}")
    known = bench.plan.baseline if side == "baseline" else bench.plan.candidate
    built = build_checkout(
        bench.campaign,
        bench.spec,
        commit=known.commit,
        tree=known.tree,
        checkout=Checkout(bench.work / side),
        pristine=bench.pristine,
        provision=None,
    )
    runner.check_stop()
    if built.side is None and side == "baseline":
        raise _baseline_fails(bench, built)
    return built


def _baseline_fails(bench: CompareBench, built: Built) -> RoundkitError:
    said = (built.detail or "").strip()
    if built.cause == "import-path":
        return refuse(
            "package-missing",
            f"the baseline does not give the package {bench.plan.target_package!r}:\n{said}",
            place="--package",
            remedy="name a package that lies at the top of A or in its src folder, or that --build makes, or"
            " leave --package out",
        )
    late = any(log.end_reason == "deadline" for log in built.logs)
    hint = limit_hint(bench.spec, "-overrun") if late else None
    return RoundkitError("\n".join(filter(None, (f"the baseline's {built.cause} fails:", said, hint))))


def request_for(
    bench: CompareBench,
    spec: RunSpec,
    baseline: SideRef,
    candidate: SideRef,
    *,
    purpose: Purpose,
    subject: str,
    attempt: int,
) -> MeasurementRequest:
    """Return the request for one experiment of a comparison."""
    experiment_id = experiment_name(subject, attempt)
    return MeasurementRequest(
        format="roundkit-measurement-request/1",
        experiment_id=experiment_id,
        round_id=bench.plan.comparison_id,
        purpose=purpose,
        subject=subject,
        lane=None,
        attempt=attempt,
        run_spec=spec,
        baseline=baseline,
        candidate=candidate,
        incumbent_built=str(bench.pristine),
        provision=None,
        device_sets=bench.plan.device_sets,
        schedule=plan_schedule(bench.secret, spec.round_digest, experiment_id, spec.gates.ab_ba_pairs),
        look_plan=plan_looks(spec.gates, purpose),
        work_folder=str(bench.work / experiment_id),
    )


def environment(pool: DevicePool, device_sets: tuple[DeviceSet, ...]) -> Environment:
    """Return what the machine is, and how it is tuned on the cores that will be taken."""
    taken = (*pool.free_sets(), *device_sets)[0]
    cores = [int(device) for device in taken.devices]
    return Environment(
        roundkit=__version__,
        python=sys.version.split()[0],
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        machine=machine_identity(),
        tuning=read_tuning(cores),
    )


@dataclass(frozen=True)
class _Measured:
    records: tuple[ExperimentRecord, ...]
    verdict: VerdictRecord


def _measured(bench: CompareBench, runner: Runner, first: Built, second: Built) -> _Measured:
    assert first.side is not None
    if second.side is None:
        runner.progress.say(f"the candidate's {second.cause} fails:\n{second.detail}")
        return _Measured((), unbuilt_verdict(second.logs, bench.spec))
    records: list[ExperimentRecord] = []
    gates = bench.spec.gates
    most = "all of" if gates.early_stopping is None else "at most"
    runner.progress.say(f"measuring {most} {gates.ab_ba_pairs} pairs")
    while True:
        request = request_for(
            bench, bench.spec, first.side, second.side,
            purpose="compare", subject=SUBJECT, attempt=len(records) + 1,
        )  # fmt: skip
        record = runner.run(request)
        verdict = compared(record, bench.spec, bench.plan)
        records.append(record)
        if not measures_again(records, bench.spec):
            return _Measured(tuple(records), verdict)
        runner.progress.say(f"measuring once more: {record.reason or verdict.reason}")
