"""README: one command of each kind, from a campaign's beginning to its notebooks."""

from __future__ import annotations

from docs.programs import calm, faster, fill_globs, fresh_clone, own_program
from docs.reading import ROOT
from docs.stage import Stage
from support.pilots import small

from roundkit.pilots.policy.example import write_example

OTHERS = """\
commit\tlatency_ms\tstatus\tdescription
a1b2c3d\t12.5\tkeep\tbaseline
b2c3d4e\t11.0\tkeep\tone pass less
"""
"""What another tool kept of its tries."""


def readme(stage: Stage) -> None:
    own_program(stage)
    round_dir = stage.root / "round-01"
    stage.names.update(REPOSITORY=str(ROOT), ROUND_DIR="../round-01", BASE="first", PILOT_DIR="../pilot")
    stage.names["CAMPAIGN_DIR"] = "../program/campaign"
    campaign, draft = stage.place / "campaign/campaign.yaml", stage.place / "campaign/round.yaml"
    stage.on("roundkit init", after=lambda _: calm(campaign))
    stage.on(
        "roundkit prepare --campaign campaign/campaign.yaml --round",
        before=lambda _: fill_globs(draft),
        takes={"DIGEST": r"digest ([0-9a-f]{64})"},
    )
    stage.on("ROUND_DIR/lanes/L1/.roundkit/round submit", before=lambda _: faster(round_dir / "lanes/L1"))
    stage.on("roundkit close", takes={"EVIDENCE_DIR": r"\nevidence (/\S+)"})
    stage.on("roundkit replay", before=fresh_clone)
    stage.on("roundkit pilot prepare pilot.yaml", before=_paired_pilot)
    stage.on("roundkit pilot simulate", before=_policy_pilot)
    stage.on("roundkit import", before=lambda stage: (stage.place / "results.tsv").write_text(OTHERS))
    stage.on("roundkit notebook explore_ledger", after=_all_ledgers_are_there)


def _all_ledgers_are_there(stage: Stage) -> None:
    """What was exported and what was imported are read, not one of them."""
    assert " of 2 campaigns " in stage.said[-1], stage.said[-1]


def _paired_pilot(stage: Stage) -> None:
    """The reader's own pilot: one task, two variants, one repetition."""
    if not (stage.place / "pilot.yaml").exists():
        small(stage.root)
        stage.place = stage.root / "files"


def _policy_pilot(stage: Stage) -> None:
    write_example(stage.root / "policy", repetitions=3)
    stage.place = stage.root / "policy"
    stage.names["PILOT_DIR"] = "../policy-pilot"
