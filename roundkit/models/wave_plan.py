"""The wave plan: a campaign of many small targets, as its owner writes it and as it is frozen."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from roundkit.host.confine import Limits
from roundkit.models.base import (
    Argv,
    CommitId,
    Count,
    Digest,
    Fraction,
    Identifier,
    PositiveSeconds,
    Record,
    UtcTime,
)
from roundkit.models.lane_agent import AbsolutePath, Authorization, LaneAgent
from roundkit.models.round_plan import FrozenRuntime

TargetName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.$@+-]{1,200}$")]
RelativeGlob = Annotated[str, StringConstraints(pattern=r"^[^/\x00][^\x00]*$", max_length=1000)]


class WaveCommand(Record):
    """One of the campaign's own commands.

    It is started with ``{input}`` and ``{output}`` replaced by files of JSON: it reads the one, writes the
    other and exits 0. Any other end, or an output that does not fit, is a failure of that step.

    Attributes:
        argv: Program and arguments; ``{python}``, ``{input}``, ``{output}``, ``{tree}`` and ``{staging}``
            are replaced.
        timeout_s: When it is ended.
    """

    argv: Argv
    timeout_s: PositiveSeconds


class Band(Record):
    """One size class of targets: from ``at_least`` up to, and without, ``under``; null is no bound.

    Attributes:
        at_least: Smallest size.
        under: First size that is too large; null: no bound.
    """

    id: Identifier
    at_least: Count = 0
    under: Count | None = None

    @model_validator(mode="after")
    def _holds_some_size(self) -> Self:
        if self.under is not None and self.under <= self.at_least:
            raise ValueError("`under` must be above `at_least`: no target has such a size")
        return self

    def holds(self, size: int) -> bool:
        """Say whether a target of that size belongs to it."""
        return self.at_least <= size and (self.under is None or size < self.under)


class LeverSet(Record):
    """A named way of prompting, with budgets of its own; null inherits the plan's.

    Attributes:
        levers: What it tells the draft agent; passed on as it is.
        turns: Turns a target.
        micro_usd: Cost a target, in micro-USD.
    """

    id: Identifier
    levers: tuple[str, ...] = ()
    turns: Annotated[int, Field(ge=1)] | None = None
    micro_usd: Count | None = None


class ModelPool(Record):
    """Workers on one model.

    Attributes:
        id: Name of the pool.
        model: The model, as its provider names it; null for scripts.
        share: Its part of the workers, in proportion to the other pools' shares.
        environment: Further variables of its draft agents.
    """

    id: Identifier
    model: str | None = None
    share: Annotated[int, Field(ge=1)]
    environment: dict[str, str] = Field(default_factory=dict)


class WorkerRules(Record):
    """How many draft agents run at once, and what evidence changes that.

    Attributes:
        start: Workers of the first wave.
        most: Never more than these.
        step: How many a clean wave earns.
        sustained_minutes: Consecutive minutes with a provider's 429 that count as a ceiling.
        least_gain: Growth of requests a minute, as a fraction, that a step must buy.
        stalls: Consecutive steps that did not buy it, after which the number is held.
    """

    start: Annotated[int, Field(ge=1)]
    most: Annotated[int, Field(ge=1)]
    step: Annotated[int, Field(ge=1)]
    sustained_minutes: Annotated[int, Field(ge=1)]
    least_gain: Fraction
    stalls: Annotated[int, Field(ge=1)]

    @model_validator(mode="after")
    def _in_range(self) -> Self:
        if self.start > self.most:
            raise ValueError("`start` must not be above `most`")
        return self


class DraftRules(Record):
    """How a wave is drafted.

    Attributes:
        argv: What one worker runs, in the draft agent's boundary, for its shard: ``{python}`` is the plan's
            interpreter, ``{input}`` the file that names its targets, ``{output}`` the folder for its drafts,
            ``{events}`` the file that it appends its requests to, ``{model}`` the pool's model. It starts in
            the frozen tools, so that their names need no folder.
        agent: Hosts, keys and files of the draft agents, and what they are. What belongs to a lane's harness
            alone (its program, effort, tools, prompt and limits) is not for them.
        turn_tokens: Output tokens that one turn may have; a turn that was cut off there is a result of the
            harness, not a failed draft.
        turns: Turns a target.
        micro_usd: Cost a target, in micro-USD.
        attempts: Independent drafts of each target.
        deadline_s: When a shard is ended, whatever it is doing.
        ramp_s: Window over which starts are spread.
        most_ramp_s: Longest pause between two starts.
        tail: Share of the shards whose end lets the next wave start.
        grace_s: How long after that what still runs may land in its own wave.
        suffix: End of a draft's file name, e.g. ``.c``.
        limits: What one shard may use of the machine.
    """

    argv: Argv
    agent: LaneAgent
    turn_tokens: Annotated[int, Field(ge=1)]
    turns: Annotated[int, Field(ge=1)]
    micro_usd: Count
    attempts: Annotated[int, Field(ge=1)]
    deadline_s: PositiveSeconds
    ramp_s: Annotated[float, Field(ge=0.0)]
    most_ramp_s: Annotated[float, Field(ge=0.0)]
    tail: Fraction
    grace_s: Annotated[float, Field(ge=0.0)]
    suffix: Annotated[str, StringConstraints(pattern=r"^(\.[A-Za-z0-9]+)+$")]
    limits: Limits


class GateRules(Record):
    """How drafts are judged and banked.

    Attributes:
        prefilter: Cheap and deterministic, one call a wave; only an explicit ``agree`` passes.
        score: Ranks several attempts at one target; null: the first one is taken.
        command: Expensive and authoritative, one call a group.
        jobs: Groups gated at once.
        expensive_groups: Groups whose gate bisects a failing batch, so that one bad draft costs few calls.
        chunk: Most drafts of an expensive group in one call.
        parked_groups: Groups whose drafts are put aside for a gate of their own (``waves gate --parked``).
        limits: What one call of the campaign's own commands may use of the machine, ``draw`` and ``credit``
            among them.
    """

    prefilter: WaveCommand
    score: WaveCommand | None = None
    command: WaveCommand
    jobs: Annotated[int, Field(ge=1)]
    expensive_groups: tuple[TargetName, ...] = ()
    chunk: Annotated[int, Field(ge=1)]
    parked_groups: tuple[TargetName, ...] = ()
    limits: Limits


class CommitRules(Record):
    """What the committer may commit, and what must not shrink.

    Attributes:
        paths: Globs of the paths that are this campaign's; nothing else is committed or reverted.
        others: Globs, within them, that belong to somebody else.
        watched: Files whose collapse is refused and undone.
        least_lines: Share of the lines at HEAD that a watched file must keep.
    """

    paths: Annotated[tuple[RelativeGlob, ...], Field(min_length=1)]
    others: tuple[RelativeGlob, ...] = ()
    watched: tuple[RelativeGlob, ...] = ()
    least_lines: Fraction


class WaveDraft(Record):
    """A wave campaign as its owner writes it in ``wave-plan.yaml``; paths are relative to that file.

    Attributes:
        tree: The git working tree that banked work is committed to.
        tools: Folder with the campaign's own programs, frozen with the plan.
        provision: Further absolute folders that commands may read.
        python: Interpreter for ``{python}``, absolute; ``auto``: the one that runs roundkit.
        draw: Names targets for one wave; see :class:`DrawAnswer`.
        draft: How a wave is drafted.
        gate: How drafts are judged and banked.
        commit: What may be committed.
        harvest: Takes lessons from banked targets; null: there are none.
        credit: Tells the credit that is left, with the draft agents' hosts and keys; null: nobody knows.
        waves: How many at most; null: until something else ends it.
        targets: Targets a wave.
        most_groups: Groups in one wave at most.
        one_per_family: Whether siblings of one family are drawn as one exemplar.
        excluded_groups: Groups that are never drawn.
        bands: Size classes of targets; waves take turns.
        lever_sets: Named ways of prompting; waves take turns.
        pools: Workers on one model each.
        workers: How many draft agents run at once.
        queue_depth: Drafted waves that may wait for the gate before no new one is drawn.
        credit_floor_usd: Under it nothing more is drawn.
        deadline_utc: When the campaign draws no more; null: never.
        authorization: Who allows agents to spend money; null: nobody.
    """

    format: Literal["roundkit-waves/1"]
    campaign_id: Identifier
    tree: str
    tools: str
    provision: tuple[AbsolutePath, ...] = ()
    python: str = "auto"
    draw: WaveCommand
    draft: DraftRules
    gate: GateRules
    commit: CommitRules
    harvest: WaveCommand | None = None
    credit: WaveCommand | None = None
    waves: Annotated[int, Field(ge=1)] | None = None
    targets: Annotated[int, Field(ge=1)]
    most_groups: Annotated[int, Field(ge=1)]
    one_per_family: bool = True
    excluded_groups: tuple[TargetName, ...] = ()
    bands: Annotated[tuple[Band, ...], Field(min_length=1)]
    lever_sets: Annotated[tuple[LeverSet, ...], Field(min_length=1)]
    pools: Annotated[tuple[ModelPool, ...], Field(min_length=1)]
    workers: WorkerRules
    queue_depth: Annotated[int, Field(ge=1)]
    credit_floor_usd: Annotated[float, Field(ge=0.0)]
    deadline_utc: UtcTime | None = None
    authorization: Authorization | None = None

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        for what in ("bands", "lever_sets", "pools"):
            ids = [one.id for one in getattr(self, what)]
            if len(set(ids)) != len(ids):
                raise ValueError(f"each id in `{what}` must be there once")
        return self


class WavePlan(Record):
    """A frozen wave campaign: canonical JSON whose SHA-256 is its digest.

    Attributes:
        plan: The owner's draft; ``tree`` and ``tools`` are absolute.
        runtime: Interpreter for ``{python}``, and the folders that it and the commands read.
        tools_sha256: Tree digest of the tools' frozen copy.
        started_at: HEAD of the tree when the plan was frozen.
    """

    format: Literal["roundkit-wave-plan/1"]
    frozen_utc: UtcTime
    plan: WaveDraft
    runtime: FrozenRuntime
    tools_sha256: Digest
    started_at: CommitId
