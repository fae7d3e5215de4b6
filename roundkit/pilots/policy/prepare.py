"""``pilot prepare`` of a policy pilot: from the owner's files to a frozen plan, or every reason why not."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import roundkit
from roundkit.core.canonical import digest_bytes
from roundkit.core.clock import now_utc
from roundkit.core.errors import Refusal, Refused
from roundkit.core.files import atomic_write, whole_folder
from roundkit.core.git import Repository
from roundkit.core.progress import SILENT, Progress
from roundkit.evidence import policy_layout as layout
from roundkit.evidence.plan_seal import SEAL, seal_bytes
from roundkit.host.devices.machine import machine_identity
from roundkit.models.base import Provenance
from roundkit.models.campaign import CampaignPlan
from roundkit.models.policy_plan import PolicyDraft, PolicyPlan, PolicyRunner
from roundkit.models.round_plan import RoundDraft
from roundkit.rounds.prepare_files import Authored, read_authored
from roundkit.rounds.prepare_look import Look, look_at
from roundkit.rounds.prepare_presets import with_presets
from roundkit.rounds.prepare_repository import Survey
from roundkit.rules.authority import agent_provenance
from roundkit.rules.freezing import freeze_lane
from roundkit.rules.policy_order import policy_schedule, schedule_digest
from roundkit.rules.policy_refusals import arms_problems, policy_problems

_SET_ANEW = frozenset({"round-deadline", "round-exists", "round-id", "branch-in-the-way"})
"""Problems of a round's id and deadline, which every round of a pilot gets of its own."""


@dataclass(frozen=True)
class PolicyFiles:
    """The owner's files, read: the pilot's own, the round of ``P`` and the round of ``S``."""

    pilot: Authored[PolicyDraft]
    parallel: Authored[RoundDraft]
    serial: Authored[RoundDraft]
    campaign: Path


def read_policy(pilot_file: Path) -> PolicyFiles:
    """Read a policy pilot and what its rounds are made from.

    Raises:
        Refused: with every problem of the pilot's own file.
    """
    pilot_file = pilot_file.resolve()
    pilot = read_authored(pilot_file, PolicyDraft)
    if pilot.model is None or pilot.refusals:
        raise Refused(pilot.refusals)
    here = pilot_file.parent
    rounds = pilot.model.rounds
    return PolicyFiles(
        pilot,
        read_authored(here / rounds.P, RoundDraft),
        read_authored(here / rounds.S, RoundDraft),
        here / pilot.model.campaign,
    )


def prepare_policy(
    pilot_file: Path, out: Path, *, now: datetime | None = None, progress: Progress = SILENT
) -> PolicyPlan:
    """Freeze a policy pilot into a new folder, and return its plan.

    Args:
        pilot_file: The pilot, YAML.
        out: The pilot's folder to make; it may exist only when it is empty.
        now: The time of freezing; the clock's unless given.
        progress: Shows how many steps are done.

    Raises:
        Refused: with every problem of all files; nothing was written.
    """
    files = read_policy(pilot_file)
    target = out.parent.resolve() / out.name
    with progress.task(f"prepare {target.name}", 2, "steps") as task:
        look = look_at(files.campaign, files.parallel.path, target, now=now)
        refusals = [*_round_refusals(look, files), *_own_refusals(files, look)]
        if refusals:
            raise Refused(tuple(dict.fromkeys(refusals)))
        task.advance()
        plan = _plan(files, look, now or now_utc())
        _write(plan, look.campaign_file.data, target)
        task.advance()
    return plan


def _round_refusals(look: Look, files: PolicyFiles) -> list[Refusal]:
    """Return what an ordinary round of these files would be refused for, apart from what is set anew."""
    draft = files.pilot.model
    campaign = look.campaign_file.model
    kept = [refusal for refusal in look.refusals if refusal.code not in _SET_ANEW]
    if (
        draft is not None
        and campaign is not None
        and draft.lanes_per_round <= campaign.budget.lanes_per_round
    ):
        # The round names the lanes of all rounds; one round has no more than lanes_per_round of them.
        kept = [refusal for refusal in kept if refusal.code != "too-many-lanes"]
    return kept


def _own_refusals(files: PolicyFiles, look: Look) -> list[Refusal]:
    draft = files.pilot.model
    found = [*files.serial.refusals]
    parallel, refusals = _presets(files.parallel)
    serial, _ = _presets(files.serial)
    found += refusals
    if parallel is None or draft is None:
        return found
    if serial is not None:
        found += arms_problems(parallel, serial, files.serial.at)
    found += policy_problems(draft, parallel, files.pilot.at, files.parallel.at)
    campaign = look.campaign_file.model
    if campaign is not None and campaign.campaign_id != draft.campaign_id:
        found.append(
            Refusal(
                "other-campaign",
                f"the pilot is of campaign {draft.campaign_id!r}, its file of {campaign.campaign_id!r}",
                files.pilot.at("campaign_id"),
                "name the campaign of the file",
            )
        )
    return found


def _presets(authored: Authored[RoundDraft]) -> tuple[RoundDraft | None, list[Refusal]]:
    return with_presets(authored.model, authored.at) if authored.model is not None else (None, [])


def _plan(files: PolicyFiles, look: Look, now: datetime) -> PolicyPlan:
    draft, campaign, round_ = files.pilot.model, look.campaign_file.model, look.round_file.model
    survey: Survey | None = look.survey
    if draft is None or campaign is None or round_ is None or survey is None:
        raise Refused(look.refusals)
    schedule = policy_schedule(draft.seed, draft.repetitions)
    return PolicyPlan(
        format="roundkit-policy-plan/1",
        kind="policy",
        pilot_id=draft.pilot_id,
        campaign_id=draft.campaign_id,
        question=draft.question,
        frozen_utc=now,
        seed=draft.seed,
        campaign=campaign,
        campaign_sha256=digest_bytes(look.campaign_file.data),
        round=round_,
        repository=str(survey.repository.path),
        incumbent=survey.incumbent,
        incumbent_tree=survey.tree,
        lanes_per_round=draft.lanes_per_round,
        repetitions=draft.repetitions,
        reference=draft.reference,
        fraction=draft.fraction,
        ratio_threshold=draft.ratio_threshold,
        total_budget=draft.total_budget,
        round_s=draft.round_s,
        authorization=draft.authorization,
        provenance=_provenance(campaign, round_),
        schedule=schedule,
        schedule_sha256=schedule_digest(schedule),
        runner=runner(),
    )


def _provenance(campaign: CampaignPlan, round_: RoundDraft) -> Provenance:
    """Return what plays the agents; all lanes have the same."""
    return agent_provenance(freeze_lane(round_.lanes[0], campaign, round_))


def runner() -> PolicyRunner:
    """Return what runs a pilot here."""
    checkout = Path(roundkit.__file__).resolve().parent.parent
    revision = Repository(checkout).resolve("HEAD") if (checkout / ".git").exists() else None
    return PolicyRunner(
        version=roundkit.__version__,
        revision=revision,
        python=platform.python_version(),
        machine=machine_identity(),
    )


def _write(plan: PolicyPlan, campaign: bytes, out: Path) -> None:
    """Build the folder beside its place and move it there, so that it is whole or absent."""
    with whole_folder(out) as making:
        (making / layout.RUNS).mkdir()
        atomic_write(making / layout.CAMPAIGN, campaign)
        atomic_write(making / layout.PLAN, plan.to_bytes())
        atomic_write(making / SEAL, seal_bytes(plan.digest()))
