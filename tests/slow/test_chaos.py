"""The short form of `make chaos`: random kills while eight lanes submit."""

from __future__ import annotations

import pytest
from support.chaos import run_chaos

pytestmark = pytest.mark.slow


def test_r15_random_kills_lose_nothing_and_measure_nothing_twice() -> None:
    counts = run_chaos(kills=25, seed=7)
    assert counts.clean, "\n".join(counts.lines())
    assert counts.killed >= 25
