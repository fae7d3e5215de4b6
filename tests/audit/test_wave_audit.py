"""N09 for wave campaigns: the audit names whatever was changed in an export, or forged with every hash."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.wave_forging import forge, reseal

from roundkit.audit import audit_evidence
from roundkit.core.canonical import canonical_bytes
from roundkit.waves.export import export_campaign
from roundkit.waves.folder import open_campaign

WAVES = Path(__file__).resolve().parents[2] / "evidence/c-functions"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(WAVES, tmp_path / "c-functions"))


def failed(folder: Path) -> set[str]:
    return {check.name for check in audit_evidence(folder).failures}


def test_n09_the_expected_digest_of_a_campaign_is_held_against_its_index() -> None:
    digest = audit_evidence(WAVES).digest
    assert audit_evidence(WAVES, expect=digest).passed
    assert [check.name for check in audit_evidence(WAVES, expect="0" * 64).failures] == ["index"]


def test_n09_a_new_export_of_the_same_records_audits(tmp_path: Path) -> None:
    out = tmp_path / "again"
    export_campaign(open_campaign(WAVES), out)
    assert audit_evidence(out).failures == ()


def test_n09_what_was_never_exported_is_no_evidence(folder: Path) -> None:
    (folder / "waves-index.json").unlink()
    (found,) = audit_evidence(folder).failures
    assert (found.name, found.where) == ("files", "waves-index.json")
    assert found.detail.startswith("[no-evidence] ")
    assert "`roundkit waves export`" in found.detail


def test_n09_half_a_line_of_a_campaign_that_goes_on_is_not_exported(folder: Path, tmp_path: Path) -> None:
    with (folder / "events.jsonl").open("ab") as stream:
        stream.write(b'{"at_s": 1')
    export_campaign(open_campaign(folder), tmp_path / "out")
    assert audit_evidence(tmp_path / "out").failures == ()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_n09_any_flipped_byte_of_a_campaign_is_named(folder: Path, data: st.DataObject) -> None:
    victim = data.draw(st.sampled_from(sorted(path for path in folder.rglob("*") if path.is_file())))
    before = victim.read_bytes()
    position = data.draw(st.integers(0, len(before) - 1))
    flipped = data.draw(st.integers(1, 255))
    try:
        victim.write_bytes(before[:position] + bytes([before[position] ^ flipped]) + before[position + 1 :])
        assert failed(folder)
    finally:
        victim.write_bytes(before)


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "waves/0003/decision.json").unlink(),
        lambda folder: (folder / "waves/0003/notes.json").write_text("{}"),
        lambda folder: (folder / "waves/0003/shards/0000/deep/er").mkdir(parents=True),
        lambda folder: shutil.rmtree(folder / "waves/0005"),
        lambda folder: link_elsewhere(folder / "ledger.jsonl"),
    ],
    ids=["missing", "extra", "too-deep", "a-wave", "a-link"],
)
def test_n09_files_of_a_campaign_are_counted(folder: Path, change: Callable[[Path], object]) -> None:
    change(folder)
    assert failed(folder) == {"files"}


def link_elsewhere(path: Path) -> None:
    elsewhere = path.parent.parent / path.name
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def drop_line(name: str, number: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        lines = (folder / name).read_bytes().splitlines(keepends=True)
        (folder / name).write_bytes(b"".join(lines[:number] + lines[number + 1 :]))
        reseal(folder)

    return change


def forged(name: str, **changes: Any) -> Callable[[Path], None]:
    return lambda folder: forge(folder, name, lambda value: value.update(changes))


FORGERIES: dict[str, tuple[Callable[[Path], object], str]] = {
    "one more banked": (
        lambda folder: forge(folder, "ledger.jsonl", lambda row: row.update(banked=row["banked"] + 1)),
        "rejects",
    ),
    "fewer drafts": (
        lambda folder: forge(folder, "ledger.jsonl", lambda row: row.update(drafts=row["drafts"] - 1)),
        "rejects",
    ),
    "a reject that is gone": (drop_line("rejects.jsonl", 0), "rejects"),
    "a row that is gone": (drop_line("ledger.jsonl", 0), "rejects"),
    "a row twice": (
        lambda folder: (
            (folder / "ledger.jsonl").write_bytes(
                (folder / "ledger.jsonl").read_bytes()
                + (folder / "ledger.jsonl").read_bytes().splitlines(keepends=True)[0]
            ),
            reseal(folder),
        ),
        "ledger",
    ),
    "a request that is gone": (drop_line("events.jsonl", 0), "requests"),
    "a 429 that is gone": (
        lambda folder: forge_event(folder, lambda event: event["event"] == "429", {"event": "post"}),
        "requests",
    ),
    "an answer of another length": (
        lambda folder: forge_event(folder, lambda event: event["event"] == "answer", {"tokens": 1}),
        "shards",
    ),
    "another number of workers": (
        lambda folder: forge(
            folder, "waves/0002/decision.json", lambda step: step["decision"].update(next_workers=64)
        ),
        "workers",
    ),
    "workers that nobody decided": (forged("waves/0003/drafted.json", workers=4), "workers"),
    "another time": (forged("ledger.jsonl", wall_s=1.0), "ledger"),
    "another share": (
        lambda folder: forge(
            folder, "waves/0001/shards/0000/shard.json", lambda shard: shard["targets"].pop()
        ),
        "shards",
    ),
    "another model": (forged("waves/0001/shards/0000/shard.json", model="other"), "shards"),
    "another plan": (forged("waves/0001/wave.json", plan_sha256="0" * 64), "plan"),
    "a model's work": (forged("ledger.jsonl", provenance="model"), "plan"),
    "targets over the plan's limit": (
        lambda folder: forge(folder, "plan.json", lambda plan: plan["plan"].update(targets=3)),
        "draws",
    ),
    "a target twice": (
        lambda folder: forge(
            folder, "waves/0001/wave.json", lambda wave: wave["targets"].append(wave["targets"][0])
        ),
        "draws",
    ),
    "no retries told": (forged("waves/0002/wave.json", retried=7), "draws"),
}


def forge_event(folder: Path, wanted: Callable[[Any], bool], changes: dict[str, Any]) -> None:
    lines = (folder / "events.jsonl").read_bytes().splitlines()
    number = next(number for number, line in enumerate(lines) if wanted(json.loads(line)))
    lines[number] = canonical_bytes({**json.loads(lines[number]), **changes})
    (folder / "events.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    reseal(folder)


@pytest.mark.parametrize("case", FORGERIES)
def test_n09_a_forged_campaign_is_caught_though_every_hash_was_mended(folder: Path, case: str) -> None:
    change, family = FORGERIES[case]
    change(folder)
    found = failed(folder)
    assert family in found, found
    assert "files" not in found
