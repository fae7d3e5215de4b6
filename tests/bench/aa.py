"""Real candidates that change nothing, through a real serve on this machine: how often one passes (M08)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

from bench.coordinator import LANES, submit_by_hand
from bench.result import Figure, environment
from scipy import stats
from support.synthetic import campaign_repo, knob, reachable_folder

from roundkit.host.lease import LEASE_ROOT_VARIABLE
from roundkit.rounds.layout import read_plan
from roundkit.rounds.serve import serve
from roundkit.store import open_store

PAIRS = 10
EARLY = {
    "first_look": 6, "every": 2, "spending_exponent": 2.0, "futility_power": 0.05, "futility_optimism": 1.5,
}  # fmt: skip


def measure(tiny: bool) -> Iterator[Figure]:
    """Yield the share of false passes and of false regressions, with trials pinned to a core and not."""
    tickets = 4 if tiny else 224
    total: Counter[str] = Counter()
    for pinned in (True, False):
        counts = _serve_no_ops(tickets, pinned=pinned)
        total += counts
        yield _figure(counts, "pinned" if pinned else "not pinned", "pass")
    yield _figure(total, "all of them", "pass")
    yield _figure(total, "all of them", "fail")


def _figure(counts: Counter[str], which: str, verdict: str) -> Figure:
    done = sum(counts.values())
    interval = stats.binomtest(counts[verdict], done).proportion_ci(method="exact")
    word = {"pass": "passes", "fail": "regressions"}[verdict]
    return Figure(
        f"aa-{verdict}-{which.replace(' ', '-')}",
        f"false {word} among {done} real experiments without a difference, {which}",
        100 * counts[verdict] / done, "%",
        detail={
            "interval": (100 * float(interval.low), 100 * float(interval.high)), "verdicts": dict(counts),
        },
    )  # fmt: skip


def _serve_no_ops(tickets: int, *, pinned: bool) -> Counter[str]:
    """Serve one round of tickets that change white space, and count their verdicts.

    The plan demands no gain and forgives no loss: evidence alone decides.
    """
    with reachable_folder() as home, environment({LEASE_ROOT_VARIABLE: str(home / "leases")}):
        repo = campaign_repo(home, LANES)
        gates: dict[str, Any] = {
            "ab_ba_pairs": PAIRS, "min_gain": 0.0, "loss_margin": 0.0, "order_margin": 0.0,
            "early_stopping": EARLY,
        }  # fmt: skip
        repo.edit_campaign(lambda plan: plan["test_plan"].update(gates))

        def edit(draft: Any) -> None:
            cores = [str(max(os.sched_getaffinity(0)))]
            draft.update(aa_interval=1_000_000, cpu_pinning=pinned)
            draft["device_sets"] = [{"id": "cores", "platform": "cpu", "devices": cores}]
            for lane in draft["lanes"]:
                lane["submission_cap"] = 1_000_000

        repo.edit_round(edit)
        folder, _ = repo.launched(home / "round")
        digest = read_plan(folder).digest()
        for number in range(tickets):
            content = knob(0.0) + " " * (1 + number // len(LANES))
            submit_by_hand(folder, digest, LANES[number % len(LANES)], content.encode())
        serve(folder, until="idle", report=lambda _: None)
        with open_store(folder.database, read_only=True) as store:
            verdicts = [ticket.verdict for ticket in store.tickets.all()]
    assert len(verdicts) == tickets
    return Counter(verdict.verdict for verdict in verdicts if verdict is not None)
