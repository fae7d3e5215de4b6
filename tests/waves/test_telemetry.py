"""Request events come from agents: nothing in their files is believed or followed."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.wave_campaigns import WaveCampaign, target, wave_campaign

from roundkit.core.clock import now_utc
from roundkit.evidence import wave_layout as names
from roundkit.models.wave_records import Shard
from roundkit.rules.wave_traffic import use_of
from roundkit.waves import telemetry
from roundkit.waves.telemetry import EventCollector, append, read_credit, read_events, read_memory

MODEL = "stub-1"


class Scene:
    """One shard's file and the campaign's."""

    def __init__(self, campaign: WaveCampaign) -> None:
        self.folder = campaign.folder
        self.shard = Shard(
            tag="0001", index=0, pool="one", model=MODEL, attempt=1, targets=(), started_utc=now_utc()
        )
        self.now_s = self.shard.started_utc.timestamp() + 100.0
        self.file = self.folder.shard("0001", 0) / names.REQUESTS / names.REQUEST_EVENTS
        self.file.parent.mkdir(parents=True)
        self.collector = self.fresh()
        self.collector.follow(self.shard)

    def fresh(self) -> EventCollector:
        return EventCollector(self.folder, lambda: self.now_s)

    def line(self, at_s: float = 1.0, **more: Any) -> bytes:
        row = {
            "at_s": self.shard.started_utc.timestamp() + at_s, "event": "post", "tag": "0001", "shard": 0,
            "model": MODEL, **more,
        }  # fmt: skip
        return json.dumps(row, separators=(",", ":")).encode() + b"\n"

    def write(self, content: bytes) -> None:
        with self.file.open("ab") as stream:
            stream.write(content)

    @property
    def collected(self) -> int:
        return len(read_events(self.folder, "0001"))


@pytest.fixture
def scene(open_folder: Path) -> Scene:
    return Scene(wave_campaign(open_folder, [target("f")]))


def test_lines_are_taken_as_they_are_completed(scene: Scene) -> None:
    whole = scene.line()
    scene.write(whole + whole[:10])
    scene.collector.collect()
    assert scene.collected == 1
    scene.write(whole[10:])
    scene.collector.collect()
    assert scene.collected == 2
    assert scene.collector.of_wave("0001")[1] == 0


@pytest.mark.parametrize(
    "change",
    [
        {"tag": "0002"}, {"shard": 1}, {"model": "another"}, {"event": "free"}, {"tokens": -1},
        {"at_s": -1.0}, {"at_s": 4e9}, {"unknown": 1}, {"tokens": 2**53}, {"micro_usd": 10**30},
    ],
    ids=str,
)  # fmt: skip
def test_a_line_that_is_none_of_its_own_is_counted_and_left(scene: Scene, change: dict[str, Any]) -> None:
    scene.write(scene.line(**change) + scene.line())
    assert len(scene.collector.finish(scene.shard)) == 1
    assert scene.collected == 1
    assert scene.collector.of_wave("0001")[1] == 1


def test_no_event_is_of_later_than_the_end_of_its_agent(scene: Scene) -> None:
    ended = scene.shard.started_utc + timedelta(seconds=1)
    scene.write(scene.line(at_s=1.0) + scene.line(at_s=1.5))
    assert len(scene.collector.finish(scene.shard, ended)) == 1
    assert scene.collector.of_wave("0001")[1] == 1


def test_amounts_that_add_up_to_more_than_a_record_holds_are_unknown(scene: Scene) -> None:
    for _ in range(2):
        scene.write(scene.line(event="answer", tokens=2**53 - 1, micro_usd=1))
    use = use_of(scene.collector.finish(scene.shard))
    assert (use.tokens, use.micro_usd) == (None, 2)


def test_noise_without_an_end_is_bounded_and_counted_once(scene: Scene) -> None:
    scene.write(b"x" * 200_000 + b"\n" + scene.line() + b"{")
    assert len(scene.collector.finish(scene.shard)) == 1
    assert scene.collector.of_wave("0001")[1] == 2


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "nothing"])
def test_what_is_no_plain_file_is_not_waited_for(scene: Scene, kind: str, tmp_path: Path) -> None:
    if kind == "link":
        (tmp_path / "secret").write_bytes(scene.line())
        scene.file.symlink_to(tmp_path / "secret")
    elif kind == "pipe":
        os.mkfifo(scene.file)
    elif kind == "folder":
        scene.file.mkdir()
    assert scene.collector.finish(scene.shard) == []


def test_a_restarted_drafter_takes_up_each_event_once(scene: Scene) -> None:
    scene.write(scene.line() + b"bad\n" + scene.line())
    scene.collector.collect()
    scene.write(scene.line() + b"bad\n")
    again = scene.fresh()
    again.follow(scene.shard, skip=scene.collected)
    assert len(again.finish(scene.shard)) == 3
    assert scene.collected == 3
    assert again.of_wave("0001")[1] == 2


def test_a_line_that_was_torn_off_does_not_spoil_the_next(scene: Scene) -> None:
    events = scene.folder.at(names.EVENTS)
    events.write_bytes(scene.line() + scene.line()[:20])
    append(events, scene.line())
    assert scene.collected == 2


def test_w10_what_a_full_disk_refused_is_kept_and_comes_later(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.write(scene.line())
    with monkeypatch.context() as full:

        def refuse(path: Path, lines: bytes) -> None:
            raise OSError(28, "No space left on device")

        full.setattr(telemetry, "append", refuse)
        with pytest.raises(OSError, match="No space"):
            scene.collector.collect()
    scene.collector.collect()
    assert scene.collected == 1


def test_credit_that_nobody_tells_has_its_reason(scene: Scene) -> None:
    credit = read_credit(scene.folder, purpose="test")
    assert credit.usd is None
    assert credit.reason == "the plan names no command that tells it"


def test_memory_is_read_or_null(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (read_memory().available_bytes or 0) > 0

    def unreadable() -> None:
        raise OSError("no /proc")

    monkeypatch.setattr(telemetry.psutil, "virtual_memory", unreadable)
    assert read_memory().available_bytes is None
