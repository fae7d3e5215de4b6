"""Drawing a wave: the campaign names targets, roundkit leaves out what must not be drawn."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from roundkit.core.clock import now_utc
from roundkit.evidence import wave_layout as names
from roundkit.host.confine import Mount
from roundkit.measure.trees import remove_tree
from roundkit.models.wave_calls import DrawAnswer, DrawRequest
from roundkit.models.wave_plan import Band, LeverSet
from roundkit.models.wave_records import Key, Wave
from roundkit.rules.wave_caps import caps_of
from roundkit.rules.wave_draw import (
    Known,
    NoDraw,
    Standing,
    answer_problem,
    choose,
    next_tag,
    no_draw,
    rotation,
    wave_micro_usd,
)
from roundkit.waves import stop
from roundkit.waves.command import TREE, Call, CommandProblem, ask_command
from roundkit.waves.folder import CampaignFolder, write_once
from roundkit.waves.inputs import missing_inputs
from roundkit.waves.parked import parked
from roundkit.waves.shard_run import lever_of
from roundkit.waves.telemetry import Credit, read_credit

Banked = Callable[[Path], AbstractSet[Key]]
"""Tells the identities of the targets that a tree's commits bank."""

UNKNOWN = Credit(None, "it was not asked for")


@dataclass(frozen=True)
class Drawn:
    """What a draw came to.

    Attributes:
        wave: The wave; null where there is none.
        reason: Why there is none; ``exhausted``: every target is banked, in a wave, or left out.
        credit: The credit that was left.
    """

    wave: Wave | None
    reason: NoDraw | Literal["exhausted"] | None
    credit: Credit


def undrafted(folder: CampaignFolder) -> str | None:
    """Return the tag of the first wave that was drawn and never shared out; null when there is none."""
    return next((tag for tag in folder.tags() if not (folder.wave(tag) / names.DEALT).exists()), None)


def may_draw(folder: CampaignFolder) -> NoDraw | None:
    """Return why nothing may be drawn now, as far as that is known without asking for the credit."""
    return no_draw(folder.plan.plan, _standing(folder, UNKNOWN))


def draw(folder: CampaignFolder, banked: Banked, stop_fd: int | None = None) -> Drawn:
    """Draw the next wave, whose record is on disk once this returns.

    Args:
        folder: The campaign.
        banked: Tells what the tree's commits bank.
        stop_fd: Descriptor that ends the campaign's command as soon as it can be read.

    Raises:
        CommandProblem: the campaign's command failed.
        ConfinementUnavailable: the host cannot confine it.
        OSError: the disk is full, or something cannot be read.
    """
    reason = may_draw(folder)
    if reason is not None:
        return Drawn(None, reason, UNKNOWN)
    credit = read_credit(folder, purpose="draw")
    reason = no_draw(folder.plan.plan, _standing(folder, credit))
    if reason is not None:
        return Drawn(None, reason, credit)
    waves = [folder.read_wave(tag) for tag in folder.tags()]
    # A row speaks of its wave for good, even where somebody has removed the wave's folder.
    tag = next_tag([*(wave.tag for wave in waves), *folder.gated()])
    known = _known(folder, waves, banked)
    for band, lever in rotation(folder.plan.plan, waves):
        wave = _draw_from(folder, tag, band, lever, known, stop_fd)
        if wave.targets:
            # The campaign's commands took their time, and what they named is drawn now.
            standing = replace(_standing(folder, credit), now=wave.drawn_utc, stop=False)
            late = no_draw(folder.plan.plan, standing)
            if late is not None and late != "queue":
                return Drawn(None, late, credit)
            place = folder.wave(tag)
            place.mkdir(mode=0o711, exist_ok=True)
            write_once(place / names.WAVE, wave)
            return Drawn(wave, None, credit)
    return Drawn(None, "exhausted", credit)


def _draw_from(
    folder: CampaignFolder, tag: str, band: Band, lever: LeverSet, known: Known, stop_fd: int | None
) -> Wave:
    plan = folder.plan.plan
    request = DrawRequest(
        tag=tag,
        targets=plan.targets,
        band=band.id,
        at_least=band.at_least,
        under=band.under,
        lever_set=lever.id,
        levers=lever.levers,
    )
    place = folder.at(names.DRAWS) / tag
    call = Call(
        name="draw",
        command=plan.draw,
        request=request,
        folder=place,
        limits=plan.gate.limits,
        readable=(Mount(folder.tree, TREE),),
        words={"tree": str(TREE)},
    )
    answer = ask_command(folder, call, DrawAnswer, stop=stop_fd)
    if problem := answer_problem(answer.targets):
        raise CommandProblem(f"draw named what cannot be a wave: {problem}")
    known = replace(known, missing=missing_inputs(folder.tree, answer.targets))
    choice = choose(plan, band, answer.targets, known)
    remove_tree(place)
    return Wave(
        format="roundkit-wave/1",
        plan_sha256=folder.plan_sha256,
        tag=tag,
        drawn_utc=now_utc(),
        band=band.id,
        lever_set=lever.id,
        targets=choice.targets,
        missing_inputs=choice.missing,
        left_out=choice.left_out,
        retried=choice.retried,
    )


def _standing(folder: CampaignFolder, credit: Credit) -> Standing:
    plan, gated, tags = folder.plan.plan, folder.gated(), folder.tags()
    waiting = [tag for tag in tags if tag not in gated and folder.drafted(tag) is not None]
    return Standing(
        drawn=len(tags),
        waiting=len(waiting),
        credit_usd=credit.usd,
        now=now_utc(),
        stop=stop.is_asked(folder),
        committed_micro_usd=sum(charged_micro_usd(folder, tag) for tag in tags)
        if plan.authorization is not None
        else 0,
    )


def charged_micro_usd(folder: CampaignFolder, tag: str) -> int:
    """Return a wave's worst case, and what its agents told of beyond that: the last answer of one can be."""
    plan, wave = folder.plan.plan, folder.read_wave(tag)
    lever = lever_of(folder, wave)
    beyond = (
        max(0, (end.micro_usd or 0) - caps_of(plan, lever, len(shard.targets)).micro_usd)
        for shard, end in folder.shards(tag)
        if end is not None
    )
    return wave_micro_usd(plan, wave) + sum(beyond)


def _known(folder: CampaignFolder, waves: list[Wave], banked: Banked) -> Known:
    # What is gated is read before what is banked: a wave gated in between is left out for one of the two.
    gated = folder.gated()
    open_waves = [wave for wave in waves if wave.tag not in gated]
    # Drafting again what waits for a gate of its own would buy nothing.
    put_aside = {record.target.key for record in parked(folder)}
    drafting = [wave for wave in open_waves if folder.drafted(wave.tag) is None]
    gating = [wave for wave in open_waves if wave not in drafting]
    return Known(
        banked=banked(folder.tree),
        drafting={target.key for wave in drafting for target in wave.targets},
        gating={target.key for wave in gating for target in wave.targets} | put_aside,
        drawn={target.key for wave in waves for target in wave.targets},
        families={
            target.family for wave in open_waves for target in wave.targets if target.family is not None
        },
    )
