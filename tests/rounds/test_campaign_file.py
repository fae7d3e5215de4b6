"""Close and an owner's ``campaign.yaml`` that changed since the round was frozen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.synthetic import CampaignRepo

from roundkit.core.errors import Refused
from roundkit.core.yamlfile import dump_yaml, read_yaml
from roundkit.rounds.close import close
from roundkit.rounds.control import read_status
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.serve import serve


def quiet(_line: str) -> None:
    pass


def _with_a_note(path: Path, key: str) -> None:
    _, content = read_yaml(path)
    content[key] = ["a note of the owner's", *(content.get(key) or [])]
    path.write_bytes(dump_yaml(content))


@pytest.mark.parametrize(
    ("damage", "code", "named"),
    [
        (lambda path: path.unlink(), "missing-file", "campaign.yaml"),
        (lambda path: path.write_text("search_plan: [\n"), "malformed-yaml", "line"),
        (lambda path: path.write_text("[]\n"), "campaign-file", "holds no keys"),
        (lambda path: path.write_text("search_plan: []\nsearch_state: {}\n"), "campaign-file", "entry E-L1"),
        (lambda path: _with_a_note(path, "search_plan_revisions"), "campaign-file", "a row without keys"),
        (lambda path: _with_a_note(path, "search_plan"), "campaign-file", "a row without keys"),
    ],
    ids=["removed", "malformed", "a-list", "entry-removed", "note-as-row", "note-as-entry"],
)
def test_r09_a_damaged_campaign_file_is_refused_before_anything_is_decided(
    launched: RoundFolder,
    three_lanes: CampaignRepo,
    damage: Callable[[Path], Any],
    code: str,
    named: str,
) -> None:
    serve(launched, until="idle", report=quiet)
    path = three_lanes.root / "campaign.yaml"
    good = path.read_bytes()
    damage(path)
    before = path.read_bytes() if path.exists() else None
    with pytest.raises(Refused, match=named) as caught:
        close(launched, report=quiet)
    assert caught.value.refusals[0].code == code
    assert (path.read_bytes() if path.exists() else None) == before
    assert not read_status(launched).closed
    path.write_bytes(good)
    assert not close(launched, report=quiet).ledger.advanced


def test_r09_another_incumbent_in_the_file_stays(launched: RoundFolder, three_lanes: CampaignRepo) -> None:
    serve(launched, until="idle", report=quiet)
    other = "f" * 40
    three_lanes.edit_campaign(lambda plan: plan["search_state"].update(incumbent_revision=other))
    close(launched, report=quiet)
    _, content = read_yaml(three_lanes.root / "campaign.yaml")
    assert content["search_state"]["incumbent_revision"] == other
    assert "last_round_ledger" not in content["search_state"]


def test_r25_closing_an_earlier_round_again_moves_no_state_back(
    launched: RoundFolder, three_lanes: CampaignRepo, open_folder: Path
) -> None:
    """Neither round has a row of its own in the file, and both began at the same incumbent."""
    close(launched, report=quiet)
    three_lanes.edit_round(lambda draft: draft.update(round_id="r02"))
    later, _ = three_lanes.launched(open_folder / "later")
    close(later, report=quiet)
    before = three_lanes.campaign_file.read_bytes()
    assert b"rounds/r02/round-ledger.json" in before
    close(launched, report=quiet)
    assert three_lanes.campaign_file.read_bytes() == before
