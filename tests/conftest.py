"""What every test may ask for."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.processes import end_started
from support.synthetic import CampaignRepo, campaign_repo, reachable_folder


def pytest_configure() -> None:
    """Put right what commands of tests would have from the shell that started them."""
    # Each of thousands of processes would compile anew all that it imports.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Started in the background, they would ignore Ctrl-C.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    """End what a failed test left running, before the folders that it runs in are removed."""
    end_started()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """An empty folder that commands under another user id can reach, as pytest's own cannot."""
    with reachable_folder() as folder:
        yield folder


@pytest.fixture
def lease_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Leases of this test's own, so that tests run side by side."""
    root = tmp_path / "leases"
    monkeypatch.setenv("ROUNDKIT_LEASE_ROOT", str(root))
    return root


@pytest.fixture(scope="session")
def _three_lanes_once() -> Iterator[CampaignRepo]:
    with reachable_folder() as folder:
        yield campaign_repo(folder)


@pytest.fixture
def three_lanes(_three_lanes_once: CampaignRepo, open_folder: Path) -> CampaignRepo:
    """A campaign of three orthogonal lanes, L1, L2 and L3, in ``open_folder``."""
    return _three_lanes_once.copy_to(open_folder)
