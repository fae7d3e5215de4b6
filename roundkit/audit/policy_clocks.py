"""Whether the two clocks of a policy pilot's runs can have been read as they stand: one after the other.

A clock that was set leaves a run without times. So nobody may say that of one that was not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from roundkit.audit.findings import Disagreement
from roundkit.audit.policy_material import RunMaterial
from roundkit.evidence import policy_layout as layout
from roundkit.models.clocks import ClockPair

_READ_WITHIN_US = 10_000_000
"""Between the two readings around one look at the other clock."""

Reading = tuple[str, ClockPair]
"""A place, and what stands there."""


def clock_problems(runs: Sequence[RunMaterial]) -> Iterator[Disagreement]:
    """Yield readings that no host's clock can have given in their order.

    Args:
        runs: In the order in which they were run.

    Raises:
        EvidenceProblem: a round's evidence is damaged.
    """
    before: list[Reading] = []
    for run in runs:
        launch, ends = _launch(run), _end(run)
        experiments = list(_experiments(run))
        for where, pair in (*launch, *experiments, *ends):
            if not 0 <= pair.to_us - pair.from_us <= _READ_WITHIN_US:
                yield Disagreement(where, f"was read from {pair.from_us} to {pair.to_us} us after the start")
        if experiments and not launch and run.launch is not None:
            yield Disagreement(f"{run.folder}/{layout.LAUNCH}", "has one clock, and its experiments have two")
        if experiments and not ends and run.end is not None:
            yield Disagreement(f"{run.folder}/{layout.END}", "has one clock, and its experiments have two")
        yield from _order_problems(before, launch)
        yield from _order_problems(launch, experiments or ends)
        yield from _order_problems(experiments, ends)
        # A run that came to its end is of one process; of one that broke, a later one may have noted it.
        if launch and run.end is not None and run.end.process == "completed":
            for where, pair in (*experiments, *ends):
                if pair.boot_id != launch[0][1].boot_id:
                    yield Disagreement(where, f"is of another start of the host than its run, {pair.boot_id}")
        before = ends or launch or before


def _order_problems(earlier: Sequence[Reading], later: Sequence[Reading]) -> Iterator[Disagreement]:
    for _, first in earlier:
        for where, pair in later:
            if pair.boot_id == first.boot_id and pair.to_us < first.from_us:
                yield Disagreement(where, f"was read {first.from_us - pair.to_us} us before what came before")


def _launch(run: RunMaterial) -> list[Reading]:
    clock = None if run.launch is None else run.launch.clock
    return [] if clock is None else [(f"{run.folder}/{layout.LAUNCH}", clock)]


def _end(run: RunMaterial) -> list[Reading]:
    clock = None if run.end is None else run.end.clock
    return [] if clock is None else [(f"{run.folder}/{layout.END}", clock)]


def _experiments(run: RunMaterial) -> Iterator[Reading]:
    for view in run.views():
        where = f"{run.folder}/{layout.ROUNDS}/{view.plan.round_id}"
        for record in view.experiments:
            if record.ended_clock is not None:
                yield f"{where}/experiments/{record.experiment_id}", record.ended_clock
