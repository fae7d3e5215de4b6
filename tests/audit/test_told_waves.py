"""N09: lies about waves that their own records contradict, though every hash over them was mended."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.wave_forging import INDEX, forge, seal

from roundkit.audit import audit_evidence
from roundkit.core.clock import format_utc

WAVES = Path(__file__).resolve().parents[2] / "evidence/c-functions"
LEDGER, REJECTS, EVENTS, DRAFTER, PLAN = (
    "ledger.jsonl", "rejects.jsonl", "events.jsonl", "drafter.json", "plan.json",
)  # fmt: skip
EARLIER = "2026-11-30T18:00:00.000000Z"
Change = Callable[[Any], object]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(WAVES, tmp_path / "c-functions"))


def put(**values: Any) -> Change:
    return lambda record: record.update(values)


def in_plan(*names: str, value: Any) -> Change:
    def change(record: Any) -> None:
        part = record["plan"]
        for name in names[:-1]:
            part = part[name]
        part[names[-1]] = value

    return change


def moved(field: str, seconds: float) -> Change:
    """Move a time."""

    def change(record: Any) -> None:
        moment = datetime.fromisoformat(record[field]) + timedelta(seconds=seconds)
        record[field] = format_utc(moment)

    return change


def left_out(**counts: int) -> Change:
    return lambda wave: wave["left_out"].update(counts)


def renamed_status(row: Any) -> None:
    row["prefilter"]["nothing-to-check"] = row["prefilter"].pop("mismatch")


def rejected(stage: str) -> int:
    """Return the line of the first reject of a stage."""
    rows = [json.loads(line) for line in (WAVES / REJECTS).read_bytes().splitlines()]
    return next(number for number, row in enumerate(rows, 1) if row["stage"] == stage)


def told(event: str) -> int:
    """Return the line of the first event of a kind."""
    rows = [json.loads(line) for line in (WAVES / EVENTS).read_bytes().splitlines()]
    return next(number for number, row in enumerate(rows, 1) if row["event"] == event)


SHARD, END = "waves/0003/shards/0002/shard.json", "waves/0002/shards/0003/end.json"
LIES: dict[str, tuple[str, int, Change, str, str]] = {
    "drawn before the wave before it was started": (
        "waves/0003/wave.json", 1, moved("drawn_utc", -5), "draws", "drawn_utc is"),
    "drawn after the deadline": (
        PLAN, 1, in_plan("deadline_utc", value=EARLIER), "draws", "before the deadline"),
    "drawn while too many waited": (
        PLAN, 1, in_plan("queue_depth", value=1), "draws", "was drawn while 0001 waited for the gate"),
    "left out of a wave that was not full": (
        PLAN, 1, in_plan("targets", value=41), "draws", "left 160 out for wave-full"),
    "left out as siblings where families do not count": (
        "waves/0002/wave.json", 1, left_out(sibling=3), "draws", "left 3 out for sibling"),
    "left out for no reason": (
        "waves/0002/wave.json", 1, left_out(tired=3), "draws", "for what is no reason: tired"),
    "left out as drafting, and nothing was": (
        "waves/0002/wave.json", 1, left_out(drafting=41), "draws", "left 41 out as of open waves"),
    "started before the shard before it": (
        SHARD, 1, moved("started_utc", -3), "times", "started_utc is"),
    "begun before the tail of the wave before it": (
        PLAN, 1, in_plan("draft", "tail", value=1.0), "times", "started_utc is"),
    "ended by a deadline that had not come": (
        END, 1, put(end_reason="deadline", exit_code=None), "times", "seconds until its deadline is"),
    "a request after its shard's end": (
        EVENTS, told("answer"), lambda event: event.update(at_s=event["at_s"] + 600), "requests",
        "is from after its shard had ended"),
    "an end before its requests": (
        "waves/0001/shards/0000/end.json", 1, moved("ended_utc", -60), "requests",
        "is from after its shard had ended"),
    "a decision that knew of too little": (
        "waves/0001/decision.json", 1, lambda step: step["traffic"].update(truncated=0), "workers",
        "truncated is 0, recomputed at least"),
    "a decision that knew of lines that nobody wrote": (
        "waves/0002/decision.json", 1, lambda step: step["traffic"].update(bad_lines=3), "workers",
        "bad_lines is 3, recomputed at most 0"),
    "ended at caps that it kept": (
        END, 1, put(end_reason="budget"), "shards", "it ended at its caps, 120 turns and 0 micro-USD"),
    "ended for no reason": (END, 1, put(end_reason="weather"), "shards", "it ended for weather"),
    "never started, and it asked": (
        END, 1, put(end_reason="not-started"), "shards", "its agent was never started, and told of 7"),
    "a drafter that waits to end": (DRAFTER, 1, put(state="waiting"), "drafter", "waits for waves"),
    "a drafter that ended before its last wave": (
        DRAFTER, 1, moved("at_utc", -1200), "drafter", "and went on until"),
    "a drafter that ended for another reason": (
        DRAFTER, 1, put(reason="credit"), "drafter", "ended for credit, which cannot be"),
    "a drafter that ended for no reason": (
        DRAFTER, 1, put(reason="lunch"), "drafter", "ended for lunch, which is no reason to end"),
    "a drafter that ended for waves that were not drawn": (
        PLAN, 1, in_plan("waves", value=6), "drafter", "ended for waves, which cannot be"),
    "a drafter at a wave that was never drawn": (
        DRAFTER, 1, put(state="drafting", reason="0009"), "drafter", "drafts 0009"),
    "a credit that nobody could tell": (
        DRAFTER, 1, put(credit_usd=5.0, credit_reason=None), "drafter", "tells a credit of 5.0 USD"),
    "a credit that nobody could tell in the ledger": (
        LEDGER, 1, put(credit_usd=5.0, credit_reason=None), "drafter", "tells a credit of 5.0 USD"),
    "neither a credit nor why not": (
        DRAFTER, 1, put(credit_reason=None), "drafter", "do not go together"),
    "a gate of more time than there was": (LEDGER, 2, put(gate_s=7.0), "ledger", "gate_s is 7.0"),
    "a gate of less than no time": (LEDGER, 2, put(gate_s=-1.0), "ledger", "gate_s is -1.0"),
    "no lessons where there were": (LEDGER, 1, put(harvest="none"), "ledger", "its harvest is none"),
    "a wave as what was parked": (LEDGER, 1, put(mode="parked"), "ledger", "is of parked drafts"),
    "a wave as what came later": (LEDGER, 1, put(mode="gate-only"), "ledger", "is of what came later"),
    "one commit for two waves": (
        LEDGER, 2, put(commit="b81d05f93c32535d8722f3a51f4fadf02fa1b458"), "ledger", "of line 1"),
    "a status that no prefilter has": (
        LEDGER, 1, lambda row: row["prefilter"].update(splendid=0), "ledger", "says splendid"),
    "drafts of another status": (LEDGER, 1, renamed_status, "rejects", "reasons of the prefilter is"),
    "more gated than passed": (LEDGER, 1, put(gated=30), "rejects", "29 could be gated, 30 gated"),
    "a reason of another status": (
        REJECTS, 1, put(reason="error: none"), "rejects", "reasons of the prefilter is"),
    "a reject of another target": (
        REJECTS, 1, put(name="shifted_009"), "rejects", "which is not one of unit_00/shifted_009"),
    "a reject of another shard": (
        REJECTS, 1, put(path="shards/0003/drafts/before_call_002.c"), "rejects", "which is not one of"),
    "a reject that is no draft": (
        REJECTS, 1, put(path="shards/0002/notes"), "rejects", "of no shard that was started"),
    "a reject without an owner that has one": (
        REJECTS, 1, put(group=None, name=None), "rejects", "has no owner, and"),
    "a reject without its digest": (
        REJECTS, 1, put(sha256=None), "rejects", "is a draft without a digest"),
    "a reject as parked": (
        REJECTS, rejected("gate"), put(stage="parked"), "rejects", "was parked, and the plan"),
    "a reject as of the scorer": (
        REJECTS, rejected("gate"), put(stage="score"), "rejects", "was left by the scorer"),
    "a reject before its wave was handed on": (REJECTS, 1, moved("at_utc", -60), "rejects", "at_utc is"),
    "a reject after its wave's row": (REJECTS, 1, moved("at_utc", 60), "rejects", "at_utc is"),
    "a reject of a gate after the next one's row": (
        REJECTS, rejected("gate"), moved("at_utc", 600), "rejects", "at_utc is"),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_n09_a_lie_about_waves_is_named(folder: Path, lie: str) -> None:
    name, line, change, family, words = LIES[lie]
    assert audit_evidence(folder).passed
    forge(folder, name, change, line=line)
    found = audit_evidence(folder).failures
    assert any(check.name == family and words in check.detail for check in found), found
    assert not any(check.name == "files" for check in found)


def test_n09_nothing_of_a_campaign_is_from_after_its_export(folder: Path) -> None:
    index = json.loads((folder / INDEX).read_bytes())
    index["exported_utc"] = "2026-11-30T19:30:00.000000Z"
    seal(folder, index)
    found = audit_evidence(folder).failures
    assert {check.name for check in found} == {"times"}
    assert any("everything was exported at 2026-11-30 19:30:00+00:00" in check.detail for check in found)


def test_n09_a_row_has_the_credit_that_its_drafter_told_last(folder: Path) -> None:
    forge(folder, PLAN, in_plan("credit", value={"argv": ["{python}"], "timeout_s": 5}))
    forge(folder, DRAFTER, moved("at_utc", -1200))
    forge(folder, LEDGER, put(credit_usd=7.5, credit_reason=None))
    found = [check for check in audit_evidence(folder).failures if check.name == "drafter"]
    assert any(check.where == "ledger.jsonl: line 1" and "credit is (7.5" in check.detail for check in found)
