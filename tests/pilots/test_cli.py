"""`roundkit pilot` as a person meets it: words and exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command_line import run_roundkit
from support.pilots import MEND, PilotFiles, example, record_of, small

from roundkit.models.pilot_trial import TrialRecord


def pilot(*words: str | Path, expect: int = 0) -> str:
    done = run_roundkit("pilot", *words)
    printed = done.stdout + done.stderr
    assert done.returncode == expect, printed
    assert "Traceback" not in printed
    return printed


def test_a_pilot_from_its_draft_to_a_replay_that_disagrees(open_folder: Path) -> None:
    files, folder = small(open_folder, MEND), open_folder / "pilot"
    printed = pilot("prepare", files.draft, "--out", folder)
    assert "2 tuples" in printed
    assert "digest " in printed
    assert "1 run: 1 completed; 1 accepted" in pilot("run", folder, "--setup", "off-by-one.plain")
    printed = pilot("run", folder, "--only", "off-by-one.plain.1")
    assert "off-by-one.plain.1: completed; passed; 2 calls" in printed
    assert "1 of 2 tuples are left" in printed
    assert "every tuple was run" in pilot("run", folder)
    assert "off-by-one.guided.1: passed, agrees" in pilot("replay", folder)

    trial = next(trial for trial in (folder / "trials").iterdir() if "plain" in trial.name)
    record = record_of(trial)
    assert record.acceptance is not None
    failed = record.acceptance.model_copy(update={"outcome": "failed"})
    lie: TrialRecord = record.model_copy(update={"acceptance": failed})
    (trial / "record.json").write_bytes(lie.to_bytes())
    assert "DISAGREES" in pilot("replay", folder, "off-by-one.plain.1", expect=1)


def test_wrong_words_are_told(tmp_path: Path) -> None:
    assert "no-pilot" in pilot("status", tmp_path, expect=3)
    assert "missing-file" in pilot("prepare", tmp_path / "none.yaml", "--out", tmp_path / "out", expect=3)
    files = PilotFiles(tmp_path)
    for kind in ("another", "[paired]"):
        files.draft.write_text(f"kind: {kind}\n")
        assert "unknown-kind" in pilot("prepare", files.draft, "--out", tmp_path / "out", expect=3)
    both = ("--only", "a.b.1", "--setup", "a.b")
    assert "goes without --only" in pilot("run", tmp_path, *both, expect=2)


@pytest.mark.slow
def test_the_shipped_example_runs_as_it_is(open_folder: Path) -> None:
    files, folder = example(open_folder), open_folder / "pilot"
    pilot("prepare", files.draft, "--out", folder)
    assert "every tuple was run" in pilot("run", folder)
    records = {record.tuple_id: record for record in map(record_of, (folder / "trials").iterdir())}
    ends = {name: record.process for name, record in records.items() if record.process != "completed"}
    assert ends == {
        "rename.plain.3": "error",
        "signature.plain.3": "timeout",
        "off-by-one.plain.3": "error",
    }
    outcomes = {name: record.acceptance.outcome for name, record in records.items() if record.acceptance}
    assert len(outcomes) == 18
    assert {name for name, outcome in outcomes.items() if outcome == "failed"} == {
        "rename.plain.2",
        "rename.plain.3",
        "signature.plain.2",
        "signature.plain.3",
        "signature.guided.3",
        "off-by-one.plain.1",
        "off-by-one.plain.3",
    }
    drifted = {trial.name[4:] for trial in (folder / "trials").iterdir() if (trial / "drift.json").exists()}
    assert drifted == {name for name in records if name is not None and name.startswith("signature.")}
    assert pilot("replay", folder).count("agrees") == 18
