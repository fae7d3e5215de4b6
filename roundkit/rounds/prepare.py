"""``prepare``: from the owner's two files to a frozen round, or to every reason why not."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from roundkit.core.canonical import digest_bytes
from roundkit.core.errors import Refused
from roundkit.core.git import Repository
from roundkit.core.globs import GlobSet
from roundkit.core.progress import SILENT, Progress
from roundkit.models.base import check_writable
from roundkit.models.campaign import CampaignPlan
from roundkit.models.round_plan import FrozenRuntime, RoundDraft, RoundPlan
from roundkit.rounds.prepare_folder import write_round_folder
from roundkit.rounds.prepare_look import Look, look_at
from roundkit.rounds.prepare_repository import Survey
from roundkit.rules.freezing import freeze_lane, gates_in_force

_SECRET_BYTES = 32


def freeze(
    campaign_file: Path,
    round_file: Path,
    out: Path,
    *,
    secret: bytes | None = None,
    now: datetime | None = None,
    announce: Callable[[RoundPlan], None] | None = None,
    progress: Progress = SILENT,
) -> RoundPlan:
    """Freeze a round into a new round directory.

    Args:
        campaign_file: The campaign plan, YAML.
        round_file: The round, YAML.
        out: The round directory to make; it may exist only when it is empty.
        secret: The coordinator's secret, 32 bytes; random unless given.
        now: The time of freezing; the clock's unless given.
        announce: Called with the plan once nothing stands against it, before anything is written.
        progress: Shows how far it is.

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
    with progress.task("prepare", 3, "steps") as task:
        look = look_at(campaign_file, round_file, target, now=now)
        task.advance()
        plan = plan_of(look, secret)
        if announce is not None:
            announce(plan)
        task.advance()
        write_round_folder(plan, secret, target, Repository(Path(plan.repository)))
        task.advance()
    return plan


def plan_of(look: Look, secret: bytes = bytes(_SECRET_BYTES)) -> RoundPlan:
    """Return the plan that would be frozen; without a secret of the round's own its digest means nothing.

    Raises:
        Refused: with every problem that was found.
    """
    campaign, draft = look.campaign_file.model, look.round_file.model
    if look.refusals or campaign is None or draft is None or look.survey is None or look.runtime is None:
        raise Refused(look.refusals)
    plan = _plan(look, campaign, draft, look.survey, look.runtime, secret)
    check_writable(plan, "the plan")
    return plan


def _plan(
    look: Look,
    campaign: CampaignPlan,
    draft: RoundDraft,
    survey: Survey,
    runtime: FrozenRuntime,
    secret: bytes,
) -> RoundPlan:
    return RoundPlan(
        format="roundkit-round-plan/1",
        round_id=draft.round_id,
        frozen_utc=look.now,
        campaign=campaign,
        campaign_path=str(look.campaign_file.path),
        campaign_sha256=digest_bytes(look.campaign_file.data),
        repository=str(survey.repository.path),
        incumbent=survey.incumbent,
        incumbent_tree=survey.tree,
        gates=gates_in_force(campaign.test_plan, draft.gates),
        protected_paths=look.protected,
        protected_files=survey.digests(GlobSet(look.protected), GlobSet(campaign.hidden_paths)),
        runtime=runtime,
        device_sets=draft.device_sets,
        cpu_pinning=draft.cpu_pinning,
        aa_interval=draft.aa_interval,
        composition=draft.composition,
        deadline_utc=draft.deadline_utc,
        lane_environment=draft.lane_environment,
        lanes=tuple(freeze_lane(lane, campaign, draft) for lane in draft.lanes),
        secret_sha256=digest_bytes(secret),
        counting_tool=look.counting_tool,
        authorization=draft.authorization,
    )
