"""What the drafter is at, on disk: for whoever watches, and for a gater that asks whether more comes."""

from __future__ import annotations

from roundkit.core.files import atomic_write
from roundkit.evidence import wave_layout as names
from roundkit.models.wave_records import DrafterState
from roundkit.waves.folder import CampaignFolder, read_record
from roundkit.waves.locks import runs


def write_state(folder: CampaignFolder, state: DrafterState) -> None:
    """Say what the drafter is at.

    Raises:
        OSError: it cannot be written.
    """
    atomic_write(folder.at(names.DRAFTER), state.to_bytes())


def read_state(folder: CampaignFolder) -> DrafterState | None:
    """Return what the drafter last said; null before it first ran."""
    return read_record(folder.at(names.DRAFTER), DrafterState)


def is_finished(folder: CampaignFolder) -> bool:
    """Say whether the drafter came to its end, so that no wave follows unless somebody starts it again.

    One that was killed is not finished: its waves are waited for.
    """
    state = read_state(folder)
    return state is not None and state.state == "ended" and not runs(folder, "drafter")
