"""Whether CPU time would show much smaller gains than wall-clock time, and what it leaves out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from roundkit.models.comparison import InstrumentNoise
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.instruments import Instrument
from roundkit.models.readings import reading_beside
from roundkit.models.run_spec import RunSpec
from roundkit.models.trial import Trial
from roundkit.rules.noise import instrument_noise

_TIMES = 2.0
"""By how much a gain has to be smaller for a person to be told of it; it decides nothing."""

_CLOCKS: tuple[Instrument, ...] = ("wall", "cpu")

_AT_ONCE = 1.2
"""CPU time over wall time from which on a program is said to work on several cores at once."""


@dataclass(frozen=True)
class Quieter:
    """CPU time as a less noisy clock than the one that decides.

    Attributes:
        pairs: Pairs that both figures are for.
        wall: Smallest gain in wall-clock time that so many pairs show with 80 % power, a fraction.
        cpu: The same in CPU time.
        share: CPU time of a trial over its wall-clock time, of the medians.
    """

    pairs: int
    wall: float
    cpu: float
    share: float

    def words(self) -> tuple[str, ...]:
        """Return what a person should know before choosing, a sentence each."""
        if self.share < _AT_ONCE:
            waited = max(0.0, 1 - self.share)
            here = f"here {100 * waited:.0f} % of the time"
            spread = "work spread over more cores is no gain under it"
        else:
            here = f"here {self.share:.1f} cores worked at once"
            spread = "so a change that spreads the work better is no gain under it"
        return (
            f"CPU time is far less noisy here: with {self.pairs} pairs `cpu` shows a gain of"
            f" {_percent(self.cpu)} or more in four experiments of five, `wall` one of {_percent(self.wall)}"
            " or more.",
            "`cpu` adds up the work of all processes and threads, and leaves out waiting: for disk and"
            f" network, in sleep, for locks, for other programs' turns; {here}. It says how much is computed,"
            f" not how long somebody waits, and {spread}.",
        )


def quieter_clock(
    noise: Iterable[InstrumentNoise], decides: Instrument, *, min_gain: float
) -> Quieter | None:
    """Say whether CPU time would let the same pairs show a gain of half the size, or a smaller one.

    Args:
        noise: The noise under instruments that were read from the same trials.
        decides: The instrument that decides; only beside ``wall`` CPU time is another view of the same.
        min_gain: Smallest gain worth keeping, a fraction: where that shows, nothing better is needed.

    Returns:
        Both figures; None where CPU time is not much better, or either is unknown.
    """
    rows = {row.instrument: row for row in noise}
    wall, cpu = rows.get("wall"), rows.get("cpu")
    if decides != "wall" or wall is None or cpu is None:
        return None
    least_wall, least_cpu = wall.detectable_planned, cpu.detectable_planned
    if least_wall is None or least_cpu is None or wall.median is None or cpu.median is None:
        return None
    if least_wall <= min_gain or _TIMES * least_cpu > least_wall:
        return None
    return Quieter(wall.planned_pairs, least_wall, least_cpu, cpu.median / wall.median)


def quieter_than_wall(record: ExperimentRecord, spec: RunSpec) -> Quieter | None:
    """Say the same of an experiment that wall-clock time decided, whatever its two sides are.

    Only how far pairs scatter is looked at, never what CPU time says of the two sides: an instrument that is
    chosen for its answer would have one.

    Args:
        record: The experiment.
        spec: How it ran; where another instrument decided, there is nothing to say. Both figures are for
            as many pairs as it allows.
    """
    decides = spec.benchmark.instrument
    if decides != "wall":
        return None
    pairs = spec.gates.ab_ba_pairs
    rows = [
        instrument_noise(name, record, _reader(name), unit="ms", direction="lower", planned_pairs=pairs)
        for name in _CLOCKS
    ]
    return quieter_clock(rows, decides, min_gain=spec.gates.min_gain)


def _reader(name: Instrument) -> Callable[[Trial], float | None]:
    return lambda trial: reading_beside(name, trial)


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.2g} %"
