"""What the tests of real agents need: that they are installed; elsewhere than in CI they say why not."""

from __future__ import annotations

import os

import pytest
from clis.install import why_missing


def _needed(part: str) -> None:
    reason = why_missing(part)
    if reason is None:
        return
    if os.environ.get("ROUNDKIT_CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def agents() -> None:
    """Claude Code and Codex, from npm."""
    _needed("agents")


@pytest.fixture(scope="session")
def engine() -> None:
    """The SwarmFlow engine, from PyPI."""
    _needed("engine")
