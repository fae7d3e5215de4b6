"""What ``roundkit doctor`` prints: a line for each thing, and below what is missing how to get it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from roundkit.cli.tables import console
from roundkit.core.text import visible

if TYPE_CHECKING:
    from roundkit.rounds.doctor import Diagnosis, Finding, State

_STYLES: dict[State, str] = {"present": "green", "missing": "red", "untuned": "yellow", "unknown": "dim"}
_STATE_WIDTH = 9


def show_diagnosis(found: Diagnosis) -> None:
    """Print every part, and in one sentence whether rounds can run."""
    out = console()
    for part in found.parts:
        out.print(Text(part.title, style="bold"))
        for finding in part.findings:
            out.print(Padding(_line(finding), (0, 0, 0, 2), expand=False))
            if finding.remedy:
                out.print(
                    Padding(Text(f"→ {visible(finding.remedy)}"), (0, 0, 0, 2 + _STATE_WIDTH), expand=False)
                )
        out.print()
    missing = [each.name for part in found.parts for each in part.findings if _is_missed(each)]
    if missing:
        out.print(Text(f"rounds cannot run here: {', '.join(missing)} missing"))
    else:
        out.print(Text("rounds can run here; reports, ledgers and audits run anywhere"))


def _line(finding: Finding) -> Text:
    line = Text(f"{finding.state:{_STATE_WIDTH}}", style=_STYLES[finding.state])
    line.append(visible(finding.name), style="default")
    if finding.detail:
        line.append(f": {visible(finding.detail)}", style="default")
    return line


def _is_missed(finding: Finding) -> bool:
    return finding.needed and finding.state != "present"
