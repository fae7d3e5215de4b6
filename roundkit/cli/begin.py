"""``roundkit init``: a campaign for somebody's own repository, with gates that its benchmark can bear."""

from __future__ import annotations

import sys
from dataclasses import replace
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
from roundkit.cli.progress import shown_progress
from roundkit.core.text import visible

if TYPE_CHECKING:
    from roundkit.rounds.begin import Beginning


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
        list[str] | None, typer.Option(help="Glob that no lane may change; may be repeated.")
    ] = None,
    min_gain: Annotated[
        float | None,
        typer.Option(min=0.0001, max=1.0, help="Smallest gain worth keeping, a fraction; else 0.01."),
    ] = None,
    pairs: Annotated[int, pairs_option("Pairs to measure the noise with")] = 12,
    most_pairs: Annotated[int, pairs_option("Most pairs that one experiment may take")] = 40,
    no_noise: Annotated[
        bool, typer.Option("--no-noise", help="Measure nothing; the gates are the template's.")
    ] = False,
    name: Annotated[str | None, typer.Option(help="The campaign's id; else the repository's name.")] = None,
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Where the campaign goes; REPOSITORY/campaign by default.")
    ] = None,
) -> None:
    """Begin a campaign in your own repository: measure its noise, propose gates, write campaign.yaml.

    The last commit is measured against itself. What the noise lets a round show is said in words, and the
    gates are set to it; the notebooks are copied beside the file. Nothing is overwritten. Benchmark and
    validator are asked for when they are left out.

    Example: roundkit init --benchmark "python3 bench.py" --validator "python3 check.py"
    """
    from roundkit.rounds.begin import begin, check_place, write_campaign

    top = repository.resolve()
    place = (folder or top / "campaign").resolve()
    check_place(top, place)
    benchmark = benchmark or _asked("Benchmark command", "--benchmark")
    if shared.validator is None and _somebody():
        answer = typer.prompt("Validator command (empty: none)", default="", show_default=False)
        shared = replace(shared, validator=answer or None)
    options = compare_options(
        benchmark, shared, protect=protect, pairs=pairs, min_gain=min_gain, all_pairs=True, shared_only=True
    )
    with shown_progress(stderr=True) as progress:
        beginning = begin(
            top, place, options, campaign_id=name or _identifier(top.name), measured=not no_noise,
            most_pairs=most_pairs, progress=progress,
        )  # fmt: skip
    written = write_campaign(beginning, place)
    _tell(beginning, written, _copied_notebooks(place))


def _somebody() -> bool:
    return sys.stdin.isatty()


def _asked(what: str, option: str) -> str:
    """Ask a person; a script that left the option out is told of it instead.

    Raises:
        typer.BadParameter: nobody is there to be asked.
    """
    if not _somebody():
        raise typer.BadParameter("say what to run", param_hint=option)
    return str(typer.prompt(what))


def _identifier(name: str) -> str:
    """Return a folder's name as an identifier: what no identifier may hold becomes a hyphen."""
    kept = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in name
    )
    return kept.strip("._-")[:64] or "my-campaign"


def _copied_notebooks(place: Path) -> list[Path]:
    from roundkit.report import copy_notebook, shipped_notebooks

    folder = place / "notebooks"
    names = [notebook.name for notebook in shipped_notebooks()]
    return [copy_notebook(name, folder) for name in names if not (folder / f"{name}.ipynb").exists()]


def _tell(beginning: Beginning, written: Path, notebooks: list[Path]) -> None:
    gates = beginning.proposal
    for sentence in gates.words:
        typer.echo(sentence)
    typer.echo(f"gates: ab_ba_pairs: {gates.ab_ba_pairs}, min_gain: {gates.min_gain:g}")
    if beginning.noise is not None:
        pairs, trial_s = gates.ab_ba_pairs, beginning.noise.trial_s
        typer.echo(f"one experiment takes about {2 * pairs * trial_s / 60:.1f} minutes of trials")
    typer.echo(visible(f"wrote {written}; {len(notebooks)} notebooks in {written.parent / 'notebooks'}"))
    typer.echo(
        "next: describe directions worth trying under search_plan, then\n"
        f"  roundkit prepare --campaign {written} --propose 4 > round.yaml"
    )
