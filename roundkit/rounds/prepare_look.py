"""What ``prepare`` finds when it looks at the owner's two files: the incumbent, and every problem at once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from roundkit.core.clock import now_utc
from roundkit.core.errors import Refusal
from roundkit.core.globs import GlobSet, exact_glob
from roundkit.core.resources import shipped
from roundkit.models.campaign import CampaignPlan
from roundkit.models.instruments import CountingTool
from roundkit.models.round_plan import FrozenRuntime, RoundDraft
from roundkit.rounds.prepare_files import Authored, read_authored
from roundkit.rounds.prepare_incumbent import incumbent_problems
from roundkit.rounds.prepare_instrument import resolve_instrument
from roundkit.rounds.prepare_presets import with_presets
from roundkit.rounds.prepare_repository import Survey, survey_repository
from roundkit.rounds.prepare_runtime import resolve_runtime, system_exposure
from roundkit.rules.refusals import round_refusals
from roundkit.rules.round_facts import RoundFacts
from roundkit.rules.scope import protected_globs

EVIDENCE_FOLDER = "evidence"


@dataclass(frozen=True)
class Look:
    """Everything that a plan is made from, and what stands against it.

    Attributes:
        campaign_file: The campaign as written.
        round_file: The round as written.
        survey: The repository's incumbent; null when it could not be read.
        runtime: The interpreter and what it reads; null when it could not be found.
        protected: Globs that no lane may reach.
        now: When the round is to be frozen.
        counting_tool: What counts instructions, where they decide.
        refusals: Every problem that was found; a round without any can be frozen.
    """

    campaign_file: Authored[CampaignPlan]
    round_file: Authored[RoundDraft]
    survey: Survey | None
    runtime: FrozenRuntime | None
    protected: tuple[str, ...]
    now: datetime
    counting_tool: CountingTool | None
    refusals: tuple[Refusal, ...]


def look_at(campaign_file: Path, round_file: Path, out: Path | None, *, now: datetime | None = None) -> Look:
    """Read both files and the repository; write nothing and refuse nothing.

    Args:
        campaign_file: The campaign plan, YAML.
        round_file: The round, YAML.
        out: The round directory that would be made; null when that is not known yet.
        now: The time of freezing; the clock's unless given.
    """
    campaign_file, round_file, now = campaign_file.resolve(), round_file.resolve(), now or now_utc()
    out = out.parent.resolve() / out.name if out else None
    campaign = read_authored(campaign_file, CampaignPlan)
    draft = read_authored(round_file, RoundDraft)
    refusals = [*campaign.refusals, *draft.refusals, *_out_problems(out)]
    if draft.model is not None:
        model, found = with_presets(draft.model, draft.at)
        draft = replace(draft, model=model)
        refusals += found
    survey: Survey | None = None
    runtime: FrozenRuntime | None = None
    protected: tuple[str, ...] = ()
    tool: CountingTool | None = None
    if campaign.model is not None:
        root = (campaign_file.parent / campaign.model.repository.path).resolve()
        evidence = campaign_file.parent / EVIDENCE_FOLDER
        survey, found = survey_repository(
            root,
            campaign.model,
            campaign.at,
            excepted=(campaign_file, round_file, evidence, *_copied_notebooks(campaign_file)),
        )
        refusals += [*found, *_out_repository_problems(out, root)]
        if survey is not None:
            refusals += incumbent_problems(campaign_file, campaign.model, survey, campaign.at)
        further = (*(draft.model.protected_paths if draft.model else ()), *_own_file(campaign_file, root))
        protected = protected_globs(campaign.model, further, survey.paths if survey else ())
        keep_out = (*([out] if out else []), root, *_hidden_files(campaign.model, survey))
        runtime, found = resolve_runtime(campaign.model, campaign.at, keep_out=keep_out)
        refusals += found
        tool, found = resolve_instrument(campaign.model, campaign.at)
        refusals += found
    if campaign.model is not None and draft.model is not None:
        refusals += round_refusals(
            RoundFacts(
                campaign=campaign.model,
                draft=draft.model,
                now=now,
                paths=survey.paths if survey else None,
                protected=protected,
                cores=frozenset(os.sched_getaffinity(0)),
                campaign_at=campaign.at,
                round_at=draft.at,
            )
        )
        refusals += _round_id_problems(campaign_file, campaign.model, draft, survey)
    return Look(campaign, draft, survey, runtime, protected, now, tool, tuple(refusals))


def _out_problems(out: Path | None) -> list[Refusal]:
    if out is None:
        return []
    if os.path.lexists(out) and not (out.is_dir() and not out.is_symlink() and not any(out.iterdir())):
        return [
            Refusal(
                "out-exists", f"{out} exists", "--out", "choose a new folder; rounds are never overwritten"
            )
        ]
    system = system_exposure(out)
    if system is not None:
        return [
            Refusal(
                "out-visible",
                f"{out} lies in {system}, which every candidate can read",
                "--out",
                "choose a folder outside the system's own",
            )
        ]
    return []


def _out_repository_problems(out: Path | None, root: Path) -> list[Refusal]:
    if out is None or not out.is_relative_to(root):
        return []
    return [
        Refusal(
            "out-inside-repository",
            f"{out} lies in the campaign repository {root}",
            "--out",
            "choose a folder outside of it",
        )
    ]


def _round_id_problems(
    campaign_file: Path, campaign: CampaignPlan, draft: Authored[RoundDraft], survey: Survey | None
) -> list[Refusal]:
    if draft.model is None:
        return []
    round_id = draft.model.round_id
    evidence = campaign_file.parent / EVIDENCE_FOLDER / campaign.campaign_id / "rounds" / round_id
    taken = []
    unusable: list[Refusal] = []
    if survey is not None:
        branch = f"roundkit/{round_id}"
        if survey.repository.branch_exists(branch):
            taken.append(f"the branch {branch}")
        unusable = _branch_problems(survey, branch, draft.at("round_id"))
    if evidence.exists():
        taken.append(f"the evidence in {evidence}")
    if any(row.round == round_id for row in campaign.search_plan_revisions):
        taken.append("rows in search_plan_revisions")
    return unusable + [
        Refusal(
            "round-exists",
            f"a round {round_id!r} has left {thing} already",
            draft.at("round_id"),
            "give the round a new id",
        )
        for thing in taken
    ]


def _branch_problems(survey: Survey, branch: str, place: str) -> list[Refusal]:
    """Say now what git would say when ``close`` makes the branch."""
    first = branch.partition("/")[0]
    if survey.repository.git("check-ref-format", f"refs/heads/{branch}", check=False).exit_code != 0:
        remedy = "choose an id without `..` that does not end in `.lock` or a dot"
        return [Refusal("round-id", f"git takes no branch {branch!r}", place, remedy)]
    if survey.repository.branch_exists(first):
        remedy = f"rename the branch {first!r}: close makes {branch!r}"
        return [Refusal("branch-in-the-way", f"the repository has a branch {first!r}", place, remedy)]
    return []


def _own_file(campaign_file: Path, root: Path) -> tuple[str, ...]:
    """Protect the campaign file where it lies in the repository: a lane must not write the next gates."""
    if not campaign_file.is_relative_to(root):
        return ()
    return (exact_glob(campaign_file.relative_to(root).as_posix()),)


def _hidden_files(campaign: CampaignPlan, survey: Survey | None) -> Sequence[Path]:
    if survey is None:
        return []
    return [survey.repository.path / path for path in GlobSet(campaign.hidden_paths).select(survey.paths)]


def _copied_notebooks(campaign_file: Path) -> list[Path]:
    """Return where `init` copies the shipped notebooks: no part of the program either."""
    folder = campaign_file.parent / "notebooks"
    return [folder / notebook.name for notebook in shipped("notebooks").glob("*.ipynb")]
