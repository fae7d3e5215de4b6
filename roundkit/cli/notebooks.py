"""Commands on notebooks: run one with parameters, list what ships, copy one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from roundkit.cli.app import app
from roundkit.cli.manual import Manual, ManualGroup
from roundkit.cli.progress import shown_progress


class _RunByDefault(ManualGroup):
    """Takes a notebook's name in place of a command: ``notebook NAME`` means ``notebook run NAME``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = {*self.commands, "-h", "--help"}
        return super().parse_args(ctx, args if not args or args[0] in known else ["run", *args])


notebooks = Manual(
    cls=_RunByDefault,
    help="""Run, list or copy notebooks; `roundkit notebook NAME …` runs one.

    Examples:
        roundkit notebook list
        roundkit notebook audit_evidence -p evidence=evidence/r01 --out audited.ipynb
    """,
)
app.add_typer(notebooks, name="notebook", rich_help_panel="Evidence")


@notebooks.command("run")
def run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A shipped notebook's name, or a path.")],
    out: Annotated[Path, typer.Option(help="The executed notebook to write.")],
    parameter: Annotated[
        list[str] | None, typer.Option("-p", "--parameter", metavar="KEY=VALUE", help="May be repeated.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Also write this HTML file.")] = None,
) -> None:
    """Run a notebook with parameters, which are checked; the word `run` may be left out.

    A whole round, overnight: `prepare`, `launch -p drive=replay`, then `close`. `control` shows how a round
    stands. The executed notebook is kept at OUT, however it ended.

    Examples:
        # What it takes
        roundkit notebook list
        roundkit notebook close -p round_dir=../round-01 --out closed.ipynb
        roundkit notebook run mine.ipynb -p places=frames --out done.ipynb

    Exit codes:
        0: its last cell says `done`
        1: a cell failed, the kernel died, or the last cell says otherwise
        3: an unknown parameter or a wrong type; nothing was run
    """
    from roundkit.report import run_notebook

    pairs = [item.partition("=") for item in parameter or []]
    if any(not sign for _, sign, _ in pairs):
        raise typer.BadParameter("a parameter is given as KEY=VALUE")
    given = {key: value for key, _, value in pairs}
    with shown_progress() as progress:
        done = run_notebook(name, given, out, html, progress=progress)
    typer.echo(done.outcome.sentence)
    typer.echo(str(html or out))


@notebooks.command("list")
def list_() -> None:
    """List the notebooks that ship, and what each takes.

    Examples:
        roundkit notebook list
    """
    from roundkit.report import shipped_notebooks

    for notebook in shipped_notebooks():
        typer.echo(f"{notebook.name}: {notebook.title}")
        for parameter in notebook.parameters:
            typer.echo(f"    {parameter}")


@notebooks.command("copy")
def copy(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A shipped notebook's name.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the copy goes.")],
) -> None:
    """Copy a shipped notebook to work on it; what is there already is never overwritten.

    Examples:
        roundkit notebook copy explore_ledger notebooks
    """
    from roundkit.report import copy_notebook

    typer.echo(str(copy_notebook(name, folder)))
