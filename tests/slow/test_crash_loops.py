"""R15 and R16 over every recorded transition: kill, look, go on, look again."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from rounds.test_crash import close_result
from support.killing import (
    Scene,
    assert_no_leases,
    assert_nothing_runs,
    assert_one_verdict_each,
    run_to_end,
    run_until_killed,
    scene,
)

pytestmark = pytest.mark.slow

BROKEN = '{"value": 0, "mode": "broken"}'


@pytest.mark.parametrize("first", [1, 2, 3, -1, -2])
def test_fault_18_r15_serve_killed_at_every_transition_gives_one_verdict_a_ticket(
    open_folder: Path, first: int
) -> None:
    """Every third commit, every second rename: together the cases are all of them."""
    served = scene(open_folder / "s", {"L1": 0.5, "L2": BROKEN})
    served.keep()
    for where in itertools.count(first, 3 if first > 0 else -2):
        served.put_back()
        killed = run_until_killed(where, served.leases, "serve", served.folder.root, "--until-idle")
        assert_no_leases(served.leases)
        assert_nothing_runs(served.folder)
        if killed:
            run_to_end(served.leases, "serve", served.folder.root, "--until-idle")
        assert_one_verdict_each(served.folder, served.leases, served.tickets)
        if not killed:
            break


@pytest.mark.parametrize("first", [1, 2, 3, -1, -2])
def test_r16_close_killed_at_every_transition_decides_the_same(open_folder: Path, first: int) -> None:
    served: Scene = scene(open_folder / "s", {"L1": 0.5, "L2": 0.4})
    run_to_end(served.leases, "serve", served.folder.root, "--until-idle")
    served.keep()
    run_to_end(served.leases, "close", served.folder.root)
    wanted = close_result(served)
    for where in itertools.count(first, 3 if first > 0 else -2):
        served.put_back()
        killed = run_until_killed(where, served.leases, "close", served.folder.root)
        assert_no_leases(served.leases)
        assert_nothing_runs(served.folder)
        if killed:
            run_to_end(served.leases, "close", served.folder.root)
        assert close_result(served) == wanted
        if not killed:
            break
