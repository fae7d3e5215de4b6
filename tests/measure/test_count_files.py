"""What stands in valgrind's files, and what does not."""

from __future__ import annotations

import pytest

from roundkit.measure.instruments.reading import CountProblem, ProcessLog, parse_log, parse_out

HEAD = """\
==7== Cachegrind, a cache and branch-prediction profiler
==7== Copyright (C) 2002-2017, and GNU GPL'd, by Nicholas Nethercote et al.
==7== Using Valgrind-3.19.0 and LibVEX; rerun with -h for copyright info
==7== Command: /usr/bin/python3 -c {command}
==7== Parent PID: 2
==7==\x20
"""
WARNING = "--7-- warning: L3 cache found, using its data for the LL simulation.\n"
COUNT = "==7==\x20\n==7== I   refs:      1,609,112,405\n"


def test_m13_a_log_gives_version_and_count() -> None:
    expected = ProcessLog("Valgrind-3.19.0", 1_609_112_405)
    head = HEAD.format(command="pass")
    ended = "==7== Process terminating with default action of signal 15 (SIGTERM)\n"
    for middle in ("", WARNING, ended):
        assert parse_log((head + middle + COUNT).encode(), 7) == expected
    assert (
        parse_log((HEAD.format(command="caf\udce9") + COUNT).encode("utf-8", "surrogateescape"), 7)
        == expected
    )
    newer = (head + COUNT).replace("3.19.0", "3.24.0").replace("I   refs:", "I refs:")
    assert parse_log(newer.encode(), 7) == ProcessLog("Valgrind-3.24.0", 1_609_112_405)


@pytest.mark.parametrize(
    "text",
    [
        "",
        COUNT,
        HEAD,
        HEAD + COUNT + COUNT,
        HEAD + COUNT + "==7== and more\n",
        HEAD + COUNT.replace("==7==", "==8=="),
        HEAD + "**7** printed by the client\n" + COUNT,
        HEAD + "\0\0\0" + COUNT,
        HEAD + COUNT.replace("1,609", "-1,609"),
        HEAD + COUNT.replace("1,609,112,405", "16,09"),
        HEAD.replace("Using", "using") + COUNT,
    ],
)
def test_m13_a_log_that_valgrind_does_not_write_is_no_count(text: str) -> None:
    with pytest.raises(CountProblem, match="process 7"):
        parse_log(text.encode(), 7)


def test_m13_a_count_file_ends_with_its_total() -> None:
    assert parse_out(b"desc: x\nevents: Ir\nfn=a\n1 5\nsummary: 5\n", 7) == 5
    assert parse_out(b"summary: 12", 7) == 12
    for data in (b"", b"events: Ir\n1 5\n", b"summary: 5\n1 2\n", b"summary: -5\n", b"summary: 5 6\n"):
        with pytest.raises(CountProblem, match="process 7"):
            parse_out(data, 7)
