"""Tables of tickets and lanes, on terminals of any width: nothing in them is cut off."""

from __future__ import annotations

import sys

import pytest
from docs.reading import ROOT
from rich.console import Console

from roundkit.cli import compare_tables, tables
from roundkit.evidence import RoundEvidence, open_evidence
from roundkit.models.comparison import InstrumentNoise, PairsNeeded
from roundkit.models.instruments import Instrument
from roundkit.rounds.control import RoundStatus
from roundkit.rounds.status_mirror import status_of
from roundkit.rules.noise import unread

NEEDED = {0.01: 12710, 0.02: 3146, 0.05: 488}
LONG = "replay-0123456789-20261201-091122"


@pytest.fixture(scope="module")
def closed() -> RoundEvidence:
    return open_evidence(ROOT / "evidence/code-search/rounds/r01")


@pytest.fixture(params=[80, 120, 160])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    wide: int = request.param
    monkeypatch.setattr(tables, "console", lambda: Console(width=wide))
    return wide


@pytest.mark.parametrize("round_id", ["r01", LONG])
def test_every_ticket_is_shown_with_its_interval(
    closed: RoundEvidence, width: int, round_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = closed.plan.model_copy(update={"round_id": round_id})
    rows = [
        (ticket.lane, status_of(ticket.model_copy(update={"ticket": f"{round_id}-{ticket.ticket[4:]}"})))
        for ticket in closed.ledger.tickets
    ]
    status = RoundStatus(plan, None, None, tuple(rows), (1, 0), closed=False, accounts=())
    tables.status_table(status, rows)
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= width
    for _, state in rows:
        assert state.ticket[len(round_id) + 1 :] in shown
        if state.low is not None:
            assert f"{tables.percent(state.low)} to" in shown
            assert tables.percent(state.high) in shown
    assert (rows[0][1].ticket in shown) == (width >= 105 + len(rows[0][1].ticket))


def test_m12_no_figure_of_the_noise_is_cut_off(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    figures: dict[Instrument, float] = {"wall": 346.427, "cpu": 120.829, "instructions": 109_541_012_345.0}
    rows = [
        InstrumentNoise(
            instrument=name, unit="ms", pairs=20, median=median, sigma=0.2286, autocorrelation=0.43,
            order_effect=-0.015, order_low=-0.382, order_high=0.352, detectable=0.31, planned_pairs=12,
            needed=tuple(PairsNeeded(gain=gain, pairs=pairs) for gain, pairs in NEEDED.items()),
        )
        for name, median in figures.items()
    ]  # fmt: skip
    rows.append(unread("peak-memory", "bytes", "left out", 12))
    narrow = width < compare_tables._ROOM_FOR_NOISE
    Console(width=width, file=sys.stdout).print(compare_tables._noise_table(rows, narrow=narrow))
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= width
    for figure in (
        "instructions",
        "peak-memory",
        "346.427 ms",
        "120.829 ms",
        "109541012345",
        "22.9 %",
        "12710",
        "+0.43",
    ):
        assert figure in shown
    assert all(line.rstrip()[-1] in "┓┃┩│┘" for line in shown.splitlines()[1:])


@pytest.mark.parametrize("round_id", ["r01", LONG])
def test_every_lane_of_a_closed_round_is_shown_whole(
    closed: RoundEvidence, width: int, round_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def renamed(ticket: str) -> str:
        return f"{round_id}-{ticket[4:]}"

    ledger = closed.ledger
    lanes = [
        lane.model_copy(
            update={
                "tickets": tuple(map(renamed, lane.tickets)),
                "selected": lane.selected and renamed(lane.selected),
            }
        )
        for lane in ledger.lanes
    ]
    tickets = [one.model_copy(update={"ticket": renamed(one.ticket)}) for one in ledger.tickets]
    again = ledger.model_copy(update={"round_id": round_id, "lanes": tuple(lanes), "tickets": tuple(tickets)})
    tables.ledger_table(again, {lane.lane: "0123456789 Split lines once" for lane in lanes})
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= width
    rerun = next(record.verdict for record in ledger.rerun if record.verdict.verdict == "pass")
    interval = f"(95 %: {tables.percent(rerun.low)} to {tables.percent(rerun.high)})"
    assert f"{tables.percent(ledger.gain)} {interval}" in " ".join(shown.split())
    for lane in lanes:
        assert lane.outcome in shown
        assert all(ticket[len(round_id) + 1 :] in shown for ticket in lane.tickets[-1:])
        if lane.ticket_gain is not None:
            assert tables.percent(lane.ticket_gain) in shown
