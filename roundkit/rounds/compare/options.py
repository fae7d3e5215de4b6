"""What a comparison is asked for on the command line."""

from __future__ import annotations

from dataclasses import dataclass

from roundkit.models.campaign import Direction
from roundkit.models.instruments import Instrument


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """What is measured and how; what is not given here comes from the shipped templates.

    Attributes:
        benchmark: The benchmark command, one process. Paths are relative to the baseline's top, or absolute.
        instrument: What decides.
        metric: Name of the metric that the benchmark reports, for the instrument ``reported``; null else.
        unit: Its unit.
        direction: Whether less or more of it is better.
        validator: Judges the outputs of each trial.
        build: Builds either side.
        package: Package that must be imported from the measured checkout.
        protected_paths: Globs of further files that come from the baseline on both sides.
        pairs: Largest number of pairs; even, at least 6.
        planned_pairs: Pairs that the noise is to be planned with; the template's when null.
        min_gain: Smallest gain that passes, a fraction.
        all_pairs: Never end early.
        shared_only: Noise only under instruments that share trials, none that need trials of their own.
        timeout_s: Wall-clock limit of each command, in seconds.
        python: Interpreter that ``{python}`` stands for; the template's when null.
        readable: Further absolute folders that commands read.
        cpus: Core numbers that trials are pinned to, leased together; any one free core when empty.
    """

    benchmark: tuple[str, ...]
    instrument: Instrument
    metric: str | None = None
    unit: str = "ms"
    direction: Direction = "lower"
    validator: tuple[str, ...] | None = None
    build: tuple[str, ...] | None = None
    package: str | None = None
    protected_paths: tuple[str, ...] = ()
    pairs: int | None = None
    planned_pairs: int | None = None
    min_gain: float | None = None
    all_pairs: bool = False
    shared_only: bool = False
    timeout_s: float | None = None
    python: str | None = None
    readable: tuple[str, ...] = ()
    cpus: tuple[str, ...] = ()
