"""Parts of a wave campaign's page: its headline, and the footer that says who can check it."""

from __future__ import annotations

from roundkit import __version__
from roundkit.core.canonical import digest_file
from roundkit.evidence import wave_layout as names
from roundkit.models.evidence import WaveIndex
from roundkit.report.facts import page_footer
from roundkit.report.markup import escape
from roundkit.report.pilot_words import NO_MODEL_AGENTS
from roundkit.report.views import Html
from roundkit.waves.folder import CampaignFolder, read_record


def waves_headline(folder: CampaignFolder, lead: str) -> Html:
    """What the waves banked, and who drafted, where that was no model.

    Args:
        folder: The campaign's folder, or an export of it.
        lead: What the waves banked, in a sentence.
    """
    title = f"Wave campaign {folder.plan.plan.campaign_id}"
    made = sorted({row.provenance for row in folder.ledger()})
    notes = [NO_MODEL_AGENTS[kind] for kind in made if NO_MODEL_AGENTS[kind]]
    warned = "".join(f'<p class="rk-provenance">{escape(note)}</p>' for note in notes)
    return Html(
        f'<header class="rk-head"><p class="rk-eyebrow">{escape(title)}</p><h1>{escape(lead)}</h1>{warned}'
        "</header>",
        "\n".join([f"{title}: {lead}", *notes]),
    )


def waves_footer(folder: CampaignFolder) -> Html:
    """Digests, versions, and the command that recomputes an export; a campaign itself has none yet.

    Raises:
        Refused: ``malformed``: the export's index is none.
    """
    index = read_record(folder.at(names.INDEX), WaveIndex)
    return page_footer(
        (
            ("wave plan, SHA-256", folder.plan_sha256),
            *(_not_exported() if index is None else _exported(folder, index)),
            ("reported by", f"roundkit {__version__}"),
        ),
        (),
    )


def _exported(folder: CampaignFolder, index: WaveIndex) -> tuple[tuple[str, str], ...]:
    digest = digest_file(folder.at(names.INDEX))
    return (
        ("evidence index, SHA-256", digest),
        ("exported by", f"roundkit {index.tool_version}"),
        ("recompute with", f"roundkit audit evidence/{index.campaign_id} --expect {digest}"),
    )


def _not_exported() -> tuple[tuple[str, str], ...]:
    return (
        ("evidence", "none before an export: nobody else can recompute this page"),
        ("export it with", "roundkit waves export WAVE_DIR --out EVIDENCE_DIR"),
    )
