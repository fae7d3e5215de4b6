"""A request that both halves end after their current step; a file, so that it needs nobody to be running."""

from __future__ import annotations

from roundkit.core.clock import format_utc, now_utc
from roundkit.core.files import atomic_write
from roundkit.evidence import wave_layout as names
from roundkit.waves.folder import CampaignFolder


def ask(folder: CampaignFolder) -> None:
    """Ask both halves to end after their current step; everything stays resumable."""
    atomic_write(folder.at(names.STOP), f"asked at {format_utc(now_utc())}\n".encode())


def is_asked(folder: CampaignFolder) -> bool:
    """Say whether the end was asked for."""
    return folder.at(names.STOP).exists()


def lift(folder: CampaignFolder) -> None:
    """Take the request back: whoever starts a half wants it to go on."""
    folder.at(names.STOP).unlink(missing_ok=True)
