"""The options of ``measure`` and ``noise``, held against each other and turned into what is measured."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from roundkit.cli.options import command_words

if TYPE_CHECKING:
    from roundkit.rounds.compare.options import CompareOptions

_WITH_FROM = frozenset({"saved", "json_file", "html", "pyperf"})


class Better(StrEnum):
    """Which way of a metric is better."""

    LESS = "lower"
    MORE = "higher"


def only_with_from(context: typer.Context) -> None:
    """Refuse whatever was given beside ``--from`` and does not say where to write.

    Raises:
        typer.BadParameter: with the names of the options.
    """
    given = [
        parameter.opts[0] if parameter.param_type_name == "option" else parameter.name.upper()
        for parameter in context.command.params
        if parameter.name is not None and parameter.name not in _WITH_FROM and _given(context, parameter.name)
    ]
    if given:
        raise typer.BadParameter(f"it measures nothing: leave {', '.join(given)} out", param_hint="--from")


def _given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def compare_options(
    benchmark: str | None,
    metric: str | None,
    unit: str | None,
    direction: Better | None,
    instrument: str | None,
    *,
    validator: str | None,
    build: str | None,
    package: str | None,
    protect: list[str] | None,
    pairs: int | None,
    planned_pairs: int | None = None,
    min_gain: float | None,
    all_pairs: bool,
    shared_only: bool = False,
    cpus: str | None,
    python: str | None,
    read: list[Path] | None,
    timeout: float | None,
) -> CompareOptions:
    """Return what a comparison is asked for, with the defaults that depend on other options.

    Raises:
        typer.BadParameter: an option is wrong, or does not go with another one.
    """
    from roundkit.rounds.compare.instruments import instruments
    from roundkit.rounds.compare.options import CompareOptions

    if benchmark is None:
        raise typer.BadParameter("say what to run", param_hint="--benchmark")
    wanted = instrument or ("wall" if metric is None else "reported")
    known = {str(name): name for name in instruments()}
    if wanted not in known:
        raise typer.BadParameter(f"{wanted!r} is none of {', '.join(known)}", param_hint="--instrument")
    if (wanted == "reported") != (metric is not None):
        raise typer.BadParameter("--metric and the instrument reported go together", param_hint="--metric")
    if metric is None and not (unit is None and direction is None):
        raise typer.BadParameter("--unit and --direction are those of --metric", param_hint="--metric")
    return CompareOptions(
        benchmark=command_words(benchmark, "--benchmark"),
        instrument=known[wanted],
        metric=metric,
        unit=unit or "ms",
        direction="higher" if direction is Better.MORE else "lower",
        validator=None if validator is None else command_words(validator, "--validator"),
        build=None if build is None else command_words(build, "--build"),
        package=package,
        protected_paths=tuple(protect or ()),
        pairs=pairs,
        planned_pairs=planned_pairs,
        min_gain=min_gain,
        all_pairs=all_pairs,
        shared_only=shared_only,
        timeout_s=timeout,
        python=python,
        readable=tuple(str(folder.absolute()) for folder in read or ()),
        cpus=tuple(word.strip() for word in cpus.split(",")) if cpus else (),
    )


def check_pyperf(options: CompareOptions) -> None:
    """Refuse a metric that pyperf does not know, before anything is measured for it.

    Raises:
        Refused: ``pyperf-unit``.
    """
    from roundkit.analysis.exporters.pyperf import pyperf_unit
    from roundkit.rounds.compare.instruments import METRICS

    _, unit = METRICS.get(options.instrument, ("", options.unit))
    pyperf_unit(unit, options.direction)
