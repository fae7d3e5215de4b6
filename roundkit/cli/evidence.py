"""Commands on evidence: report, audit, notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roundkit.cli.app import app
from roundkit.cli.progress import shown_progress


@app.command(rich_help_panel="Evidence")
def report(
    source: Annotated[Path, typer.Argument(metavar="EVIDENCE_DIR", help="The evidence of a closed round.")],
    out: Annotated[Path, typer.Option(help="The HTML file to write.")],
) -> None:
    """Write one self-contained, offline HTML file about a closed round."""
    from roundkit.report import build_report

    build_report(source, out)
    typer.echo(str(out))


@app.command(rich_help_panel="Evidence")
def audit(
    evidence: Annotated[list[Path], typer.Argument(metavar="EVIDENCE_DIR...", help="Evidence folders.")],
    repository: Annotated[
        Path | None, typer.Option(help="Campaign repository, to check its commits.")
    ] = None,
    expect: Annotated[str | None, typer.Option(help="The index digest that was published elsewhere.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Recompute every verdict and hash from the raw samples; exit 1 on any disagreement."""
    import json

    from roundkit.audit import audit_round, render

    reports = [audit_round(path, repository=repository, expect=expect) for path in evidence]
    if as_json:
        typer.echo(json.dumps([done.to_json_value() for done in reports], indent=2))
    else:
        for done in reports:
            render(done)
    if not all(done.passed for done in reports):
        raise typer.Exit(1)


@app.command(rich_help_panel="Evidence")
def notebook(
    name: Annotated[str, typer.Argument(help="A shipped notebook's name, or a path.")],
    out: Annotated[Path, typer.Option(help="The executed notebook to write.")],
    parameter: Annotated[
        list[str] | None, typer.Option("-p", "--parameter", metavar="KEY=VALUE", help="May be repeated.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Also write this HTML file.")] = None,
) -> None:
    """Run a notebook in batch; an unknown parameter or a wrong type is refused with what it takes.

    A whole round, overnight: `prepare`, `launch -p drive=replay`, then `close`. `control` shows how a round
    stands. A cell that fails, or a last cell that does not say `done`, ends with exit code 1; the executed
    notebook is kept at OUT either way.

    Example: roundkit notebook close -p round_dir=../round-01 --out closed.ipynb --html closed.html
    """
    from roundkit.report import run_notebook

    pairs = [item.partition("=") for item in parameter or []]
    if any(not sign for _, sign, _ in pairs):
        raise typer.BadParameter("a parameter is given as KEY=VALUE")
    with shown_progress() as progress:
        run = run_notebook(name, {key: value for key, _, value in pairs}, out, html, progress=progress)
    typer.echo(run.outcome.sentence)
    typer.echo(str(html or out))
