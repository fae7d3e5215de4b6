"""P01: what was frozen is compared with its seal by every command before a field of it is trusted."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.pilot_folders import edit_json
from support.pilots import MEND, record_of, small
from support.synthetic import reachable_folder
from typer.testing import CliRunner

from roundkit.analysis import pilot_frames
from roundkit.audit import audit_pilot
from roundkit.cli.app import app
from roundkit.core.canonical import digest_bytes
from roundkit.core.clock import now_utc
from roundkit.core.errors import Refused
from roundkit.evidence.plan_seal import SEAL, seal_bytes
from roundkit.models.pilot_trial import ReplayRecord
from roundkit.pilots.cohort import run_cohort
from roundkit.pilots.folder import PilotFolder, read_plan

OLDER = "roundkit-paired-plan/1"
TUPLE = "off-by-one.plain.1"
COMMANDS = (
    ("run", "{}"), ("run", "{}", "--setup", "off-by-one.plain"), ("status", "{}"), ("replay", "{}"),
    ("intervene", "{}", TUPLE, "--kind", "clarification"),
    ("review", "packet", "{}", "--all"), ("review", "packet", "{}"),
    ("review", "start", "{}", TUPLE, "--reviewer", "r"), ("review", "pause", "{}", "packet-1"),
    ("report", "{}", "--out", "{}/x.html"),
)  # fmt: skip


def said(folder: Path, words: tuple[str, ...]) -> str:
    """Return the codes that a command of ``roundkit pilot`` is refused with."""
    found = CliRunner().invoke(app, ["pilot", *(word.format(folder) for word in words)]).exception
    assert isinstance(found, Refused), (words, found)
    return " ".join(refusal.code for refusal in found.refusals)


@pytest.fixture(scope="module")
def half_run() -> Iterator[Path]:
    """A pilot of two tuples of which one was run, as it was frozen. Tests only read it."""
    with reachable_folder() as folder:
        pilot, plan = small(folder, MEND).freeze()
        run_cohort(pilot, plan, only=TUPLE)
        yield pilot.root


def older(root: Path) -> PilotFolder:
    """Make a pilot one that an older version froze, which wrote no seal."""
    edit_json(root / "plan.json", format=OLDER)
    (root / SEAL).unlink()
    return PilotFolder(root.resolve())


def test_p01_a_plan_that_was_edited_before_its_first_run_is_refused_by_every_command(tmp_path: Path) -> None:
    folder, plan = small(tmp_path).freeze()
    seal = (folder.root / SEAL).read_bytes()
    assert seal == seal_bytes(plan.digest()) == f"{plan.digest()}  plan.json\n".encode()
    edit_json(folder.root / "plan.json", repetitions=2)
    before = sorted(folder.root.rglob("*"))
    for words in COMMANDS:
        assert said(folder.root, words) == "plan-changed", words
    with pytest.raises(Refused, match="plan-changed"):
        pilot_frames(folder.root)
    found = {(check.where, check.detail) for check in audit_pilot(folder.root).failures}
    assert (SEAL, "does not name the digest of the plan") in found
    (folder.root / SEAL).unlink()
    assert {said(folder.root, words) for words in COMMANDS} == {"plan-changed"}
    assert (SEAL, "is missing") in {
        (check.where, check.detail) for check in audit_pilot(folder.root).failures
    }
    assert [path for path in before if path.name != SEAL] == sorted(folder.root.rglob("*"))


def test_p01_an_older_plan_of_which_nothing_was_run_is_bound_by_nothing_and_not_run(tmp_path: Path) -> None:
    folder = older(small(tmp_path).freeze()[0].root)
    assert said(folder.root, ("run", "{}")) == "plan-unsealed"
    assert read_plan(folder).format == OLDER
    assert not list(folder.trials.iterdir())


def test_p01_an_older_plan_is_read_and_held_against_what_was_run_of_it(
    half_run: Path, tmp_path: Path
) -> None:
    root = shutil.copytree(half_run, tmp_path / "pilot", symlinks=True)
    folder = older(root)
    with pytest.raises(Refused, match="made at another plan"):
        read_plan(folder)
    assert any(check.where == SEAL for check in audit_pilot(root).failures)
    for name in ("start.json", "record.json"):
        (path,) = root.glob(f"trials/*/{name}")
        edit_json(path, plan_sha256=digest_bytes((root / "plan.json").read_bytes()))
    acceptance = record_of(next(folder.trials.iterdir())).acceptance
    assert acceptance is not None
    replay = ReplayRecord(
        format="roundkit-pilot-replay/1", tuple_id=TUPLE, attempt=next(folder.trials.iterdir()).name,
        replayed_utc=now_utc(), acceptance=acceptance, agrees=True,
    )  # fmt: skip
    (folder.replays / f"{TUPLE}-1.json").write_bytes(replay.to_bytes())
    assert read_plan(folder).format == OLDER
    for name, words in (("plan", f"{OLDER} has no seal"), ("acceptance", "1 replays of an older format")):
        (check,) = (check for check in audit_pilot(root).checks if check.name == name)
        assert (check.passed, words in check.detail) == (True, True), check


def test_p08_lines_that_were_cut_off_a_ledger_are_missed(half_run: Path, open_folder: Path) -> None:
    root = shutil.copytree(half_run, open_folder / "pilot", symlinks=True)
    folder, first = PilotFolder(root.resolve()), next((root / "trials").iterdir())
    ledger = first / "interventions.jsonl"

    def told(*words: str) -> list[str]:
        done = CliRunner().invoke(app, ["pilot", *words])
        assert done.exit_code == 0, done.output
        return done.output.splitlines()

    def intervened() -> str:
        return told("intervene", str(root), TUPLE, "--kind", "restart")[-1].removeprefix("ledger ")

    posted = [intervened(), intervened()]
    assert f"ledger {posted[1]} of {first.name}" in told("status", str(root))
    (other,) = run_cohort(folder, read_plan(folder))
    posted.append(intervened())
    lines = ledger.read_bytes().splitlines(keepends=True)
    for number, digest in enumerate(posted, start=1):
        (head,) = (check for check in audit_pilot(root, head=digest).checks if check.name == "head")
        assert (head.passed, f"line {number} of 3" in head.detail) == (True, True), head
    # The last line, which no start follows, is missed where its digest was posted.
    ledger.write_bytes(b"".join(lines[:2]))
    assert "head" not in {check.name for check in audit_pilot(root, head=posted[1]).failures}
    failed = {check.name for check in audit_pilot(root, head=posted[2]).failures}
    assert ("head" in failed, "chain" in failed) == (True, False)
    # One from before the other attempt's start is missed without that.
    for left in (b"", lines[0]):
        ledger.write_bytes(left)
        (chain,) = (check for check in audit_pilot(root).failures if check.name == "chain")
        assert chain.where == f"trials/{first.name}/interventions.jsonl"
        assert f"trials/{other.attempt}/start.json" in chain.detail
