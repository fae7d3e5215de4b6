"""R29: ``roundkit prune`` keeps plan, ledger and a pointer, once the evidence stands by itself."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.command_line import run_roundkit
from support.synthetic import knob, scripted_lane

from roundkit.core.canonical import digest_file
from roundkit.core.errors import Refused
from roundkit.measure.trees import remove_tree
from roundkit.models.ledger import RoundLedger
from roundkit.rounds import prune as pruning
from roundkit.rounds.close import CloseOutcome, close
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.locks import hold_lock
from roundkit.rounds.prune import prune
from roundkit.rounds.serve import serve

LEFT = ["evidence-pointer.json", "round-ledger.json", "round-plan.json"]


def agrees(_evidence: Path, _digest: str) -> list[str]:
    """Find nothing wrong; the command line's test has the real audit."""
    return []


def quiet(_line: str) -> None:
    """Say nothing."""


def command(folder: RoundFolder, *, expect: int, verb: str = "prune") -> str:
    done = run_roundkit(verb, folder.root)
    printed = done.stdout + done.stderr
    assert done.returncode == expect, printed
    assert "Traceback" not in printed
    return printed


@pytest.fixture
def closed(launched: RoundFolder) -> CloseOutcome:
    """A closed round in ``launched``: one submission that changes nothing."""
    scripted_lane(launched.clone("L1"), {"knobs/L1.json": knob(0.0) + "\n"})
    serve(launched, until="idle", report=quiet)
    return close(launched, report=quiet)


def everything(folder: RoundFolder) -> list[Path]:
    return sorted(
        path for path in folder.root.rglob("*") if "-shm" not in path.name and "-wal" not in path.name
    )


def test_r29_a_closed_round_shrinks_to_plan_ledger_and_pointer(
    launched: RoundFolder, closed: CloseOutcome
) -> None:
    plan = launched.plan_file.read_bytes()
    assert "[evidence-differs]" in damaged(launched, closed)
    printed = command(launched, expect=0)
    assert sorted(path.name for path in launched.root.iterdir()) == LEFT
    assert launched.plan_file.read_bytes() == plan
    assert RoundLedger.from_bytes(launched.ledger_file.read_bytes(), place="") == closed.ledger
    pointer = json.loads(launched.pointer_file.read_bytes())
    assert pointer["evidence"] == str(closed.evidence)
    assert pointer["index_sha256"] == closed.index_digest
    assert pointer["index_sha256"] == digest_file(closed.evidence / "index.json")
    assert str(closed.evidence) in printed
    told = command(launched, expect=3, verb="status")
    assert "[pruned]" in told
    assert f"`roundkit audit {closed.evidence} --expect {closed.index_digest}`" in told
    again = command(launched, expect=0)
    assert again == printed
    assert sorted(path.name for path in launched.root.iterdir()) == LEFT


def damaged(folder: RoundFolder, closed: CloseOutcome) -> str:
    """Change one byte of the evidence, try to prune, and change it back."""
    victim = closed.evidence / "events.jsonl"
    data = victim.read_bytes()
    before = everything(folder)
    victim.write_bytes(data.replace(b"2", b"3", 1))
    printed = command(folder, expect=3)
    victim.write_bytes(data)
    assert everything(folder) == before
    return printed


def test_r29_an_open_round_is_refused_and_keeps_everything(launched: RoundFolder) -> None:
    before = everything(launched)
    assert "[not-closed]" in command(launched, expect=3)
    serve(launched, until="idle", report=quiet)
    with pytest.raises(Refused, match="not-closed"):
        prune(launched, audit=agrees)
    assert set(before) <= set(everything(launched))


def test_r29_without_its_evidence_a_round_is_kept(launched: RoundFolder, closed: CloseOutcome) -> None:
    moved = closed.evidence.with_name("moved")
    closed.evidence.rename(moved)
    with pytest.raises(Refused, match="evidence-missing"):
        prune(launched, audit=agrees)
    assert launched.database.exists()
    assert not launched.pointer_file.exists()


def test_r29_refused_while_serve_or_close_runs(launched: RoundFolder, closed: CloseOutcome) -> None:
    for lock, code in ((launched.serve_lock, "serve-running"), (launched.close_lock, "close-running")):
        with hold_lock(lock, code="x", what="x"):
            assert f"[{code}]" in command(launched, expect=3)
    assert launched.database.exists()


def test_r29_killed_in_the_middle_a_second_run_finishes(
    launched: RoundFolder, closed: CloseOutcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """Stands for SIGKILL between two removals."""

    def some(part: Path) -> None:
        if part == launched.store:
            (part / "round.sqlite3").unlink()
            raise Killed
        remove_tree(part)

    monkeypatch.setattr(pruning, "remove_tree", some)
    with pytest.raises(Killed):
        prune(launched, audit=agrees)
    assert launched.store.exists()
    assert "[pruned]" in command(launched, expect=3, verb="serve")
    monkeypatch.undo()
    kept = shutil.copytree(closed.evidence, closed.evidence.with_name("kept"))
    shutil.rmtree(closed.evidence)
    with pytest.raises(Refused, match="evidence-missing"):
        prune(launched, audit=agrees)
    assert launched.store.exists()
    kept.rename(closed.evidence)
    prune(launched, audit=agrees)
    assert sorted(path.name for path in launched.root.iterdir()) == LEFT


def test_r29_a_pointer_to_the_evidence_of_another_plan_removes_nothing(
    launched: RoundFolder, closed: CloseOutcome
) -> None:
    other = RoundFolder(launched.root.with_name("other"))
    shutil.copytree(launched.root, other.root)
    prune(launched, audit=agrees)
    shutil.copy(launched.pointer_file, other.pointer_file)
    other.plan_file.write_bytes(other.plan_file.read_bytes() + b" ")
    with pytest.raises(Refused, match="another plan"):
        prune(other, audit=agrees)
    assert other.database.exists()
