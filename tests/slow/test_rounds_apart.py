"""Rounds that take minutes: A/A failures, reruns that fail, two rounds in sequence, a full disk."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.killing import (
    Scene,
    assert_one_verdict_each,
    plain_repo,
    run_to_end,
    scene,
    start,
    wait_for,
)
from support.program import BENCH, BUILD
from support.small_disk import fill, mounted_disk
from support.synthetic import knob, scripted_lane

from roundkit.audit import audit_round
from roundkit.core.canonical import digest_file
from roundkit.core.yamlfile import load_yaml
from roundkit.models.evidence import EvidenceIndex
from roundkit.models.ledger import RoundLedger
from roundkit.rounds.control import read_status
from roundkit.rounds.layout import RoundFolder
from roundkit.store import open_store

pytestmark = pytest.mark.slow

# The machine of this test is only sound for a coordinator that was not started with `nice`: then each
# checkout is built with another speed.
_UNSOUND_BUILD = BUILD.replace(
    'stream.write("built")', "stream.write(str(os.urandom(4)[0] if os.nice(0) else 0))"
)
_UNSOUND_BENCH = BENCH.replace(
    "    level = latency_ms(knobs)",
    '    level = latency_ms(knobs) * (1 + int(open("build/stamp.txt").read()) / 256)',
)
# Each knob that is turned makes the program four percent larger.
_GROWING_BENCH = BENCH.replace(
    'metrics = {} if "missing" in modes else {"latency_ms": readings}',
    'size = 100.0 * 1.04 ** sum(1 for knob in knobs.values() if knob["value"])\n'
    '    metrics = {"latency_ms": readings, "size_kb": [size] * len(readings)}',
)


def ledger_of(evidence: Path) -> RoundLedger:
    return RoundLedger.from_bytes((evidence / "round-ledger.json").read_bytes(), place="ledger")


def assert_audits(evidence: Path, repository: Path) -> None:
    report = audit_round(evidence, repository=repository)
    assert [check for check in report.checks if not check.passed] == []


def test_r22_a_failing_aa_check_pauses_and_resume_needs_a_passing_one(open_folder: Path) -> None:
    files = {"build.py": _UNSOUND_BUILD, "bench/bench.py": _UNSOUND_BENCH}
    repo = plain_repo(open_folder / "s", ("L1",), files=files)
    repo.edit_campaign(lambda plan: plan["test_plan"]["drift"].update(single_limit=3.0))
    folder, _ = repo.launched(open_folder / "s/round")
    ticket = scripted_lane(folder.clone("L1"), {"knobs/L1.json": knob(0.5)})["ticket"]
    there = Scene(open_folder / "s", repo, folder, (ticket,))

    def served(*, nice: bool, expect: int) -> str:
        process = start(
            there.leases,
            "serve",
            folder.root,
            "--until-idle",
            preexec_fn=(lambda: os.nice(5)) if nice else None,
        )
        said, _ = process.communicate(timeout=300)
        assert process.returncode == expect, said
        return said

    assert "A/A failed: single, the incumbent differs from itself by " in served(nice=True, expect=1)
    assert (read_status(folder).paused or "").startswith(
        "A/A failed: single, the incumbent differs from itself by "
    )
    served(nice=False, expect=1)
    run_to_end(there.leases, "resume", folder.root)
    served(nice=True, expect=1)
    with open_store(folder.database) as store:
        assert [check.passed for check in store.aa_checks.all()] == [False, False]
        assert store.tickets.count(state="queued") == 1
    run_to_end(there.leases, "resume", folder.root)
    served(nice=False, expect=0)
    assert_one_verdict_each(folder, there.leases, [ticket])
    run_to_end(there.leases, "close", folder.root)
    assert_audits(repo.root / "evidence/knobs/rounds/r01", repo.root)


@pytest.mark.parametrize("policy", ["best-single", "keep-incumbent"])
def test_r24_a_failed_rerun_falls_back_once_or_keeps_the_incumbent(open_folder: Path, policy: str) -> None:
    """Each step stays within the guard; both together do not."""
    repo = plain_repo(open_folder / "s", ("L1", "L2"), files={"bench/bench.py": _GROWING_BENCH})
    guard = {"name": "size_kb", "unit": None, "direction": "lower", "limit": 0.05}
    repo.edit_campaign(lambda plan: plan["metric"].update(guards=[guard]))
    repo.edit_round(lambda draft: draft["composition"].update(fallback=policy))
    folder, _ = repo.launched(open_folder / "s/round")
    for lane, value in {"L1": 0.5, "L2": 0.4}.items():
        scripted_lane(folder.clone(lane), {f"knobs/{lane}.json": knob(value)})
    leases = open_folder / "s/leases"
    run_to_end(leases, "serve", folder.root, "--until-idle")
    run_to_end(leases, "close", folder.root)
    evidence = repo.root / "evidence/knobs/rounds/r01"
    ledger = ledger_of(evidence)
    assert [step.kept for step in ledger.composition] == [True, True]
    outcomes = {record.lane: record.outcome for record in ledger.lanes}
    reruns = [(record.kind, record.verdict.verdict, record.lanes) for record in ledger.rerun]
    first = ("rerun", "fail", ("L1", "L2"))
    if policy == "keep-incumbent":
        assert reruns == [first]
        assert not ledger.advanced
        assert outcomes == {"L1": "rerun-failed", "L2": "rerun-failed"}
    else:
        assert reruns == [first, ("fallback", "pass", ("L1",))]
        assert ledger.advanced
        assert outcomes == {"L1": "composed", "L2": "rerun-failed"}
    assert_audits(evidence, repo.root)


def test_r25_a_second_round_starts_from_the_new_incumbent_and_retries_what_returned(
    open_folder: Path,
) -> None:
    first = scene(open_folder / "s", {"L1": 0.5, "L2": 0.4}, shared=[("L1", "L2")])
    run_to_end(first.leases, "serve", first.folder.root, "--until-idle")
    run_to_end(first.leases, "close", first.folder.root)
    campaign = load_yaml(first.repo.campaign_file.read_bytes(), place="campaign.yaml")
    assert {entry["id"]: entry["status"] for entry in campaign["search_plan"]} == {
        "E-L1": "kept",
        "E-L2": "planned",
    }
    incumbent = first.repo.incumbent
    assert incumbent == first.repo.repository.resolve("roundkit/r01")

    def second_round(draft: dict[str, object]) -> None:
        draft["round_id"] = "r02"
        lanes = draft["lanes"]
        assert isinstance(lanes, list)
        lanes[:] = [lane for lane in lanes if lane["id"] == "L2"]

    first.repo.edit_round(second_round)
    folder, _ = first.repo.launched(first.root / "round-2")
    scripted_lane(folder.clone("L2"), {"knobs/L2.json": knob(0.9)})
    run_to_end(first.leases, "serve", folder.root, "--until-idle")
    run_to_end(first.leases, "close", folder.root)
    rounds = first.repo.root / "evidence/knobs/rounds"
    one, two = (ledger_of(rounds / name) for name in ("r01", "r02"))
    assert two.incumbent == incumbent
    assert two.advanced
    assert one.advanced
    index = EvidenceIndex.from_bytes((rounds / "r02/index.json").read_bytes(), place="index")
    assert index.previous == digest_file(rounds / "r01/index.json")
    for name in ("r01", "r02"):
        assert_audits(rounds / name, first.repo.root)


@pytest.fixture
def small_disk(open_folder: Path) -> Iterator[Path]:
    """A file system of 48 MiB of its own."""
    with mounted_disk(open_folder, 48) as disk:
        yield disk


def test_r26_a_full_disk_pauses_the_queue_and_loses_nothing(open_folder: Path, small_disk: Path) -> None:
    repo = plain_repo(open_folder / "s", ("L1", "L2", "L3"))
    repo.freeze(small_disk / "round")
    folder = RoundFolder(small_disk / "round")
    run_to_end(open_folder / "leases", "launch", folder.root)
    tickets = [
        scripted_lane(folder.clone(lane), {f"knobs/{lane}.json": knob(0.3)})["ticket"]
        for lane in ("L1", "L2", "L3")
    ]
    serve = start(open_folder / "leases", "serve", folder.root, "--until-deadline")
    wait_for(
        lambda: folder.database.exists() and "measuring" in states(folder), "a ticket that is being measured"
    )
    filler = fill(small_disk)
    wait_for(lambda: read_status(folder).paused, "the pause")
    assert "disk-full" in (read_status(folder).paused or "")
    assert serve.poll() is None
    filler.unlink()
    run_to_end(open_folder / "leases", "resume", folder.root)
    wait_for(lambda: states(folder) == ["measured"] * 3, "three verdicts")
    serve.send_signal(signal.SIGTERM)
    said, _ = serve.communicate(timeout=120)
    assert serve.returncode == 0, said
    assert "the queue is paused: disk-full" in said or "no space is left; nothing is lost" in said
    assert "Traceback" not in said
    assert_one_verdict_each(folder, open_folder / "leases", tickets)


def states(folder: RoundFolder) -> list[str]:
    return [ticket.state for _, ticket in read_status(folder).tickets]
