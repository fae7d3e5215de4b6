"""``roundkit pilot``: what came of it, audited and as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roundkit.cli.audit_reports import tell_audits
from roundkit.cli.pilot import PilotDir, pilot


@pilot.command()
def audit(
    pilot_dir: Annotated[list[Path], typer.Argument(metavar="PILOT_DIR...", help="Folders of pilots.")],
    expect: Annotated[str | None, typer.Option(help="The digest that was published elsewhere.")] = None,
    head: Annotated[
        str | None,
        typer.Option(help="The head that `pilot run` printed, or a ledger's that `intervene` did."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Recompute everything of a pilot from its bytes.

    Examples:
        roundkit pilot audit ../pilot-01
        roundkit pilot audit ../pilot-01 --expect "$(cat published.txt)" --json

    Exit codes:
        0: every check passed
        1: something disagrees; the table says what
    """
    from roundkit.audit import audit_pilot
    from roundkit.audit.policy import audit_policy
    from roundkit.cli.progress import shown_progress
    from roundkit.evidence.pilot_kind import pilot_kind

    with shown_progress(stderr=True) as progress:
        reports = [
            (audit_policy if pilot_kind(path) == "policy" else audit_pilot)(
                path, expect=expect, head=head, progress=progress
            )
            for path in pilot_dir
        ]
    tell_audits(reports, as_json=as_json)


@pilot.command()
def report(
    pilot_dir: PilotDir,
    out: Annotated[Path, typer.Option(help="The HTML file to write.")],
) -> None:
    """Write one self-contained, offline HTML file about a pilot; provisional while tuples are missing.

    Examples:
        roundkit pilot report ../pilot-01 --out pilot.html
    """
    from roundkit.cli.progress import shown_progress
    from roundkit.evidence.pilot_kind import pilot_kind
    from roundkit.report import build_pilot_report
    from roundkit.report.policy_run import build_policy_report

    build = build_policy_report if pilot_kind(pilot_dir) == "policy" else build_pilot_report
    with shown_progress() as progress:
        build(pilot_dir, out, progress=progress)
    typer.echo(str(out))
