"""``prepare --propose``: a round drafted from the search plan, as commented YAML for the owner to edit."""

from __future__ import annotations

import copy
import re
import textwrap
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from roundkit.core.errors import Refused, refuse
from roundkit.core.resources import shipped
from roundkit.core.yamlfile import dump_yaml, read_yaml
from roundkit.models.campaign import CampaignPlan
from roundkit.models.search_plan import SearchPlanEntry
from roundkit.rounds.prepare_files import read_authored
from roundkit.rounds.prepare_look import EVIDENCE_FOLDER
from roundkit.rounds.prepare_repository import Survey, survey_repository
from roundkit.rules.advice import LeftOut, Proposal, propose_entries
from roundkit.rules.scope import empty_globs

_COMMENT_WIDTH = 100
_NUMBERED = re.compile(r"(.*?)(\d+)")
_FIRST_ROUND = ("r", "00")
# Keys that a draft says nothing about; the template explains them.
_LEFT_TO_TEMPLATE = ("model", "deadline_utc", "changed_condition", "replay", "exploration_devices")


@dataclass(frozen=True)
class Draft:
    """A round drafted from a search plan.

    Attributes:
        content: The file, YAML with comments.
        round_id: The round's id in it.
        lanes: How many lanes it has.
        left_out: The planned entries that it has no lane for, and why.
    """

    content: bytes
    round_id: str
    lanes: int
    left_out: tuple[LeftOut, ...]


def propose_round(campaign_file: Path, most: int, *, core: int) -> Draft:
    """Draft a round of at most so many lanes. The same campaign and repository give the same bytes.

    Args:
        campaign_file: The campaign plan, YAML.
        most: How many lanes are wanted.
        core: The core that the draft measures on.

    Returns:
        The draft. It decides nothing: freezing checks it like any other.

    Raises:
        Refused: the campaign cannot be read, or ``nothing-to-propose``.
    """
    path = campaign_file.resolve()
    authored = read_authored(path, CampaignPlan)
    if authored.model is None or authored.refusals:
        raise Refused(authored.refusals)
    campaign = authored.model
    root = (path.parent / campaign.repository.path).resolve()
    survey, refusals = survey_repository(root, campaign, authored.at, excepted=())
    if survey is None:
        raise Refused(refusals)
    proposal = propose_entries(campaign, most, survey.paths)
    if not proposal.entries:
        reasons = "; ".join(f"{left.entry}: {left.why}" for left in proposal.left_out)
        raise refuse(
            "nothing-to-propose",
            f"no entry of the search plan is worth a lane: {reasons or 'none is planned'}",
            place=authored.at("search_plan"),
            remedy="add entries with status `planned`; where the noise is too large, make the benchmark"
            " longer or the machine quieter and paste what `roundkit noise` says; or write the round by hand",
        )
    content = _draft(campaign, proposal, survey, path, most=most, core=core)
    return Draft(dump_yaml(content), content["round_id"], len(proposal.entries), proposal.left_out)


def _draft(
    campaign: CampaignPlan, proposal: Proposal, survey: Survey, campaign_file: Path, *, most: int, core: int
) -> Any:
    _, draft = read_yaml(shipped("templates") / "round.yaml")
    draft.yaml_set_start_comment(
        f"Drafted by `roundkit prepare --campaign {campaign_file.name} --propose {most}`: edit it, set the\n"
        "deadline, fill empty globs, and freeze it with --round and --out. templates/round.yaml explains\n"
        "every key that a lane may have.\n"
    )
    draft["round_id"] = _round_id(campaign, survey, campaign_file.parent)
    device_set = draft["device_sets"][0]
    device_set["id"], device_set["devices"][0] = f"core{core}", str(core)
    draft.yaml_add_eol_comment("yours to set", "deadline_utc")
    template = draft["lanes"][0]
    lanes = CommentedSeq()
    for number, entry in enumerate(proposal.entries, start=1):
        # The first lane carries the explanations; the others would only repeat them.
        base = copy.deepcopy(template)
        if number > 1:
            base.ca.items.clear()
        lanes.append(_lane(base, f"L{number}", entry, campaign, survey.paths))
    draft["lanes"] = lanes
    for index, entry in enumerate(proposal.entries):
        lanes.yaml_set_comment_before_after_key(index, before=_about(entry), indent=2)
    if proposal.left_out:
        rows = [f"  {left.entry}: {left.why}" for left in proposal.left_out]
        note = "\n".join(["Planned, and not in this round:", *_wrapped(rows)])
        draft.yaml_set_comment_before_after_key("lanes", before=note)
    return draft


def _lane(
    lane: CommentedMap, lane_id: str, entry: SearchPlanEntry, campaign: CampaignPlan, paths: Collection[str]
) -> CommentedMap:
    for key in _LEFT_TO_TEMPLATE:
        lane.pop(key, None)
    lane["id"], lane["entry"] = lane_id, entry.id
    globs = CommentedSeq(entry.scope)
    globs.fa.set_flow_style()
    lane["globs"] = globs
    lane["creates"] = bool(empty_globs(entry.scope, paths))
    if not entry.scope:
        lane.yaml_add_eol_comment("yours to fill: the entry proposes no scope", "globs")
    conditions = [row.changed_condition for row in campaign.search_plan_revisions if row.entry == entry.id]
    failed = [record for record in campaign.negative_memory if record.entry == entry.id]
    if conditions and conditions[-1]:
        lane["changed_condition"] = conditions[-1]
    elif failed:
        lane["changed_condition"] = None
        last = failed[-1]
        note = f"yours to state: round {last.round} failed under {_one_line(last.conditions)}"
        lane.yaml_add_eol_comment(note, "changed_condition")
    return lane


def _about(entry: SearchPlanEntry) -> str:
    plane = entry.plane if isinstance(entry.plane, str) else ", ".join(entry.plane)
    headroom = f"{100 * entry.conditional_headroom:.3g} %"
    head = f"{entry.id}: {plane}, stage {entry.target_stage}, headroom {headroom} of end-to-end time."
    return "\n".join(_wrapped([f"{_one_line(head)} {_one_line(entry.hypothesis)}"]))


def _round_id(campaign: CampaignPlan, survey: Survey, home: Path) -> str:
    """Return the id that follows the campaign's last round; numbers count on, in as many digits."""
    rounds = [record.round for record in campaign.negative_memory]
    rounds += [row.round for row in campaign.search_plan_revisions]
    last = campaign.search_state.last_round_ledger
    if last is not None:
        rounds.append(Path(last).parent.name)
    numbered = [match for match in map(_NUMBERED.fullmatch, rounds) if match is not None]
    stem, digits = numbered[-1].groups() if numbered else _FIRST_ROUND
    evidence = home / EVIDENCE_FOLDER / campaign.campaign_id / "rounds"
    number = int(digits)
    while True:
        number += 1
        name = f"{stem}{number:0{len(digits)}d}"
        taken = name in rounds or (evidence / name).exists()
        if not taken and not survey.repository.branch_exists(f"roundkit/{name}"):
            return name


def _wrapped(rows: Iterable[str]) -> list[str]:
    return [line for row in rows for line in textwrap.wrap(row, _COMMENT_WIDTH, subsequent_indent="  ")]


def _one_line(text: str) -> str:
    return " ".join(text.split())
