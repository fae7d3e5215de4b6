"""The shipped templates are valid, and the lane prompt says what an agent needs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
import pytest
from support.synthetic import CampaignRepo

from roundkit.core.resources import shipped
from roundkit.core.yamlfile import dump_yaml, load_yaml, plain
from roundkit.models.base import Record
from roundkit.models.campaign import CampaignPlan, Noise
from roundkit.models.round_plan import RoundDraft

KINDS: list[tuple[str, type[Record]]] = [("campaign.yaml", CampaignPlan), ("round.yaml", RoundDraft)]


def template(name: str) -> Any:
    return load_yaml((shipped("templates") / name).read_bytes(), place=name)


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_template_is_valid_and_names_every_key(name: str, kind: type[Record]) -> None:
    content = plain(template(name))
    kind.model_validate_json(json.dumps(content).encode(), strict=True)
    assert set(content) == set(kind.model_fields)


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_template_keeps_its_comments_through_a_tool(name: str, kind: type[Record]) -> None:
    data = (shipped("templates") / name).read_bytes()
    assert dump_yaml(load_yaml(data, place=name)).count(b"#") == data.count(b"#")


def test_the_example_of_a_measured_noise_is_valid() -> None:
    text = (shipped("templates") / "campaign.yaml").read_text()
    example = next(line for line in text.splitlines() if line.strip().startswith("# noise: "))
    content = plain(load_yaml(example.strip().removeprefix("# ").encode(), place="example"))
    assert Noise.model_validate(content["noise"]).trial_s == 2.5


def test_lane_prompt(three_lanes: CampaignRepo, open_folder: Path) -> None:
    _, manifest = three_lanes.launched(open_folder / "round")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(shipped("templates")),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
    )
    lane = manifest.lanes[0]
    prompt = environment.get_template("lane-prompt.md.j2").render(
        lane=lane,
        protected_paths=manifest.protected_paths,
        wait_s=100,
        submission_cap=4,
        deadline_utc=datetime.now(UTC).isoformat(),
        budget={"turns": 30, "tokens": None},
    )
    for needed in (
        lane.clone,
        lane.hypothesis,
        "knobs/L1.json",
        "bench/**",
        "submit",
        "--wait 100",
        "turns: 30",
    ):
        assert needed in prompt
    assert "tokens" not in prompt
