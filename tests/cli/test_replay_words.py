"""What ``replay`` says at its end of a lane that wall-clock time could not tell."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.checkouts import PYTHON, Bench
from support.synthetic import commit_all, write_files

from roundkit.cli.whole_rounds import tell_of_cpu
from roundkit.core.git import Repository
from roundkit.evidence import find_evidence, open_evidence
from roundkit.models.ledger import RoundLedger


@pytest.mark.slow
def test_a_replay_that_could_not_tell_names_the_quieter_clock(
    open_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Bench(open_folder)
    place = bench.add("mine")
    repository = Repository(place)
    repository.git("init", "-q", "-b", "main")
    commit_all(repository, ["."], "A program")
    write_files(place, {"prog.py": "# less\n"})
    commit_all(repository, ["prog.py"], "Less of it")
    bench.run(
        "replay", "HEAD~1..HEAD", "--repository", "mine", "--out", "replayed", "--pairs", "12",
        "--benchmark", f"{PYTHON} restless.py", expect=0,
    )  # fmt: skip
    (evidence,) = find_evidence(open_folder / "replayed/evidence")
    ledger = open_evidence(evidence).ledger

    def said(verdict: str) -> str:
        (ticket,) = ledger.tickets
        assert ticket.verdict is not None
        decided = ticket.verdict.model_copy(update={"verdict": verdict})
        tickets = (ticket.model_copy(update={"verdict": decided}),)
        again: RoundLedger = ledger.model_copy(update={"tickets": tickets})
        tell_of_cpu(again, evidence)
        return capsys.readouterr().out

    assert "far less noisy here: with 12 pairs `cpu` shows a gain of" in said("not-measured")
    assert "replay anew into another folder with --instrument cpu" in said("not-measured")
    assert said("pass") == ""
