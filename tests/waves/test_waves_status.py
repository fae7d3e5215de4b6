"""`roundkit waves status`: how a campaign stands, from its folder alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.killing import wait_for
from support.wave_campaigns import target, wave_campaign
from support.wave_provider import wave_provider
from typer.testing import CliRunner

from roundkit.cli.app import app
from roundkit.waves.status import read_status


def status(folder: Path, *options: str) -> str:
    done = CliRunner().invoke(app, ["waves", "status", str(folder), *options], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_status_follows_a_wave_from_its_draw_to_its_row(open_folder: Path) -> None:
    with wave_provider() as provider:
        provider.hold("f2")
        campaign = wave_campaign(open_folder, [target(f"f{n}") for n in range(3)])
        campaign.ask(provider)
        folder = campaign.folder
        assert "drafter: not running, never ran" in status(folder.root)
        with campaign.drafting() as drafting:
            wait_for(lambda: sum(wave.ended for wave in read_status(folder).waves) == 2, "two ends")
            shown = json.loads(status(folder.root, "--json"))
            (wave,) = shown["waves"]
            assert (wave["state"], wave["started"], wave["ended"], wave["shards"]) == ("drafting", 3, 2, 3)
            assert (shown["drafter_runs"], shown["gater_runs"], shown["queue"]) == (True, False, [])
            assert shown["drafter"]["state"] == "drafting"
            assert shown["fleet"]["most"] == 3
            provider.release()
            drafting.join()
        assert json.loads(status(folder.root, "--json"))["queue"] == ["0001"]
        campaign.gated("0001", banked=3)
        shown = json.loads(status(folder.root, "--json"))
        assert shown["waves"][0]["state"] == "gated"
        assert shown["waves"][0]["row"]["banked"] == 3
        assert shown["decision"]["reason"] == "clean"
        assert shown["workers"] == 5
        said = status(folder.root, "--watch")
        assert "workers: 5 (clean at 3 in wave 0001)" in said
        assert "fleet: idle 0.0 %" in said


def test_stop_is_asked_by_a_command_and_seen(open_folder: Path) -> None:
    campaign = wave_campaign(open_folder, [target("f0")])
    done = CliRunner().invoke(app, ["waves", "stop", str(campaign.folder.root)], catch_exceptions=False)
    assert done.exit_code == 0
    assert "stop: asked for" in status(campaign.folder.root)


@pytest.mark.parametrize("words", [["status"], ["draft"], ["gate"], ["stop"]])
def test_a_folder_without_a_campaign_is_refused(open_folder: Path, words: list[str]) -> None:
    done = CliRunner().invoke(app, ["waves", *words, str(open_folder)])
    assert "no-campaign" in str(done.exception)
