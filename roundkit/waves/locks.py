"""One drafter, one gater and one run a campaign: locks that the kernel releases when their holder dies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from roundkit.evidence import wave_layout as names
from roundkit.rounds.locks import hold_lock, is_held
from roundkit.waves.folder import CampaignFolder

Half = Literal["drafter", "gater", "run"]

_LOCKS: dict[Half, str] = {
    "drafter": names.DRAFTER_LOCK,
    "gater": names.GATER_LOCK,
    "run": names.RUN_LOCK,
}
_WHAT: dict[Half, str] = {
    "drafter": "the drafter of this campaign",
    "gater": "the gater of this campaign",
    "run": "`waves run` of this campaign",
}


@contextmanager
def hold(folder: CampaignFolder, half: Half) -> Iterator[None]:
    """Be a campaign's one drafter, gater or run for the duration of a block.

    Raises:
        Refused: ``drafter-running``, ``gater-running`` or ``run-running``, naming who it is.
    """
    with hold_lock(folder.at(_LOCKS[half]), code=f"{half}-running", what=_WHAT[half]):
        yield


def runs(folder: CampaignFolder, half: Half) -> bool:
    """Say whether that half runs now."""
    return is_held(folder.at(_LOCKS[half]))
