"""P08: the ledger of interventions under several writers, and against files that are not it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.processes import ended_with_test

from roundkit.core.errors import Refused
from roundkit.pilots.interventions import create_ledger, intervene
from roundkit.rules.pilot_interventions import read_interventions
from roundkit.rules.pilot_lines import LinesProblem

TRIAL = "trials/001-rename.plain.1"
EACH = 20
OPERATOR = """
import sys
from pathlib import Path
from roundkit.pilots.interventions import intervene
folder, name, each = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(each)):
    intervene(Path(folder), "%s", kind="clarification", by=name, note=str(number))
"""


@pytest.fixture
def pilot(tmp_path: Path) -> Path:
    (tmp_path / TRIAL).mkdir(parents=True)
    create_ledger(tmp_path / TRIAL)
    return tmp_path


def ledger_of(pilot: Path) -> Path:
    return pilot / TRIAL / "interventions.jsonl"


def note(pilot: Path, text: str = "asked what the task means") -> int:
    return intervene(pilot, TRIAL, kind="clarification", by="op", note=text).sequence


def test_p08_two_operators_at_once_give_one_sequence(pilot: Path) -> None:
    operators = [
        ended_with_test(subprocess.Popen(
            [sys.executable, "-c", OPERATOR % TRIAL, str(pilot), name, str(EACH)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        ))
        for name in ("ada", "ben")
    ]  # fmt: skip
    for operator in operators:
        assert operator.stdout is not None
        assert operator.stdout.readline() == "ready\n"
    for operator in operators:
        operator.communicate("go\n")
        assert operator.returncode == 0
    entries = read_interventions(ledger_of(pilot).read_bytes())
    assert [entry.sequence for entry in entries] == list(range(1, 2 * EACH + 1))
    for name in ("ada", "ben"):
        assert [entry.note for entry in entries if entry.by == name] == [str(n) for n in range(EACH)]


def test_p08_an_empty_ledger_is_no_missing_one(pilot: Path) -> None:
    assert ledger_of(pilot).read_bytes() == b""
    assert read_interventions(b"") == ()
    with pytest.raises(Refused, match=r"\[exists\]"):
        create_ledger(pilot / TRIAL)
    ledger_of(pilot).unlink()
    with pytest.raises(Refused, match=r"\[missing-file\]"):
        note(pilot)
    assert not ledger_of(pilot).exists()


@pytest.mark.parametrize("way", ["symlink", "link in the path", "hard link", "folder", "fifo"])
def test_p08_a_ledger_that_is_something_else_is_refused(pilot: Path, tmp_path: Path, way: str) -> None:
    ledger, outside = ledger_of(pilot), tmp_path / "outside.jsonl"
    outside.write_bytes(b"")
    ledger.unlink()
    if way == "symlink":
        ledger.symlink_to(outside)
    elif way == "hard link":
        os.link(outside, ledger)
    elif way == "folder":
        ledger.mkdir()
    elif way == "fifo":
        os.mkfifo(ledger)
    else:
        create_ledger(pilot / TRIAL)
        (pilot / TRIAL).rename(tmp_path / "moved")
        (pilot / TRIAL).symlink_to(tmp_path / "moved")
    with pytest.raises(Refused, match=r"\[(not-a-file|hard-linked)\]"):
        note(pilot)
    assert outside.read_bytes() == b""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_p08_somebody_elses_ledger_is_refused(pilot: Path) -> None:
    os.chown(ledger_of(pilot), 65534, 65534)
    with pytest.raises(Refused, match=r"\[foreign-file\]"):
        note(pilot)


def test_p08_a_ledger_is_never_created_through_a_link(pilot: Path, tmp_path: Path) -> None:
    ledger_of(pilot).unlink()
    ledger_of(pilot).symlink_to(tmp_path / "elsewhere.jsonl")
    with pytest.raises(Refused, match=r"\[exists\]"):
        create_ledger(pilot / TRIAL)
    assert not (tmp_path / "elsewhere.jsonl").exists()


def test_p08_a_changed_ledger_takes_no_more_lines(pilot: Path) -> None:
    assert [note(pilot), note(pilot), note(pilot)] == [1, 2, 3]
    whole = ledger_of(pilot).read_bytes()
    lines = whole.splitlines(keepends=True)
    damaged = {
        "cut off": whole[:-5],
        "changed": whole.replace(b"task means", b"task meant", 1),
        "gap": lines[0] + lines[2],
        "out of order": lines[1] + lines[0] + lines[2],
        "no JSON": whole + b"hello\n",
        "unknown kind": whole.replace(b"clarification", b"encouragement"),
        "not canonical": whole.replace(b'"by":"op",', b'"by": "op",', 1),
    }
    for name, data in damaged.items():
        with pytest.raises(LinesProblem):
            read_interventions(data)
        ledger_of(pilot).write_bytes(data)
        with pytest.raises(Refused, match=r"\[bad-ledger\]"):
            note(pilot)
        assert ledger_of(pilot).read_bytes() == data, name


def test_p08_other_needs_a_note(pilot: Path) -> None:
    with pytest.raises(Refused, match=r"\[note-needed\]"):
        intervene(pilot, TRIAL, kind="other", by="op", note=" ")
