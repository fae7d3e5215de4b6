"""A scheduler and workers as real processes, and pools on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from measure.worlds import SINGLE, World, make_spec
from support.cluster import Cluster, cluster
from support.synthetic import reachable_folder

from roundkit.measure.cluster.pool import DaskPool
from roundkit.models.round_plan import DeviceSet

PLAN = "0" * 64
"""The plan's digest in every specification of a world."""
STORE = "5" * 64
"""The store that asks."""


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    """A scheduler without workers, for all tests of a file."""
    with reachable_folder() as folder, cluster(folder / "cluster") as made:
        yield made


@pytest.fixture
def place() -> Iterator[Path]:
    with reachable_folder() as folder:
        yield folder


@pytest.fixture
def world(place: Path) -> World:
    return World(place, make_spec(SINGLE))


@pytest.fixture
def open_pool(place: Path) -> Iterator[Callable[..., DaskPool]]:
    """Open pools of fixture devices on a cluster; they are closed after the test."""
    with ExitStack() as stack:

        def opened(made: Cluster, *names: str, store: str = STORE) -> DaskPool:
            sets = tuple(DeviceSet(id=name, platform="fixture", devices=(name,)) for name in names)
            pool = DaskPool(
                sets,
                plan_digest=PLAN,
                store_sha256=store,
                scheduler=made.address,
                scratch=place,
                tls=made.tls,
            )
            return stack.enter_context(closing(pool))

        yield opened


def sets_of(*names: str) -> tuple[DeviceSet, ...]:
    return tuple(DeviceSet(id=name, platform="fixture", devices=(name,)) for name in names)


def slow_program(seconds: float) -> dict[str, str]:
    """Return what makes every trial of a candidate take longer."""
    lines = (
        "import time",
        "def work(payload):",
        f"    time.sleep({seconds})",
        "    return sum(range(payload['n']))",
    )
    return {"prog/core.py": "\n".join((*lines, ""))}
