"""``roundkit init``: a campaign for somebody's own repository, with gates that its benchmark can bear."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roundkit.cli.app import app
from roundkit.cli.compare_options import (
    BENCHMARK,
    Shared,
    compare_options,
    pairs_option,
    with_shared_options,
)
from roundkit.cli.options import somebody
from roundkit.cli.progress import shown_progress
from roundkit.core.progress import duration
from roundkit.core.text import visible

if TYPE_CHECKING:
    from roundkit.rounds.new_campaign import Beginning
    from roundkit.rules.quieter import Quieter


_CAMPAIGN = "The campaign"


@app.command("init", rich_help_panel="Start here")
@with_shared_options
def init(
    repository: Annotated[
        Path, typer.Argument(metavar="REPOSITORY", help="Top of the git working tree.")
    ] = Path(),
    benchmark: Annotated[str | None, BENCHMARK] = None,
    *,
    shared: Shared,
    protect: Annotated[
        list[str] | None,
        typer.Option(help="Glob that no lane may change; may be repeated.", rich_help_panel=_CAMPAIGN),
    ] = None,
    min_gain: Annotated[
        float | None,
        typer.Option(
            min=0.0001,
            max=1.0,
            help="Smallest gain worth keeping, a fraction; the template's unless given.",
            rich_help_panel=_CAMPAIGN,
        ),
    ] = None,
    pairs: Annotated[int, pairs_option("Pairs to measure the noise with")] = 12,
    most_pairs: Annotated[
        int, pairs_option("Most pairs that the gates may ask of one experiment", panel=_CAMPAIGN)
    ] = 40,
    no_noise: Annotated[
        bool, typer.Option("--no-noise", help="Measure nothing; the gates are the template's.")
    ] = False,
    name: Annotated[
        str | None,
        typer.Option(help="The campaign's id; else the repository's name.", rich_help_panel=_CAMPAIGN),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--dir",
            help="Where the campaign goes; REPOSITORY/campaign by default.",
            rich_help_panel=_CAMPAIGN,
        ),
    ] = None,
) -> None:
    """Begin a campaign in your own repository: measure its noise, propose gates, write campaign.yaml.

    A benchmark is any command that does the work: its wall time counts, unless --metric names a number that
    it reports. The last commit is measured against itself. What the noise lets a round show is said in words,
    and the gates are set to it; the notebooks are copied beside the file. Nothing is overwritten, and nothing
    is written before everything is known. Benchmark and validator are asked for when they are left out, and
    whether CPU time is to decide where it would show gains of half the size or less.

    Examples:
        # Ask for the benchmark and for the validator
        roundkit init
        roundkit init --benchmark "python3 bench.py" --validator "python3 check.py"
        # The benchmark's own number, from ROUNDKIT_RESULT_PATH
        roundkit init --benchmark "python3 bench.py" --metric latency_ms
        # A program that is built first
        roundkit init ../compressor --build "make -s" --benchmark "./bench"

    Files:
        REPOSITORY/campaign/campaign.yaml: The campaign: commands, gates, directions worth trying.
        REPOSITORY/campaign/notebooks: The notebooks, without outputs.

    Variables:
        TMPDIR: Where the copies that are measured lie.
        ROUNDKIT_LEASE_ROOT: Folder of the leases on this machine's cores.
    """
    from roundkit.rounds.new_campaign import CAMPAIGN, begin, check_place, left_out

    top = repository.resolve()
    place = (folder or top / "campaign").resolve()
    check_place(top, place)
    if (sentence := left_out(top, place)) is not None:
        typer.echo(visible(sentence), err=True)
    benchmark = benchmark or _asked(f"Benchmark command, run at the top of {top.name}", "--benchmark")
    if shared.validator is None and somebody():
        asked = "Validator command, which fails when an answer is wrong (empty: none)"
        answer = typer.prompt(asked, default="", show_default=False)
        shared = replace(shared, validator=answer or None)
    options = compare_options(
        benchmark, shared, protect=protect, pairs=pairs, min_gain=min_gain, all_pairs=True, shared_only=True
    )
    begun = partial(
        begin, top, place, campaign_id=name or _identifier(top.name), measured=not no_noise,
        most_pairs=most_pairs,
    )  # fmt: skip
    with shown_progress(stderr=True) as progress:
        beginning = begun(options, progress=progress)
    is_open = shared.instrument is None and shared.metric is None
    quieter = beginning.quieter if is_open else None
    if quieter is not None and _takes_it(quieter):
        beginning = begun(replace(options, instrument="cpu"), known=beginning.noise)
    notebooks = _written(beginning, place)
    _tell(beginning, top, place / CAMPAIGN, notebooks)
    if quieter is not None and not somebody():
        _tell_how(quieter, place / CAMPAIGN)


def _takes_it(quieter: Quieter) -> bool:
    """Ask a person whether CPU time is to decide; without an answer it does not: wall is what is felt."""
    if not somebody():
        return False
    for sentence in quieter.words():
        typer.echo(sentence)
    return typer.confirm("Let `cpu` decide instead of `wall`?", default=False)


def _tell_how(quieter: Quieter, written: Path) -> None:
    """Tell a script's reader of CPU time, and how to begin again with it."""
    for sentence in quieter.words():
        typer.echo(sentence)
    again = shlex.join(["roundkit", *sys.argv[1:], "--instrument", "cpu"])
    typer.echo(visible(f"to let it decide, begin again:\n  rm {_typed(written)}\n  {again}"))


def _asked(what: str, option: str) -> str:
    """Ask a person; a script that left the option out is told of it instead.

    Raises:
        typer.BadParameter: nobody is there to be asked.
    """
    if not somebody():
        raise typer.BadParameter(
            'say what to run, such as "python3 bench.py": any command that does the work', param_hint=option
        )
    return str(typer.prompt(what))


def _identifier(name: str) -> str:
    """Return a folder's name as an identifier: what no identifier may hold becomes a hyphen."""
    kept = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in name
    )
    return kept.strip("._-")[:64] or "my-campaign"


def _written(beginning: Beginning, place: Path) -> list[Path]:
    """Write the campaign, whole where its folder is new; return the names of the notebooks beside it.

    In a folder that holds something the campaign file comes last, so that the same command goes on.
    """
    from roundkit.core.files import whole_folder
    from roundkit.report import copy_notebook, shipped_notebooks
    from roundkit.rounds.new_campaign import write_campaign

    names = [notebook.name for notebook in shipped_notebooks()]
    is_new = not place.exists() or not any(place.iterdir())
    with whole_folder(place) if is_new else nullcontext(place) as folder:
        inside = folder / "notebooks"
        copied = [copy_notebook(name, inside) for name in names if not (inside / f"{name}.ipynb").exists()]
        write_campaign(beginning, folder)
    return copied


def _tell(beginning: Beginning, top: Path, written: Path, notebooks: list[Path]) -> None:
    gates, campaign = beginning.proposal, beginning.campaign
    for sentence in gates.words:
        typer.echo(sentence)
    typer.echo(f"gates: ab_ba_pairs: {gates.ab_ba_pairs}, min_gain: {gates.min_gain:g}")
    typer.echo(f"what decides: {campaign.metric.name}, {campaign.metric.direction} is better")
    if beginning.noise is not None:
        pairs, trial_s = gates.ab_ba_pairs, beginning.noise.trial_s
        typer.echo(f"one experiment takes about {duration(2 * pairs * trial_s)} of trials")
    at, drafted, out = (
        _typed(path) for path in (written, written.with_name("round.yaml"), top.parent / "round-01")
    )
    beside = (
        f", and {len(notebooks)} notebooks in {_typed(written.parent / 'notebooks')}" if notebooks else ""
    )
    typer.echo(visible(f"wrote {at}{beside}"))
    typer.echo(
        visible(
            f"next: 1. describe directions worth trying under search_plan in {at}\n"
            "      2. draft a round, then give its lanes globs and a deadline:\n"
            f"           roundkit prepare --campaign {at} --propose 4 > {drafted}\n"
            "      3. freeze it:\n"
            f"           roundkit prepare --campaign {at} --round {drafted} --out {out}"
        )
    )


def _typed(path: Path) -> str:
    """Write a path as somebody here would type it."""
    here = os.path.relpath(path)
    return shlex.quote(here if here.count("..") <= 1 else str(path))
