"""Commands on evidence: report, audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roundkit.cli.app import app
from roundkit.cli.audit_reports import tell_audits
from roundkit.cli.progress import shown_progress


@app.command(rich_help_panel="Evidence")
def report(
    source: Annotated[
        Path,
        typer.Argument(metavar="EVIDENCE_DIR|ROUND_DIR", help="A round's evidence, or its directory."),
    ],
    out: Annotated[Path, typer.Option(help="The HTML file to write.")],
) -> None:
    """Write one self-contained, offline HTML file about a round; provisional while the round is open.

    Examples:
        roundkit report evidence/code-search/rounds/r01 --out ../r01/report.html
        roundkit report ../round-01 --out ../round-01/so-far.html
    """
    from roundkit.report import build_report

    with shown_progress() as progress:
        build_report(source, out, progress=progress)
    typer.echo(str(out))


@app.command(rich_help_panel="Evidence")
def audit(
    evidence: Annotated[list[Path], typer.Argument(metavar="EVIDENCE_DIR...", help="Evidence folders.")],
    repository: Annotated[
        Path | None, typer.Option(help="Campaign repository, to check a round's commits.")
    ] = None,
    expect: Annotated[str | None, typer.Option(help="The digest that was published elsewhere.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Recompute every verdict, figure and hash of a round, a pilot or a wave campaign from its evidence.

    Examples:
        roundkit audit evidence/code-search/rounds/r01
        # A pilot and an exported wave campaign
        roundkit audit evidence/knobs/pilots/p-versus-s evidence/c-functions
        # Check the commits too, and the digest that was published elsewhere
        roundkit audit evidence/r01 --repository . --expect "$(cat published.txt)"

    Exit codes:
        0: every check passed
        1: something disagrees; the table says what
    """
    from roundkit.audit import audit_evidence

    with shown_progress(stderr=True) as progress:
        reports = [
            audit_evidence(path, repository=repository, expect=expect, progress=progress) for path in evidence
        ]
    tell_audits(reports, as_json=as_json)
