"""Commands on evidence: report, audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roundkit.cli.app import app
from roundkit.cli.progress import shown_progress


@app.command(rich_help_panel="Evidence")
def report(
    source: Annotated[
        Path,
        typer.Argument(metavar="EVIDENCE_DIR|ROUND_DIR", help="A round's evidence, or its directory."),
    ],
    out: Annotated[Path, typer.Option(help="The HTML file to write.")],
) -> None:
    """Write one self-contained, offline HTML file about a round; provisional while the round is open."""
    from roundkit.report import build_report

    with shown_progress() as progress:
        build_report(source, out, progress=progress)
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

    with shown_progress(stderr=True) as progress:
        reports = [
            audit_round(path, repository=repository, expect=expect, progress=progress) for path in evidence
        ]
    if as_json:
        typer.echo(json.dumps([done.to_json_value() for done in reports], indent=2))
    else:
        for done in reports:
            render(done)
    if not all(done.passed for done in reports):
        raise typer.Exit(1)
