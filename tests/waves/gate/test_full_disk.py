"""W10: a gater on a full disk loses nothing, blames no draft, leaves nothing in half, and goes on later."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support.small_disk import fill, mounted_disk
from support.wave_builder import WaveCampaign

from roundkit.core.errors import RoundkitError
from roundkit.core.process import CommandFailed

from .test_killed_gater import CRITICAL, STATES, a_campaign, assert_whole


@pytest.fixture
def small_disk(open_folder: Path) -> Iterator[Path]:
    """A file system of 16 MiB of its own, for campaign, tools and tree."""
    with mounted_disk(open_folder, 16) as disk:
        yield disk


def gate_with_a_full_disk(campaign: WaveCampaign, state: str, disk: Path) -> bool:
    """Fill the disk when a run comes to a state, and free it once the gater has ended."""
    fillers: list[Path] = []

    def mark(reached: str) -> None:
        if reached == state and not fillers:
            fillers.append(fill(disk))

    with suppress(OSError, RoundkitError, CommandFailed):
        campaign.gate(mark=mark)
    for filler in fillers:
        filler.unlink()
    return bool(fillers)


@pytest.mark.parametrize("state", CRITICAL)
def test_w10_a_full_disk_in_each_step_loses_nothing(open_folder: Path, small_disk: Path, state: str) -> None:
    campaign = a_campaign(small_disk)
    assert gate_with_a_full_disk(campaign, state, small_disk)
    assert campaign.gate() == 0
    assert_whole(campaign, logged=False)


@pytest.mark.slow
def test_w10_a_disk_that_is_full_again_and_again_loses_nothing(open_folder: Path, small_disk: Path) -> None:
    campaign = a_campaign(small_disk)
    for state in STATES:
        gate_with_a_full_disk(campaign, state, small_disk)
    assert campaign.gate() == 0
    assert_whole(campaign, logged=False)
