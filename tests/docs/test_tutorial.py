"""The tutorial, done by a reader who pastes every block in its order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from docs.programs import edit
from docs.reading import ROOT, blocks
from docs.stage import Stage, stage

from roundkit.core.git import Repository
from roundkit.core.yamlfile import load_yaml

PAGE = "docs/tutorial.md"
WHO = {"NAME": "Ada", "EMAIL": "ada@localhost"}
_MOST_SIGMA = 0.15
"""Twice as much is less than the headroom of the page's directions, so that each is worth a lane."""


def fill_search_plan(reader: Stage) -> None:
    """Put the page's keys in the place of the campaign's, as an editor would."""
    (shown,) = (block for block in blocks(PAGE) if block.kind == "yaml")
    keys: Any = load_yaml(shown.text.encode(), place=shown.place)
    edit(reader.place / "campaign/campaign.yaml", lambda plan: plan.update(keys))


def as_calm_as_a_readers(reader: Stage) -> None:
    """Put noise that a reader may have in the place of more: tests that run beside are none of the page's."""

    def change(plan: Any) -> None:
        noise = plan["test_plan"]["noise"]
        noise["sigma"] = min(noise["sigma"], _MOST_SIGMA)

    edit(reader.place / "campaign/campaign.yaml", change)


@pytest.mark.slow
def test_every_block_of_the_tutorial_in_its_order(open_folder: Path) -> None:
    with stage(open_folder) as reader:
        reader.names["REPOSITORY"] = str(ROOT)
        for role in ("AUTHOR", "COMMITTER"):
            reader.variables.update({f"GIT_{role}_{name}": who for name, who in WHO.items()})
        reader.on("roundkit init", after=as_calm_as_a_readers)
        reader.on("roundkit prepare --campaign campaign/campaign.yaml --propose", before=fill_search_plan)
        reader.on(
            "roundkit prepare --campaign campaign/campaign.yaml --round",
            takes={"DIGEST": r"digest ([0-9a-f]{64})"},
        )
        reader.on("roundkit close", takes={"INDEX": r"index ([0-9a-f]{64})"})
        reader.play(PAGE)
        said = "\n".join(reader.said)
    program = open_folder / "wordrank"
    assert (open_folder / "wordrank-r01/report.html").stat().st_size > 100_000
    assert "Counter" in (program / "tally.py").read_text()
    assert "every check passed" in said
    assert "a person's" in said
    assert "fail: candidate-invalid: " in said
    assert "the ranking is wrong" in said
    left = Repository(program).dirty_paths()
    assert [path for path in left if not path.startswith("campaign/notebooks/")] == [], "a second round"
