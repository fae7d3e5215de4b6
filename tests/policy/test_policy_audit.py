"""The audit of a policy pilot, on the committed evidence and on copies that somebody tampered with."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from roundkit.audit.policy import audit_policy
from roundkit.audit.policy_material import PolicyMaterial, RunMaterial, read_policy
from roundkit.core.canonical import canonical_bytes, digest_bytes, parse_json
from roundkit.core.errors import Refused
from roundkit.models.clocks import ClockPair
from roundkit.models.policy_run import PolicyEnd, PolicyLaunch
from roundkit.pilots.policy.run import run_policy, run_sentence
from roundkit.rules.policy_result import decision_of, state_of
from roundkit.rules.policy_run import RoundView, derive_run

PILOT = Path(__file__).resolve().parents[2] / "evidence/knobs/pilots/p-versus-s"
Change = Callable[[Path], object]
Derived = tuple[PolicyLaunch, PolicyEnd, list[RoundView]]


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


def _behind_link(folder: Path) -> None:
    elsewhere = folder.parents[2] / "elsewhere"
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)


def _exchanged(folder: Path, one: str, other: str) -> None:
    """Put the first round of another run in the place of a run's own, under its name."""
    own, foreign = (sorted(next(folder.glob(f"runs/*-{run}/rounds")).iterdir())[0] for run in (one, other))
    shutil.rmtree(own)
    shutil.copytree(foreign, own)


def _doubled(folder: Path, run: str) -> None:
    last = sorted(next(folder.glob(f"runs/*-{run}/rounds")).iterdir())[-1]
    shutil.copytree(last, last.with_name(f"{last.name}b"))


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
    "a run taken out": (lambda f: shutil.rmtree(sorted(f.glob("runs/*"))[0]), "chain"),
    "a run that names another before it": (
        _rewritten("runs/*-P.3/start.json", previous_sha256="0" * 64), "chain"),
    "a run that says it was the first": (_rewritten("runs/*-P.3/start.json", previous_sha256=None), "chain"),
    "a run that ended before its rounds": (
        _rewritten("runs/*-P.1/end.json", noted_utc="2020-01-01T00:00:00.000000Z"), "matrix"),
    "a run that began in the one before it": (
        _rewritten("runs/*-P.3/start.json", started_utc="2020-01-01T00:00:00.000000Z"), "matrix"),
    "rounds behind a link": (lambda f: _behind_link(next(f.glob("runs/*-P.1")) / "rounds"), "runs"),
    "all runs behind a link": (lambda f: _behind_link(f / "runs"), "matrix"),
    "a round of another run": (lambda f: _exchanged(f, "P.1", "P.3"), "rounds"),
    "a round from nowhere": (lambda f: _doubled(f, "S.1"), "rounds"),
    "rubbish among the rounds": (
        lambda f: (next(f.glob("runs/*-P.1")) / "rounds/notes.txt").write_text("faster!"), "files"),
    "a part of a record": (lambda f: (f / "runs/.x.tmp").write_text("{"), "files"),
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


@pytest.mark.parametrize(
    "name", ["plan.json", "decision.json", "runs/*-P.1/record.json", "runs/*-S.1/start.json"]
)
@pytest.mark.parametrize("rubbish", [b"", b"{", b'{"a":1e999}', b'{"a":123456789012345678901234567890}'])
def test_p11_a_file_that_is_no_json_is_a_finding_and_no_refusal(
    copy: Path, name: str, rubbish: bytes
) -> None:
    next(copy.glob(name)).write_bytes(rubbish)
    found = [check for check in audit_policy(copy).failures if check.name == "files"]
    assert any("[malformed]" in check.detail for check in found), found


def _resealed(folder: Path, change: Callable[[Any], object]) -> None:
    """Change the plan and its seal, as a forger would."""
    value = parse_json((folder / "plan.json").read_bytes(), place="plan.json")
    change(value)
    data = canonical_bytes(value)
    (folder / "plan.json").write_bytes(data)
    (folder / "plan.json.sha256").write_text(f"{digest_bytes(data)}  plan.json\n")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda plan: plan["campaign"]["protected_paths"].pop(), "not what the campaign file says"),
        (lambda plan: plan["round"]["lanes"].append(plan["round"]["lanes"][0]), "two lanes have one id"),
        (lambda plan: plan.update(frozen_utc="2099-01-01T00:00:00.000000Z"), "before the plan was frozen"),
        (lambda plan: plan["round"]["lanes"][0].update(entry="none"), "has no entry none"),
    ],
)
def test_p11_a_plan_that_was_sealed_anew_is_seen_and_raises_nothing(
    copy: Path, change: Callable[[Any], object], said: str
) -> None:
    for run in sorted((copy / "runs").iterdir())[1:]:
        shutil.rmtree(run)
    _resealed(copy, change)
    assert any(said in check.detail for check in audit_policy(copy).failures)


def test_p11_a_decision_that_does_not_follow_is_refused_and_not_rewritten(copy: Path) -> None:
    decision = copy / "decision.json"
    whole = decision.read_bytes()
    _rewritten("decision.json", ratio_threshold=0.1)(copy)
    edited = decision.read_bytes()
    with pytest.raises(Refused, match="decision-changed"):
        run_policy(copy, report=print)
    assert decision.read_bytes() == edited
    decision.unlink()
    assert run_policy(copy, report=print) is not None
    assert decision.read_bytes() == whole


def test_p11_a_digest_that_was_published_elsewhere_is_held_against(copy: Path) -> None:
    decision = read_policy(copy).decision
    assert decision is not None
    assert audit_policy(copy, expect=decision.digest()).passed
    assert not audit_policy(copy, expect="0" * 64).passed


def test_p11_a_folder_without_a_plan_is_a_finding_and_no_traceback(tmp_path: Path) -> None:
    audit = audit_policy(tmp_path)
    assert not audit.passed
    assert "missing-file" in audit.checks[0].detail


@pytest.mark.slow
def test_p11_a_head_that_was_posted_is_found_and_another_is_not(copy: Path) -> None:
    material = read_policy(copy)
    heads = [record.digest() for record in material.records]
    for number, head in enumerate(heads):
        [check] = [check for check in audit_policy(copy, head=head).checks if check.name == "head"]
        assert check.passed
        assert ("the last one" in check.detail) is (number == len(heads) - 1)
    failures = audit_policy(copy, head="0" * 64).failures
    assert [check.name for check in failures] == ["head"]


def _on_both_clocks(run: RunMaterial, *, set_by_s: float = 0.0, restarted: bool = False) -> Derived:
    """Derive a run as if both clocks had been read, and the first one set after its first launch."""
    assert run.launch is not None
    assert run.end is not None

    def pair(moment: datetime, *, later: bool) -> ClockPair:
        since = moment - timedelta(seconds=set_by_s if later else 0.0) - run.launch.launched_utc
        at_us = since // timedelta(microseconds=1) + 10**10
        boot = "another" if later and restarted else "one"
        return ClockPair(utc=moment, from_us=at_us - 2, to_us=at_us + 2, boot_id=boot)

    launch = run.launch.model_copy(update={"clock": pair(run.launch.launched_utc, later=False)})
    end = run.end.model_copy(update={"clock": pair(run.end.noted_utc, later=True)})
    views = [
        replace(
            view,
            experiments=tuple(
                each.model_copy(update={"ended_clock": pair(each.ended_utc, later=True)})
                for each in view.experiments
            ),
        )
        for view in run.views()
    ]
    return launch, end, views


@pytest.fixture(scope="module")
def material() -> PolicyMaterial:
    return read_policy(PILOT)


@pytest.fixture(scope="module")
def timed(material: PolicyMaterial) -> RunMaterial:
    return next(run for run in material.runs if run.slot.run_id == "P.1")


def test_p11_a_clock_that_went_back_gives_no_time_and_no_first(
    material: PolicyMaterial, timed: RunMaterial
) -> None:
    assert timed.launch is not None
    assert timed.end is not None
    view = timed.views()[0]
    late = timed.launch.model_copy(update={"launched_utc": view.ledger.closed_utc + timedelta(seconds=1)})
    _has_no_time(material, timed, (late, timed.end, list(timed.views())), None, "clock went back")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"set_by_s": 3600.0}, "set forward during it, by 3600 s"),
        ({"set_by_s": 0.01}, "set forward during it, by 0.01 s"),
        ({"set_by_s": -0.01}, "set back during it, by 0.01 s"),
        ({"restarted": True}, "started anew"),
    ],
)
def test_p11_a_clock_that_was_set_gives_no_time_and_no_first(
    material: PolicyMaterial, timed: RunMaterial, how: dict[str, Any], said: str
) -> None:
    _has_no_time(material, timed, _on_both_clocks(timed, **how), (), said)


def test_p11_a_clock_that_nobody_read_gives_no_time(material: PolicyMaterial, timed: RunMaterial) -> None:
    launch, end, views = _on_both_clocks(timed)
    alone = launch.model_copy(update={"clock": None})
    _has_no_time(material, timed, (alone, end, views), (), "no clock that counts from the host's start")


def test_p11_two_clocks_that_agree_give_the_time_of_one(material: PolicyMaterial, timed: RunMaterial) -> None:
    assert timed.record is not None
    launch, end, views = _on_both_clocks(timed)
    record = derive_run(material.plan, timed.slot, end, launch, views, ())
    for name in ("target_s", "wall_s", "device_hours", "utilization", "waits"):
        assert getattr(record, name) == getattr(timed.record, name), name


def _has_no_time(
    material: PolicyMaterial, run: RunMaterial, of: Derived, files: tuple[()] | None, said: str
) -> None:
    assert run.record is not None
    assert run.record.target_s is not None
    launch, end, views = of
    record = derive_run(material.plan, run.slot, end, launch, views, files)
    assert (record.target_s, record.wall_s, record.device_hours, record.censored) == (None, None, None, False)
    assert {wait.wait_s for wait in record.waits} == {row.elapsed_s for row in record.rounds} == {None}
    assert said in record.detail
    assert state_of(record) == "untimed"
    assert "no time" in run_sentence(record)
    records = [record if each.run_id == run.slot.run_id else each for each in material.records]
    decision = decision_of(material.plan, records)
    assert decision.decision == "not distinguishable"
    assert decision.pairs[0].winner == "incomplete"
