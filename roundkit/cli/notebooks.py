"""Commands on notebooks: run one with parameters, list what ships, copy one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from roundkit.cli.app import app
from roundkit.cli.progress import shown_progress


class _RunByDefault(TyperGroup):
    """Takes a notebook's name in place of a command: ``notebook NAME`` means ``notebook run NAME``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = {*self.commands, "-h", "--help"}
        return super().parse_args(ctx, args if not args or args[0] in known else ["run", *args])


notebooks = typer.Typer(
    cls=_RunByDefault,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Run, list or copy notebooks: `roundkit notebook NAME -p key=value --out x.ipynb --html x.html`.",
)
app.add_typer(notebooks, name="notebook", rich_help_panel="Evidence")


@notebooks.command("run")
def run(
    name: Annotated[str, typer.Argument(help="A shipped notebook's name, or a path.")],
    out: Annotated[Path, typer.Option(help="The executed notebook to write.")],
    parameter: Annotated[
        list[str] | None, typer.Option("-p", "--parameter", metavar="KEY=VALUE", help="May be repeated.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Also write this HTML file.")] = None,
) -> None:
    """Run a notebook with parameters, which are checked; the word `run` may be left out.

    A whole round, overnight: `prepare`, `launch -p drive=replay`, then `close`. `control` shows how a round
    stands. A cell that fails, or a last cell that does not say `done`, ends with exit code 1; the executed
    notebook is kept at OUT either way.

    Example: roundkit notebook close -p round_dir=../round-01 --out closed.ipynb --html closed.html
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
    """List the notebooks that ship, and what each takes."""
    from roundkit.report import shipped_notebooks

    for notebook in shipped_notebooks():
        typer.echo(f"{notebook.name}: {notebook.title}")
        for parameter in notebook.parameters:
            typer.echo(f"    {parameter}")


@notebooks.command("copy")
def copy(
    name: Annotated[str, typer.Argument(help="A shipped notebook's name.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the copy goes.")],
) -> None:
    """Copy a shipped notebook to work on it; what is there already is never overwritten."""
    from roundkit.report import copy_notebook

    typer.echo(str(copy_notebook(name, folder)))
