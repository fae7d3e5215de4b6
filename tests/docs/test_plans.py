"""Every plan and configuration that a page shows is one that the models take."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
from docs.reading import Block, blocks, page_name, pages

from roundkit.core.yamlfile import load_yaml, plain
from roundkit.models.base import Record
from roundkit.models.campaign import CampaignPlan
from roundkit.models.cluster import SlurmWorkers, WorkerSets
from roundkit.models.pilot_draft import PairedDraft
from roundkit.models.pilot_findings import FindingsFile
from roundkit.models.round_plan import RoundDraft
from roundkit.rounds.template_files import template

Home = Callable[[Any], object]


def _whole(kind: type[Record]) -> Home:
    return lambda content: _valid(kind, content)


def _in_campaign(part: Any) -> None:
    _valid(CampaignPlan, {**template("campaign.yaml"), **part})


def _in_round(part: Any) -> None:
    draft = template("round.yaml")
    lanes = [{**draft["lanes"][0], **lane} for lane in part.get("lanes", [{}])]
    _valid(RoundDraft, {**draft, **part, "lanes": lanes})


def _in_lane(part: Any) -> None:
    _in_round({"lanes": part if isinstance(part, list) else [part]})


def _in_command(part: Any) -> None:
    command = {"program": "my-agent", "argv": [], "version": None, **part}
    _in_lane({"harness": "command", "agent": {"command": command}})


def _in_device_set(part: Any) -> None:
    _in_round({"device_sets": [{**template("round.yaml")["device_sets"][0], **part}]})


def _in_pilot(part: Any) -> None:
    draft = template("pilot-paired/pilot.yaml")
    _valid(PairedDraft, {**draft, **part, "policy": {**draft["policy"], **part["policy"]}})


HOMES: dict[tuple[str, str], Home] = {
    ("cluster", "sets.yaml"): _whole(WorkerSets),
    ("cluster", "round.yaml"): _in_round,
    ("cluster", "slurm.yaml"): _whole(SlurmWorkers),
    ("cluster", "composition"): _in_round,
    ("cluster", "limits"): _in_device_set,
    ("drivers", "authorization"): _in_round,
    ("drivers", "harness"): _in_lane,
    ("drivers_command", "id"): _in_lane,
    ("drivers_command", "agent"): lambda part: _in_lane({"harness": "command", **part}),
    ("drivers_command", "usage"): _in_command,
    ("drivers_swarmflow", "id"): _in_lane,
    ("editor", "format"): _in_campaign,
    ("pilots", "model"): _in_pilot,
    ("pilots", "format"): _whole(FindingsFile),
    ("rounds", "provision"): _in_campaign,
    ("tutorial", "search_plan"): _in_campaign,
}
"""Where a block belongs, by its page and its name: the file that its first line names, or its first key."""
PLANS = [block for page in pages() for block in blocks(page) if block.kind == "yaml"]


@pytest.mark.parametrize("block", PLANS, ids=lambda block: block.place)
def test_a_plan_that_a_page_shows_is_taken(block: Block) -> None:
    HOMES[_name(block)](_content(block))


def test_every_home_has_its_block() -> None:
    assert {_name(block) for block in PLANS} == set(HOMES)


def _valid(kind: type[Record], content: Any) -> None:
    kind.model_validate_json(json.dumps(content), strict=True)


def _name(block: Block) -> tuple[str, str]:
    content = _parsed(block)
    first = content[0] if isinstance(content, list) else content
    return page_name(block.page), block.file_name or next(iter(first))


def _parsed(block: Block) -> Any:
    # A digest may be cut off on a page.
    text = re.sub(r"\b([0-9a-f]{2,})…", lambda found: found[1].ljust(64, "0"), textwrap.dedent(block.text))
    return plain(load_yaml(text.encode(), place=block.place))


def _content(block: Block) -> Any:
    """Return what a block says; ``{…}`` stands for the block of that key on the same page."""
    others = {_name(other)[1]: other for other in PLANS if other.page == block.page}

    def filled(value: Any) -> Any:
        if isinstance(value, list):
            return [filled(each) for each in value]
        if isinstance(value, dict):
            return {
                key: _parsed(others[key])[key] if each == {"…": None} else filled(each)
                for key, each in value.items()
            }
        return value

    return filled(_parsed(block))
