"""The audit of a policy pilot, on the committed evidence and on copies that somebody tampered with."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roundkit.audit.policy import audit_policy
from roundkit.audit.policy_material import read_policy
from roundkit.core.canonical import canonical_bytes, parse_json

PILOT = Path(__file__).resolve().parents[2] / "evidence/knobs/pilots/p-versus-s"
Change = Callable[[Path], object]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    target = tmp_path / "p-versus-s"
    shutil.copytree(PILOT, target)
    return target


def _rewritten(name: str, **changes: Any) -> Change:
    def change(folder: Path) -> None:
        [path] = folder.glob(name)
        value = parse_json(path.read_bytes(), place=name)
        value.update(changes)
        path.write_bytes(canonical_bytes(value))

    return change


def _flipped(name: str) -> Change:
    def change(folder: Path) -> None:
        path = sorted(folder.glob(name))[0]
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)

    return change


def _linked(folder: Path) -> None:
    record = next(folder.glob("runs/*-P.1")) / "record.json"
    elsewhere = folder.parent / "record.json"
    record.rename(elsewhere)
    record.symlink_to(elsewhere)


def _moved(folder: Path) -> None:
    one, other = next(folder.glob("runs/*-P.1")), next(folder.glob("runs/*-P.2"))
    one.rename(folder / "runs/x")
    other.rename(one)
    (folder / "runs/x").rename(other)


TAMPERED: dict[str, tuple[Change, str]] = {
    "a run is missing": (lambda f: shutil.rmtree(next(f.glob("runs/*-S.2"))), "matrix"),
    "a run too many": (lambda f: shutil.copytree(next(f.glob("runs/*-S.2")), f / "runs/09-S.9"), "files"),
    "two runs exchanged": (_moved, "matrix"),
    "a stray file": (lambda f: (f / "notes.txt").write_text("faster!"), "files"),
    "a decision of another name": (_rewritten("decision.json", decision="slower"), "decision"),
    "a record's time": (_rewritten("runs/*-P.1/record.json", target_s=1.0), "runs"),
    "a record that hides its censoring": (_rewritten("runs/*-S.2/record.json", censored=False), "runs"),
    "a record's gain": (_rewritten("runs/*-S.1/record.json", final_gain=0.1), "runs"),
    "a record behind a link": (_linked, "files"),
    "a first launch before the preparation": (
        _rewritten("runs/*-P.1/launch.json", launched_utc="2020-01-01T00:00:00.000000Z"), "matrix"),
    "a first launch after the agents": (
        _rewritten("runs/*-P.1/launch.json", launched_utc="2099-01-01T00:00:00.000000Z"), "matrix"),
    "another plan": (_rewritten("plan.json", fraction=0.1), "plan"),
    "another order": (_rewritten("plan.json", seed=8), "plan"),
    "a run that ended too early": (
        lambda f: shutil.rmtree(sorted(next(f.glob("runs/*-S.1/rounds")).iterdir())[-1]), "rounds"),
    "a flipped bit in a sample": (_flipped("runs/*-P.1/rounds/*/experiments/rerun.1.json"), "runs"),
    "a flipped bit in the campaign": (_flipped("campaign.yaml"), "plan"),
    "an error told as censoring": (_rewritten("runs/*-S.2/end.json", process="error"), "runs"),
}  # fmt: skip


def test_p11_the_committed_pilot_audits() -> None:
    audit = audit_policy(PILOT)
    assert audit.failures == ()
    assert {check.name for check in audit.checks} >= {"plan", "matrix", "rounds", "runs", "decision"}


def test_p11_the_committed_pilot_has_three_runs_an_arm_and_names_nobodys_machine() -> None:
    material = read_policy(PILOT)
    assert len(material.records) == 6
    assert material.decision is not None
    assert all(record.provenances == ("scripted",) for record in material.records)
    assert any(record.censored for record in material.records)
    assert any(record.lost for record in material.records)
    assert any("build" in record.rejected for record in material.records)
    for path in (path for path in PILOT.rglob("*") if path.is_file()):
        assert b"/home/" not in path.read_bytes(), path


@pytest.mark.parametrize("case", TAMPERED)
def test_p11_what_was_tampered_with_does_not_audit(copy: Path, case: str) -> None:
    change, family = TAMPERED[case]
    change(copy)
    failed = {check.name for check in audit_policy(copy).failures}
    assert family in failed, failed


def test_p11_a_digest_that_was_published_elsewhere_is_held_against(copy: Path) -> None:
    decision = read_policy(copy).decision
    assert decision is not None
    assert audit_policy(copy, expect=decision.digest()).passed
    assert not audit_policy(copy, expect="0" * 64).passed


def test_p11_a_folder_without_a_plan_is_a_finding_and_no_traceback(tmp_path: Path) -> None:
    audit = audit_policy(tmp_path)
    assert not audit.passed
    assert "missing-file" in audit.checks[0].detail
