"""``perf stat`` from outside the boundary; software events, since not every machine shows its counters."""

from __future__ import annotations

from pathlib import Path

import pytest
from measure.worlds import LIMITS
from support.tools import needs_perf

from roundkit.core.clock import Deadline
from roundkit.host.confine import Execution, confined_execute
from roundkit.measure.broke import MeasurementBroke
from roundkit.measure.instruments import counted_command
from roundkit.measure.instruments.perf import EVENT, PerfCount, parse_stat

FAULTS = "page-faults:u"


def run(place: Path, perf: PerfCount, script: str) -> Execution:
    return confined_execute(
        counted_command("perf", ["/bin/sh", "-c", script]),
        cwd=place,
        writable=[place],
        readable=[],
        deadline=Deadline.after(60.0),
        env={"PATH": "/usr/bin:/bin"},
        limits=LIMITS,
        before_start=perf.attach,
    )


@needs_perf
def test_m13_perf_counts_a_confined_command_and_its_children(place: Path) -> None:
    counts = {}
    for name, script in (("alone", ":"), ("children", "for n in 1 2 3 4 5 6 7 8; do /bin/true; done")):
        (place / name).mkdir()
        with PerfCount(FAULTS) as perf:
            assert run(place / name, perf, script).exit_code == 0
            counts[name] = perf.count()
    assert counts["children"] > counts["alone"] + 8 * 20


@needs_perf
def test_m13_a_command_cannot_open_a_counter_of_its_own(place: Path) -> None:
    with PerfCount(FAULTS) as perf:
        done = run(place, perf, "/usr/bin/perf stat -e page-faults:u /bin/true")
        assert done.exit_code != 0
        assert perf.count() > 0


@needs_perf
def test_m13_a_counter_that_the_machine_does_not_show_is_missing(place: Path) -> None:
    with PerfCount("no-such-event") as perf, pytest.raises(MeasurementBroke, match="instrument-missing"):
        run(place, perf, ":")
    with PerfCount(FAULTS) as perf, pytest.raises(MeasurementBroke, match="nothing was counted"):
        perf.count()


def test_m13_rows_of_perf() -> None:
    assert parse_stat("123456,,instructions:u,5557159,100.00,,\n", EVENT) == 123456
    assert parse_stat("Events enabled\n7,,instructions:u,1,100.00,0.5,insn per cycle\n", EVENT) == 7
    for row in (
        "<not supported>,,instructions:u,0,100.00,,\n",
        "<not counted>,,instructions:u,0,100.00,,\n",
        "0,,instructions:u,0,100.00,,\n",
        "5,,cycles:u,1,100.00,,\n",
        "5,,instructions:u\n",
        "",
    ):
        with pytest.raises(MeasurementBroke, match="instrument-missing"):
            parse_stat(row, EVENT)
    with pytest.raises(MeasurementBroke, match="counter-shared"):
        parse_stat("99,,instructions:u,1,51.20,,\n", EVENT)
