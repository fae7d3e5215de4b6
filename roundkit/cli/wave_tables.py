"""Tables of an unattended campaign for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from roundkit.cli.tables import console
from roundkit.core.text import visible

if TYPE_CHECKING:
    from roundkit.waves.status import CampaignStatus, WaveStatus

_HEADINGS = (
    "wave", "state", "band", "lever set", "targets", "shards", "workers", "requests", "429s", "truncated",
    "drafts", "gated", "banked", "commit",
)  # fmt: skip
_WORDS = ("wave", "state", "band", "lever set", "commit")
_COMMIT_DIGITS = 12


def waves_table(status: CampaignStatus) -> None:
    """Print how a campaign stands."""
    out = console()
    table = Table(title=f"campaign {status.campaign_id}", title_justify="left")
    for heading in _HEADINGS:
        table.add_column(heading, justify="left" if heading in _WORDS else "right")
    for wave in status.waves:
        table.add_row(*(Text(visible(cell)) for cell in _cells(wave)))
    out.print(table)
    for line in _lines(status):
        out.print(Text(visible(line)))


def _cells(wave: WaveStatus) -> tuple[str, ...]:
    traffic, row = wave.traffic, wave.row
    return (
        wave.tag,
        wave.state,
        wave.band,
        wave.lever_set,
        str(wave.targets),
        "" if wave.shards is None else f"{wave.ended} of {wave.shards}",
        "" if wave.workers is None else str(wave.workers),
        "" if traffic is None else str(traffic.requests),
        "" if traffic is None else str(traffic.platform_429 + traffic.provider_429),
        "" if traffic is None else str(traffic.truncated),
        "" if row is None else str(row.drafts),
        "" if row is None else str(row.gated),
        "" if row is None else str(row.banked),
        "" if row is None else (row.commit or "")[:_COMMIT_DIGITS],
    )


def _lines(status: CampaignStatus) -> list[str]:
    drafter, decision, fleet = status.drafter, status.decision, status.fleet
    said = "never ran" if drafter is None else f"{drafter.state}: {drafter.reason}"
    idle = "–" if fleet.idle_share is None else f"{100 * fleet.idle_share:.1f} %"
    mean = "–" if fleet.mean_running is None else f"{fleet.mean_running:.1f}"
    credit = "not asked for"
    if drafter is not None:
        known = drafter.credit_usd
        credit = f"unknown: {drafter.credit_reason}" if known is None else f"{known:.2f} USD"
    why = "" if decision is None else f" ({decision.reason} at {decision.workers} in wave {decision.tag})"
    return [
        f"drafter: {'runs' if status.drafter_runs else 'not running'}, {said}",
        f"gater: {'runs' if status.gater_runs else 'not running'}",
        f"queue: {', '.join(status.queue) or 'empty'} (depth {status.queue_depth})",
        f"workers: {status.workers}{why}",
        f"fleet: idle {idle} of {fleet.wall_s:.0f} s, {mean} agents on average, {fleet.most} at most",
        f"credit: {credit}",
        *(["stop: asked for"] if status.stop_asked else []),
    ]
