"""An audit as a table in a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from roundkit.audit.findings import AuditReport


def render(report: AuditReport, console: Console | None = None) -> None:
    """Print the checks as a table, on standard output unless another console is given."""
    (console or Console()).print(as_table(report))


def as_table(report: AuditReport) -> Table:
    """Return the checks as a table; untrusted text in it is inert and printable."""
    failed = len(report.failures)
    verdict = "every check passed" if report.passed else f"{failed} check{'s' if failed > 1 else ''} FAILED"
    title = f"{_plain(report.subject)}: {verdict}"
    table = Table(title=title, caption=f"evidence {report.digest or 'without a digest'}", expand=False)
    table.add_column("check", no_wrap=True)
    table.add_column("result", no_wrap=True)
    table.add_column("where", overflow="fold")
    table.add_column("detail", overflow="fold")
    for check in report.checks:
        style = "" if check.passed else "bold red"
        table.add_row(
            check.name,
            "passed" if check.passed else "FAILED",
            _plain(check.where),
            _plain(check.detail),
            style=style,
        )
    return table


def _plain(text: str) -> str:
    return escape("".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text))
