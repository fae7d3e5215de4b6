"""Rounds with stub agents, made anew for each test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.agent_rounds import AgentRound, agent_round
from support.agent_stubs import Step

Alone = Callable[..., AgentRound]


@pytest.fixture
def lease_root(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Leases of this test's own."""
    root = open_folder / "leases"
    monkeypatch.setenv("ROUNDKIT_LEASE_ROOT", str(root))
    return root


@pytest.fixture
def alone(open_folder: Path, lease_root: Path) -> Alone:
    """Make a round with one lane, L1, whose agent goes through the given steps, one list an attempt."""

    def make(harness: Any, *attempts: list[Step], **options: Any) -> AgentRound:
        return agent_round(open_folder, {"L1": harness}, {"L1": attempts}, **options)

    return make
