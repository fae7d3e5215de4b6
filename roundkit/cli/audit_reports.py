"""What the audit commands print, and the exit code that follows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from roundkit.audit import AuditReport


def tell_audits(reports: Sequence[AuditReport], *, as_json: bool) -> None:
    """Print reports as tables, or together as JSON.

    Raises:
        typer.Exit: with 1, where something disagrees.
    """
    from roundkit.audit import render

    if as_json:
        typer.echo(json.dumps([done.to_json_value() for done in reports], indent=2))
    else:
        for done in reports:
            render(done)
    if not all(done.passed for done in reports):
        raise typer.Exit(1)
