"""What every test may ask for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.synthetic import CampaignRepo, campaign_repo, reachable_folder


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """An empty folder that commands under another user id can reach, as pytest's own cannot."""
    with reachable_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def _three_lanes_once() -> Iterator[CampaignRepo]:
    with reachable_folder() as folder:
        yield campaign_repo(folder)


@pytest.fixture
def three_lanes(_three_lanes_once: CampaignRepo, open_folder: Path) -> CampaignRepo:
    """A campaign of three orthogonal lanes, L1, L2 and L3, in ``open_folder``."""
    return _three_lanes_once.copy_to(open_folder)
