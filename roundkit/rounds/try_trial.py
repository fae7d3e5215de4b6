"""``roundkit trial``: one trial or one shell behind the boundary, with everything that the boundary holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from roundkit.host.confine import Boundary, Execution
from roundkit.measure.boundary import Grant
from roundkit.measure.experiment import boundary_book
from roundkit.measure.shell import run_shell
from roundkit.measure.trial import run_trial
from roundkit.models.trial import Role, Side, Trial
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.serve import Report
from roundkit.rounds.trial_side import Stand, stand


@dataclass(frozen=True)
class TriedTrial:
    """One trial, run as serve would run it, and what each of its processes was given.

    Attributes:
        stand: Where it ran.
        trial: What came of it.
        grants: Command, variables and working folder of each process.
        boundaries: What held around each process that ran.
    """

    stand: Stand
    trial: Trial
    grants: Mapping[Role, Grant]
    boundaries: Mapping[Role, Boundary]


def try_trial(folder: RoundFolder, *, side: Side, ticket: str | None, report: Report) -> TriedTrial:
    """Run one trial of a side and keep nothing of it.

    Raises:
        Refused, RoundkitError: as :func:`roundkit.rounds.trial_side.stand`.
        MeasurementBroke: the infrastructure failed.
    """
    with stand(folder, side=side, ticket=ticket, report=report) as ready:
        book = boundary_book(ready.request)
        report(f"one trial on {ready.device_set.id}")
        trial = run_trial(
            ready.bench.spec, ready.planned, ready.files, ready.folder, binding=ready.binding, book=book
        )
        boundaries = {role: book.boundaries[run.boundary] for role, run in trial.executions.items()}
        return TriedTrial(ready, trial, ready.boundary.grants(), boundaries)


def try_shell(
    folder: RoundFolder,
    *,
    side: Side,
    ticket: str | None,
    timeout_s: float | None,
    report: Report,
    before: Callable[[Stand], None],
) -> Execution:
    """Run a shell on this process's standard input and output where the candidate's process would run.

    Args:
        folder: The round.
        side: The side whose checkout it sees.
        ticket: The candidate, for that side.
        timeout_s: Seconds after which it ends; a trial's own limit when null.
        report: Takes one line for each step.
        before: Called right before the shell starts.

    Raises:
        Refused, RoundkitError: as :func:`roundkit.rounds.trial_side.stand`.
    """
    with stand(folder, side=side, ticket=ticket, report=report) as ready:
        before(ready)
        return run_shell(
            ready.bench.spec,
            ready.planned,
            ready.files,
            ready.folder,
            binding=ready.binding,
            timeout_s=timeout_s or ready.bench.spec.benchmark.timeout_s,
            stdin=0,
            stdout=1,
        )
