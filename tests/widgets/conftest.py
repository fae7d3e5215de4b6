"""A launched round in a folder whose name has spaces and letters beyond ASCII."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.killing import start
from support.synthetic import CampaignRepo, reachable_folder

from roundkit.rounds.control_room import read_room
from roundkit.rounds.layout import RoundFolder


@pytest.fixture
def odd_place() -> Iterator[Path]:
    """An empty folder whose path has spaces and letters beyond ASCII."""
    with reachable_folder() as folder:
        place = folder / "Läufe der Woche 数"
        place.mkdir(mode=0o711)
        yield place


@pytest.fixture
def odd_campaign(three_lanes: CampaignRepo, odd_place: Path) -> CampaignRepo:
    """The campaign of three lanes in a place with such a path."""
    return three_lanes.copy_to(odd_place)


@pytest.fixture
def odd_round(odd_campaign: CampaignRepo, odd_place: Path, lease_root: Path) -> Iterator[RoundFolder]:
    """The three lanes, launched; a serve that a test leaves running is ended."""
    folder, _ = odd_campaign.launched(odd_place / "the round")
    yield folder
    if read_room(folder).status.serve is not None:
        start(lease_root, "drain", folder.root).communicate(timeout=60)
