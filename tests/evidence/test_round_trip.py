"""The evidence format: what was written is read back, repeatably, and nothing else is accepted."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from support.sample.lanes import NO_GAIN_LANES
from support.sample_evidence import export_sample, sample_round

from roundkit.core.canonical import digest_bytes
from roundkit.evidence import EvidenceProblem, find_evidence, open_evidence
from roundkit.evidence.events import parse_events


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("evidence")
    return export_sample(base / "r01", sample_round(), base / "scratch")


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "r01"))


def codes(problem: pytest.ExceptionInfo[EvidenceProblem]) -> set[str]:
    return {refusal.code for refusal in problem.value.refusals}


def test_everything_is_read_back(pristine: Path) -> None:
    sample = sample_round()
    evidence = open_evidence(pristine)
    evidence.verify()
    assert evidence.plan == sample.plan
    assert evidence.plan_bytes == sample.plan.to_bytes()
    assert evidence.round_digest == sample.plan.digest()
    assert evidence.ledger == sample.ledger
    assert evidence.run_spec == sample.run_spec
    assert evidence.secret == sample.secret
    assert list(evidence.experiments()) == sorted(sample.experiments, key=lambda row: row.experiment_id)
    assert {digest: evidence.blob(digest) for digest in evidence.blob_digests} == sample.blobs
    assert [event.kind for event in evidence.events] == [event["kind"] for event in sample.events]
    assert evidence.digest == digest_bytes((pristine / "index.json").read_bytes())


@pytest.mark.parametrize("figure", ["1e999", "123456789012345678901234567890", "-0.0"])
def test_an_event_with_a_figure_that_no_record_holds_is_a_problem_and_no_traceback(figure: str) -> None:
    line = f'{{"fields":{{"a":{figure}}},"kind":"aa","time":"2026-01-31T12:00:00.000000Z"}}\n'
    with pytest.raises(EvidenceProblem) as found:
        parse_events(line.encode(), place="events.jsonl")
    assert codes(found) <= {"malformed", "not-canonical"}
    assert "events.jsonl: line 1" in str(found.value)


def test_the_same_input_gives_the_same_bytes(pristine: Path, tmp_path: Path) -> None:
    again = export_sample(tmp_path / "r01", sample_round(), tmp_path / "scratch")
    names = sorted(path.relative_to(pristine) for path in pristine.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
    assert all((pristine / name).read_bytes() == (again / name).read_bytes() for name in names)


def test_an_export_over_itself_changes_nothing(folder: Path, tmp_path: Path) -> None:
    before = folder.stat().st_mtime_ns, folder.stat().st_ino
    export_sample(folder, sample_round(), tmp_path / "scratch")
    assert (folder.stat().st_mtime_ns, folder.stat().st_ino) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r01", "scratch"]


def test_evidence_is_never_rewritten(folder: Path, tmp_path: Path) -> None:
    digest = open_evidence(folder).digest
    with pytest.raises(EvidenceProblem) as problem:
        export_sample(folder, sample_round(NO_GAIN_LANES), tmp_path / "scratch")
    assert codes(problem) == {"evidence-differs"}
    assert open_evidence(folder).digest == digest


def test_a_killed_export_is_built_anew(tmp_path: Path) -> None:
    partial = tmp_path / ".r01.partial"
    partial.mkdir()
    (partial / "half").write_bytes(b"half")
    open_evidence(export_sample(tmp_path / "r01", sample_round(), tmp_path / "scratch")).verify()
    assert not partial.exists()


def test_a_blob_with_other_bytes_is_not_exported(tmp_path: Path) -> None:
    sample = sample_round()
    sample.blobs = {digest: data + b"!" for digest, data in sample.blobs.items()}
    with pytest.raises(EvidenceProblem) as problem:
        export_sample(tmp_path / "r01", sample, tmp_path / "scratch")
    assert codes(problem) == {"digest-mismatch"}
    assert not (tmp_path / "r01").exists()


@pytest.mark.parametrize("name", ["round-plan.json", "blobs", "index.json"])
def test_a_link_is_never_followed(folder: Path, name: str) -> None:
    moved = folder.parent / "elsewhere"
    (folder / name).rename(moved)
    (folder / name).symlink_to(moved)
    with pytest.raises(EvidenceProblem) as problem:
        open_evidence(folder).verify()
    assert codes(problem) == {"not-a-file"}


def test_a_fifo_does_not_block_the_reader(folder: Path) -> None:
    (folder / "secret.json").unlink()
    os.mkfifo(folder / "secret.json")
    with pytest.raises(EvidenceProblem) as problem:
        open_evidence(folder)
    assert codes(problem) == {"not-a-file"}


def test_missing_and_extra_files_are_named_together(folder: Path) -> None:
    (folder / "run-spec.json").unlink()
    (folder / "notes.txt").write_text("hello")
    with pytest.raises(EvidenceProblem) as problem:
        open_evidence(folder)
    assert {(row.code, row.place) for row in problem.value.refusals} == {
        ("missing-file", "run-spec.json"),
        ("extra-file", "notes.txt"),
    }


def test_bytes_changed_after_opening_are_not_returned(folder: Path) -> None:
    evidence = open_evidence(folder)
    ledger = folder / "round-ledger.json"
    ledger.write_bytes(ledger.read_bytes().replace(b'"advanced":true', b'"advanced":null'))
    with pytest.raises(EvidenceProblem) as problem:
        _ = evidence.ledger
    assert codes(problem) == {"wrong-digest"}


def test_no_evidence_says_so(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(EvidenceProblem):
            open_evidence(place)


def test_every_folder_below_is_found(pristine: Path, tmp_path: Path) -> None:
    places = [tmp_path / "ä b" / "rounds" / name for name in ("r01", "r02")]
    for place in places:
        shutil.copytree(pristine, place)
    shutil.copytree(pristine, tmp_path / ".hidden" / "r03")
    assert find_evidence(tmp_path) == places
    assert find_evidence(places[0]) == [places[0]]
