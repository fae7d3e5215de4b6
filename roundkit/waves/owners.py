"""The first step of a run: every draft on the disk with its one owner, copied before anybody uses it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

from roundkit.core.canonical import digest_bytes
from roundkit.core.clock import now_utc
from roundkit.evidence import wave_layout as names
from roundkit.models.wave_records import Draft, Key, Rejected, Shard, Target
from roundkit.rules.wave_owners import Unowned, is_draft, owner_of
from roundkit.rules.wave_pick import in_order, without_repeats
from roundkit.rules.wave_steps import Identity
from roundkit.waves.folder import CampaignFolder
from roundkit.waves.parked import parked, parked_store
from roundkit.waves.staging import Found, Keep, found_drafts

BANKED = "its target is banked already"
Stage = Literal["owner", "prefilter", "score", "gate", "parked"]


@dataclass(frozen=True)
class Owned:
    """What a run has to do with.

    Attributes:
        drafts: In the order in which they are preferred.
        targets: Targets of these drafts.
        refused: The others.
    """

    drafts: tuple[Draft, ...]
    targets: tuple[Target, ...]
    refused: tuple[Rejected, ...]


@dataclass(frozen=True)
class Earlier:
    """What earlier runs of the same wave leave nothing to do about.

    Attributes:
        decided: Drafts that a prefilter or gate has decided.
        refused: Path and digest of files that had no owner.
    """

    decided: frozenset[Identity] = frozenset()
    refused: frozenset[tuple[str, str | None]] = frozenset()


def collect_owned(
    campaign: CampaignFolder, tag: str, banked: Collection[Key], earlier: Earlier, keep: Keep
) -> Owned:
    """Return the drafts of a wave's shards, whichever of them have ended.

    Args:
        campaign: The campaign.
        tag: The wave.
        banked: Targets that are banked.
        earlier: What is decided.
        keep: Takes the bytes of each draft.

    Raises:
        Refused: ``no-wave``, ``malformed``.
        OSError: a copy cannot be written.
    """
    wave, rules = campaign.read_wave(tag), campaign.plan.plan
    known = {target.key: target for target in wave.targets}
    drafts, refused = [], []
    for shard, _ in campaign.shards(tag):
        where = campaign.shard(tag, shard.index)
        prefix = f"{where.relative_to(campaign.wave(tag)).as_posix()}/{names.DRAFTS}"
        for found in found_drafts(where / names.DRAFTS, rules.draft.suffix, rules.draft.limits.file_bytes):
            draft = _owned(found, shard, rules.draft.suffix, known, f"{prefix}/{found.path}")
            if isinstance(draft, Unowned):
                digest = None if found.data is None else digest_bytes(found.data)
                if (f"{prefix}/{found.path}", digest) not in earlier.refused:
                    refused.append(_no_owner(tag, f"{prefix}/{found.path}", digest, draft.reason))
            elif (draft.group, draft.name, draft.sha256) in earlier.decided:
                continue
            elif (draft.group, draft.name) in banked:
                refused.append(reject_row(tag, "owner", draft, BANKED))
            else:
                assert found.data is not None
                keep(found.data)
                drafts.append(draft)
    kept = without_repeats(in_order(drafts))
    keys = dict.fromkeys((draft.group, draft.name) for draft in kept)
    return Owned(tuple(kept), tuple(known[key] for key in keys), tuple(refused))


def collect_parked(campaign: CampaignFolder, tag: str, banked: Collection[Key], keep: Keep) -> Owned:
    """Return the drafts that lie aside for a gate of their own, whatever wave they come from.

    Raises:
        Refused: ``malformed``, ``draft-changed``.
        OSError: a copy cannot be written.
    """
    drafts, targets, refused = [], {}, []
    kept = parked_store(campaign)
    for record in parked(campaign):
        # Two waves may have a draft of the same path.
        draft = record.draft.model_copy(update={"path": f"{record.tag}/{record.draft.path}"})
        if record.target.key in banked:
            refused.append(reject_row(tag, "owner", draft, BANKED))
            continue
        keep(kept.get(draft.sha256))
        drafts.append(draft)
        targets[record.target.key] = record.target
    return Owned(tuple(without_repeats(drafts)), tuple(targets.values()), tuple(refused))


def reject_row(
    tag: str, stage: Stage, draft: Draft, reason: str, detail: dict[str, Any] | None = None
) -> Rejected:
    """Return the line of a draft that does not bank."""
    return Rejected(
        tag=tag, at_utc=now_utc(), stage=stage, group=draft.group, name=draft.name, path=draft.path,
        sha256=draft.sha256, reason=reason, detail=detail or {},
    )  # fmt: skip


def _owned(found: Found, shard: Shard, suffix: str, known: dict[Key, Target], path: str) -> Draft | Unowned:
    if found.data is None:
        return Unowned(found.problem)
    if not is_draft(found.path, suffix):
        return Unowned("its name is nothing but the suffix")
    owner = owner_of(found.path, suffix, shard.targets)
    if isinstance(owner, Unowned):
        return owner
    if owner not in known:
        return Unowned(f"the wave has no target {'/'.join(owner)}")
    return Draft(
        group=owner[0], name=owner[1], shard=shard.index, attempt=shard.attempt, path=path,
        sha256=digest_bytes(found.data),
    )  # fmt: skip


def _no_owner(tag: str, path: str, digest: str | None, reason: str) -> Rejected:
    return Rejected(
        tag=tag,
        at_utc=now_utc(),
        stage="owner",
        group=None,
        name=None,
        path=path,
        sha256=digest,
        reason=reason,
    )
