"""The options of ``measure`` and ``noise``, held against each other and turned into what is measured."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from roundkit.cli.options import command_words, even_pairs

if TYPE_CHECKING:
    from roundkit.rounds.compare.options import CompareOptions

_WITH_FROM = frozenset({"saved", "json_file", "html", "pyperf"})

COMMANDS = "What is run"
HOW = "How it is measured"
OUTPUTS = "What is written"

BENCHMARK = typer.Option(
    help="Benchmark command, one program and its words; for more, sh -c '…'.", rich_help_panel=COMMANDS
)


def pairs_option(meaning: str, *, panel: str = HOW) -> Any:
    """Return the option for a number of pairs."""
    return typer.Option(
        min=6, callback=even_pairs, help=f"{meaning}; even, at least 6.", rich_help_panel=panel
    )


class Better(StrEnum):
    """Which way of a metric is better."""

    LESS = "lower"
    MORE = "higher"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shared:
    """What both commands ask: an option for each field."""

    metric: Annotated[
        str | None,
        typer.Option(
            help="Metric that the benchmark writes to ROUNDKIT_RESULT_PATH; else wall time counts.",
            rich_help_panel=HOW,
        ),
    ] = None
    unit: Annotated[
        str | None, typer.Option(help="The metric's unit; ms by default.", rich_help_panel=HOW)
    ] = None
    direction: Annotated[
        Better | None,
        typer.Option(help="Which way of the metric is better; lower by default.", rich_help_panel=HOW),
    ] = None
    instrument: Annotated[
        str | None,
        typer.Option(
            help="What decides: reported (with --metric), wall, cpu, instructions or peak-memory; "
            "`roundkit doctor` says which work here.",
            rich_help_panel=HOW,
        ),
    ] = None
    validator: Annotated[
        str | None,
        typer.Option(help="Command that exits 0 when the outputs are right.", rich_help_panel=COMMANDS),
    ] = None
    build: Annotated[
        str | None, typer.Option(help="Build command, run once a checkout.", rich_help_panel=COMMANDS)
    ] = None
    package: Annotated[
        str | None,
        typer.Option(
            help="Package that must be imported from the checkout, not from elsewhere.",
            rich_help_panel=COMMANDS,
        ),
    ] = None
    cpus: Annotated[
        str | None,
        typer.Option(
            help="Cores to measure on, such as 3 or 2,3; by default one that is free.", rich_help_panel=HOW
        ),
    ] = None
    python: Annotated[
        str | None,
        typer.Option(help="Interpreter that {python} in a command stands for.", rich_help_panel=COMMANDS),
    ] = None
    read: Annotated[
        list[Path] | None,
        typer.Option(help="Folder that commands may read; may be repeated.", rich_help_panel=COMMANDS),
    ] = None
    timeout: Annotated[
        float | None,
        typer.Option(min=0.001, help="Seconds that one command may take.", rich_help_panel=HOW),
    ] = None


def with_shared_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each field of :class:`Shared`, in place of its parameter ``shared``."""
    types = get_type_hints(Shared, include_extras=True)
    options = [
        inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default)
        for field in dataclasses.fields(Shared)
    ]
    own = inspect.signature(command).parameters
    parameters: list[inspect.Parameter] = []
    for name, parameter in own.items():
        added = options if name == "shared" else [parameter]
        parameters += [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in added]

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        shared = Shared(**{option.name: given.pop(option.name) for option in options})
        command(**given, shared=shared)

    hints = get_type_hints(command, include_extras=True) | types
    with_options.__annotations__ = {one.name: hints[one.name] for one in parameters}
    typed = [one.replace(annotation=hints[one.name]) for one in parameters]
    with_options.__signature__ = inspect.Signature(typed)  # type: ignore[attr-defined]
    return with_options


def only_with_from(context: typer.Context) -> None:
    """Refuse whatever was given beside ``--from`` and does not say where to write.

    Raises:
        typer.BadParameter: with the names of the options.
    """
    names = [
        parameter.opts[0] if parameter.param_type_name == "option" else parameter.name.upper()
        for parameter in context.command.params
        if parameter.name is not None and parameter.name not in _WITH_FROM and given(context, parameter.name)
    ]
    if names:
        raise typer.BadParameter(f"it measures nothing: leave {', '.join(names)} out", param_hint="--from")


def given(context: typer.Context, name: str) -> bool:
    """Say whether somebody gave a parameter, rather than its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def compare_options(
    benchmark: str | None,
    shared: Shared,
    *,
    protect: list[str] | None = None,
    pairs: int | None,
    planned_pairs: int | None = None,
    min_gain: float | None = None,
    all_pairs: bool,
    shared_only: bool = False,
) -> CompareOptions:
    """Return what a comparison is asked for, with the defaults that depend on other options.

    Raises:
        typer.BadParameter: an option is wrong, or does not go with another one.
    """
    from roundkit.rounds.compare.instruments import instruments
    from roundkit.rounds.compare.options import CompareOptions

    metric = shared.metric
    if benchmark is None:
        raise typer.BadParameter("say what to run", param_hint="--benchmark")
    wanted = shared.instrument or ("wall" if metric is None else "reported")
    known = {str(name): name for name in instruments()}
    if wanted not in known:
        raise typer.BadParameter(f"{wanted!r} is none of {', '.join(known)}", param_hint="--instrument")
    if (wanted == "reported") != (metric is not None):
        raise typer.BadParameter("--metric and the instrument reported go together", param_hint="--metric")
    if metric is None and not (shared.unit is None and shared.direction is None):
        raise typer.BadParameter("--unit and --direction are those of --metric", param_hint="--metric")
    return CompareOptions(
        benchmark=command_words(benchmark, "--benchmark"),
        instrument=known[wanted],
        metric=metric,
        unit=shared.unit or "ms",
        direction="higher" if shared.direction is Better.MORE else "lower",
        validator=_words(shared.validator, "--validator"),
        build=_words(shared.build, "--build"),
        package=shared.package,
        protected_paths=tuple(protect or ()),
        pairs=pairs,
        planned_pairs=planned_pairs,
        min_gain=min_gain,
        all_pairs=all_pairs,
        shared_only=shared_only,
        timeout_s=shared.timeout,
        python=shared.python,
        readable=tuple(str(folder.absolute()) for folder in shared.read or ()),
        cpus=tuple(word.strip() for word in shared.cpus.split(",")) if shared.cpus else (),
    )


def _words(command: str | None, option: str) -> tuple[str, ...] | None:
    return None if command is None else command_words(command, option)


def check_pyperf(options: CompareOptions) -> None:
    """Refuse a metric that pyperf does not know, before anything is measured for it.

    Raises:
        Refused: ``pyperf-unit``.
    """
    from roundkit.analysis.exporters.pyperf import pyperf_unit
    from roundkit.rounds.compare.instruments import METRICS

    _, unit = METRICS.get(options.instrument, ("", options.unit))
    pyperf_unit(unit, options.direction)
