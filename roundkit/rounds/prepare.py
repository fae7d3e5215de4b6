"""``prepare``: from the owner's two files to a frozen round, or to every reason why not."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from rfc8785 import CanonicalizationError

from roundkit.core.canonical import digest_bytes
from roundkit.core.clock import now_utc
from roundkit.core.errors import Refusal, Refused, refuse
from roundkit.core.globs import GlobSet, exact_glob
from roundkit.models.campaign import CampaignPlan
from roundkit.models.instruments import CountingTool
from roundkit.models.round_plan import FrozenRuntime, RoundDraft, RoundPlan
from roundkit.rounds.prepare_files import Authored, read_authored
from roundkit.rounds.prepare_folder import write_round_folder
from roundkit.rounds.prepare_instrument import resolve_instrument
from roundkit.rounds.prepare_presets import with_presets
from roundkit.rounds.prepare_repository import Survey, survey_repository
from roundkit.rounds.prepare_runtime import resolve_runtime, system_exposure
from roundkit.rules.freezing import freeze_lane, gates_in_force
from roundkit.rules.refusals import round_refusals
from roundkit.rules.round_facts import RoundFacts
from roundkit.rules.scope import protected_globs

EVIDENCE_FOLDER = "evidence"
_SECRET_BYTES = 32


@dataclass(frozen=True)
class _Inputs:
    """Everything that a plan is made from."""

    campaign_file: Authored[CampaignPlan]
    campaign: CampaignPlan
    draft: RoundDraft
    survey: Survey
    runtime: FrozenRuntime
    protected: tuple[str, ...]
    now: datetime
    counting_tool: CountingTool | None


def freeze(
    campaign_file: Path,
    round_file: Path,
    out: Path,
    *,
    secret: bytes | None = None,
    now: datetime | None = None,
    announce: Callable[[RoundPlan], None] | None = None,
) -> RoundPlan:
    """Freeze a round into a new round directory.

    Args:
        campaign_file: The campaign plan, YAML.
        round_file: The round, YAML.
        out: The round directory to make; it may exist only when it is empty.
        secret: The coordinator's secret, 32 bytes; random unless given.
        now: The time of freezing; the clock's unless given.
        announce: Called with the plan once nothing stands against it, before anything is written.

    Returns:
        The frozen plan; its digest is what is posted before launch.

    Raises:
        Refused: with every problem found; nothing was written.
        ValueError: ``secret`` does not have 32 bytes.
    """
    secret = secrets.token_bytes(_SECRET_BYTES) if secret is None else secret
    if len(secret) != _SECRET_BYTES:
        raise ValueError(f"the secret has {len(secret)} bytes, not {_SECRET_BYTES}")
    target = out.parent.resolve() / out.name
    inputs = _gather(campaign_file.resolve(), round_file.resolve(), target, now or now_utc())
    plan = _plan(inputs, secret)
    _check_canonical(plan)
    if announce is not None:
        announce(plan)
    write_round_folder(plan, secret, target, inputs.survey.repository)
    return plan


def _gather(campaign_file: Path, round_file: Path, out: Path, now: datetime) -> _Inputs:
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
            root, campaign.model, campaign.at, excepted=(campaign_file, round_file, evidence)
        )
        refusals += [*found, *_out_repository_problems(out, root)]
        further = (*(draft.model.protected_paths if draft.model else ()), *_own_file(campaign_file, root))
        protected = protected_globs(campaign.model, further, survey.paths if survey else ())
        keep_out = (out, root, *_hidden_files(campaign.model, survey))
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
    if refusals or campaign.model is None or draft.model is None or survey is None or runtime is None:
        raise Refused(refusals)
    return _Inputs(campaign, campaign.model, draft.model, survey, runtime, protected, now, tool)


def _out_problems(out: Path) -> list[Refusal]:
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


def _out_repository_problems(out: Path, root: Path) -> list[Refusal]:
    if not out.is_relative_to(root):
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


def _hidden_files(campaign: CampaignPlan, survey: Survey | None) -> list[Path]:
    if survey is None:
        return []
    return [survey.repository.path / path for path in GlobSet(campaign.hidden_paths).select(survey.paths)]


def _plan(inputs: _Inputs, secret: bytes) -> RoundPlan:
    campaign, draft, survey = inputs.campaign, inputs.draft, inputs.survey
    return RoundPlan(
        format="roundkit-round-plan/1",
        round_id=draft.round_id,
        frozen_utc=inputs.now,
        campaign=campaign,
        campaign_path=str(inputs.campaign_file.path),
        campaign_sha256=digest_bytes(inputs.campaign_file.data),
        repository=str(survey.repository.path),
        incumbent=survey.incumbent,
        incumbent_tree=survey.tree,
        gates=gates_in_force(campaign.test_plan, draft.gates),
        protected_paths=inputs.protected,
        protected_files=survey.digests(GlobSet(inputs.protected), GlobSet(campaign.hidden_paths)),
        runtime=inputs.runtime,
        device_sets=draft.device_sets,
        cpu_pinning=draft.cpu_pinning,
        aa_interval=draft.aa_interval,
        composition=draft.composition,
        deadline_utc=draft.deadline_utc,
        lane_environment=draft.lane_environment,
        lanes=tuple(freeze_lane(lane, campaign, draft) for lane in draft.lanes),
        secret_sha256=digest_bytes(secret),
        counting_tool=inputs.counting_tool,
        authorization=draft.authorization,
    )


def _check_canonical(plan: RoundPlan) -> None:
    try:
        plan.to_bytes()
    except (CanonicalizationError, UnicodeError) as error:
        raise refuse(
            "wrong-value",
            f"the plan cannot be written as canonical JSON: {error}",
            remedy="use integers below 2^53 and texts that are valid UTF-8, file names included",
        ) from error
