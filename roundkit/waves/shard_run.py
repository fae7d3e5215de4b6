"""One shard: its folder is prepared, its agent runs in its boundary, and its end is written down."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from roundkit.agents.lane_boundary import bound_lane
from roundkit.agents.redaction import Redaction
from roundkit.core.clock import Deadline, now_utc
from roundkit.core.errors import RoundkitError
from roundkit.core.files import atomic_write
from roundkit.evidence import wave_layout as names
from roundkit.host.confine import Execution
from roundkit.measure.trees import copy_tree, make_folder, remove_tree
from roundkit.models.wave_plan import LeverSet, ModelPool
from roundkit.models.wave_records import Shard, ShardEnd, ShardTask, Slice, Wave
from roundkit.models.wave_traffic import RequestEvent
from roundkit.rules.wave_caps import caps_of
from roundkit.rules.wave_traffic import use_of
from roundkit.waves.agent_place import COPIES, HOME, LESSONS, redaction_of, shard_argv, shard_grant
from roundkit.waves.folder import CampaignFolder, write_once
from roundkit.waves.inputs import copy_inputs

LOST = "lost"
NOT_STARTED = "not-started"
BUDGET = "budget"
"""It told of more than its caps, and was ended for that."""


@dataclass(frozen=True)
class AgentSetting:
    """What all draft agents of one drafter have in common.

    Attributes:
        inherited: Keys and variables of the drafter's own environment.
        redaction: Takes the keys out of what they print.
    """

    inherited: Mapping[str, str]
    redaction: Redaction

    @classmethod
    def of(cls, folder: CampaignFolder, inherited: Mapping[str, str]) -> AgentSetting:
        """Return the setting of a campaign."""
        return cls(inherited, redaction_of(folder.plan, inherited))


def lay_lessons(folder: CampaignFolder, tag: str) -> None:
    """Keep the lessons that are there now as what a wave's agents are told; none is waited for.

    Raises:
        OSError: they cannot be copied.
    """
    source, target = folder.at(names.LESSONS), folder.wave(tag) / names.LESSONS
    remove_tree(target)
    if source.is_dir() and any(source.iterdir()):
        copy_tree(source, target)


def prepare_shard(folder: CampaignFolder, wave: Wave, slice_: Slice) -> Shard:
    """Make a shard's folder with all that its agent reads; ``shard.json`` comes last.

    What a killed drafter left of it is removed first: its agent never ran.

    Raises:
        OSError: there is no room.
    """
    plan = folder.plan.plan
    place = folder.shard(wave.tag, slice_.index)
    remove_tree(place)
    place.mkdir(parents=True)
    place.chmod(0o711)
    for name in (names.INPUTS, names.DRAFTS, names.REQUESTS, HOME):
        make_folder(place / name)
    keys = {(key.group, key.name) for key in slice_.targets}
    targets = tuple(target for target in wave.targets if target.key in keys)
    copy_inputs(folder.tree, targets, place / names.INPUTS)
    lever = lever_of(folder, wave)
    each = caps_of(plan, lever, 1)
    task = ShardTask(
        tag=wave.tag,
        shard=slice_.index,
        attempt=slice_.attempt,
        model=slice_.model,
        levers=lever.levers,
        turn_tokens=plan.draft.turn_tokens,
        turns=each.turns,
        micro_usd=each.micro_usd,
        lessons=None if _lessons(folder, wave.tag) is None else str(LESSONS),
        targets=targets,
    )
    atomic_write(place / names.TASK, task.to_bytes())
    shard = Shard(
        tag=wave.tag,
        index=slice_.index,
        pool=slice_.pool,
        model=slice_.model,
        attempt=slice_.attempt,
        targets=slice_.targets,
        started_utc=now_utc(),
    )
    write_once(place / names.SHARD, shard)
    return shard


class ShardRun:
    """A shard whose agent was started; a thread waits for its end, and nothing else.

    Args:
        folder: The campaign.
        shard: The prepared shard.
        setting: What its agent inherits.
        ended: Called from the thread once nothing of the agent is left.
    """

    def __init__(
        self, folder: CampaignFolder, shard: Shard, setting: AgentSetting, ended: Callable[[], None]
    ) -> None:
        self.shard = shard
        self._folder = folder
        self._setting = setting
        self._ended = ended
        self._ended_utc = shard.started_utc
        self._execution: Execution | None = None
        self._error: BaseException | None = None
        self._spent: str | None = None
        self._stop_read, self._stop_write = os.pipe2(os.O_CLOEXEC)
        self._thread = threading.Thread(
            target=self._run, name=f"shard-{shard.tag}-{shard.index}", daemon=True
        )

    def start(self) -> None:
        """Start the agent."""
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether nothing of the agent is left."""
        return not self._thread.is_alive()

    @property
    def ended_utc(self) -> datetime:
        """When nothing of the agent was left, once that is so."""
        return self._ended_utc

    def end_now(self) -> None:
        """End the agent as soon as possible."""
        with suppress(OSError):
            os.write(self._stop_write, b"x")

    def end_spent(self, what: str) -> None:
        """End the agent, since it told of more than it may use."""
        if self._spent is None:
            self._spent = what
            self.end_now()

    def wait(self) -> None:
        """Wait until nothing of the agent is left."""
        self._thread.join()

    def record(self, events: list[RequestEvent]) -> ShardEnd:
        """Write down how it ended, once it is over, and return that; may be called again after an error.

        Raises:
            OSError: there is no room for it.
            BaseException: whatever else than a refusal of the boundary broke the run.
        """
        if self._error is not None and not isinstance(self._error, RoundkitError | OSError):
            raise self._error
        place = self._folder.shard(self.shard.tag, self.shard.index)
        execution, use = self._execution, use_of(events)
        if execution is not None:
            said = filter(None, (execution.stdout_tail, execution.stderr_tail))
            log = "\n".join(map(self._setting.redaction.cut_text, said))
            atomic_write(place / names.AGENT_LOG, log.encode("utf-8", "replace"))
        reason, detail = self._why()
        end = ShardEnd(
            tag=self.shard.tag,
            index=self.shard.index,
            ended_utc=self._ended_utc,
            end_reason=reason,
            exit_code=None if execution is None else execution.exit_code,
            detail=detail,
            truncated_turns=use.truncated_turns,
            turns=use.turns,
            micro_usd=use.micro_usd,
            tokens=use.tokens,
        )
        remove_tree(place / HOME)
        atomic_write(place / names.END, end.to_bytes())
        return end

    def _why(self) -> tuple[str, str]:
        """Return why its agent ended, with one line more."""
        if self._execution is None:
            return NOT_STARTED, str(self._error or "")
        if self._execution.end_reason == "stopped" and self._spent is not None:
            return BUDGET, self._spent
        return self._execution.end_reason, self._execution.detail

    def close(self) -> None:
        """Let go of what the run needed."""
        for fd in (self._stop_read, self._stop_write):
            os.close(fd)

    def _run(self) -> None:
        try:
            plan = self._folder.plan.plan
            place = self._folder.shard(self.shard.tag, self.shard.index)
            grant = shard_grant(
                self._folder,
                place,
                _pool(self._folder, self.shard),
                _lessons(self._folder, self.shard.tag),
                self._setting.inherited,
            )
            self._execution = bound_lane(
                shard_argv(self._folder.plan, self.shard.model),
                grant,
                deadline=Deadline.after(plan.draft.deadline_s),
                limits=plan.draft.limits,
                stop=self._stop_read,
            )
        except BaseException as error:
            self._error = error
        finally:
            self._ended_utc = now_utc()
            self._ended()


def record_lost(folder: CampaignFolder, shard: Shard, events: list[RequestEvent]) -> None:
    """Write down that a shard's agent died with the drafter that had started it; its drafts stay.

    Raises:
        OSError: there is no room for it.
    """
    use, place = use_of(events), folder.shard(shard.tag, shard.index)
    end = ShardEnd(
        tag=shard.tag,
        index=shard.index,
        ended_utc=_last_sign(shard, place),
        end_reason=LOST,
        detail="the drafter was killed, and the agent with it",
        truncated_turns=use.truncated_turns,
        turns=use.turns,
        micro_usd=use.micro_usd,
        tokens=use.tokens,
    )
    # Nobody was there to take them away when its agent died.
    for left in (HOME, COPIES):
        remove_tree(place / left)
    atomic_write(place / names.END, end.to_bytes())


def _last_sign(shard: Shard, place: Path) -> datetime:
    """Return when an agent that nobody saw die last changed one of its folders."""
    signs = [(place / name).lstat().st_mtime for name in (names.DRAFTS, names.REQUESTS)]
    return max(shard.started_utc, min(now_utc(), datetime.fromtimestamp(max(signs), UTC)))


def lever_of(folder: CampaignFolder, wave: Wave) -> LeverSet:
    """Return the lever set of a wave."""
    return next(lever for lever in folder.plan.plan.lever_sets if lever.id == wave.lever_set)


def _pool(folder: CampaignFolder, shard: Shard) -> ModelPool:
    return next(pool for pool in folder.plan.plan.pools if pool.id == shard.pool)


def _lessons(folder: CampaignFolder, tag: str) -> Path | None:
    laid = folder.wave(tag) / names.LESSONS
    return laid if laid.is_dir() else None
