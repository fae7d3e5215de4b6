"""The two files of a replayed round, made from the shipped templates."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from roundkit.core.clock import format_utc, now_utc
from roundkit.core.git import Repository
from roundkit.core.globs import exact_glob
from roundkit.models.instruments import Instrument
from roundkit.rounds.compare.instruments import METRICS
from roundkit.rounds.template_files import CHECKOUT_PATH, template, words_inside
from roundkit.rules.replay_lanes import CommitGroup
from roundkit.rules.scope import TRICK_FILES

_SHORT = 10
_SUBJECT_CHARACTERS = 300


@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    """What a replay measures and how; what is not given here comes from the shipped templates.

    Attributes:
        benchmark: The benchmark command, one process. Paths are relative to the repository's top, or absolute
            and outside of it.
        metric: Name of the metric that it reports; null when it reports none.
        instrument: What counts where it reports none, of the coordinator's own.
        unit: Unit of that metric.
        direction: Whether less or more of it is better.
        timeout_s: Wall-clock limit of one trial, in seconds.
        build: Build command.
        validator: Command that judges the outputs of each trial.
        target_package: Package that must be imported from the measured checkout.
        protected_paths: Globs of what no lane may change, in addition to what the benchmark names.
        pairs: Largest number of pairs of an experiment.
        min_gain: Smallest gain that is kept, a fraction.
        python: Interpreter; the template's when null.
        cores: Core numbers, each a device set of its own; the template's when empty.
        each_commit: Submit after each commit of a lane instead of once for all of them.
        deadline_utc: End of the round.
    """

    benchmark: tuple[str, ...]
    metric: str | None = None
    instrument: Instrument = "wall"
    unit: str = "ms"
    direction: Literal["lower", "higher"] = "lower"
    timeout_s: float | None = None
    build: tuple[str, ...] | None = None
    validator: tuple[str, ...] | None = None
    target_package: str | None = None
    protected_paths: tuple[str, ...] = ()
    pairs: int | None = None
    min_gain: float | None = None
    python: str | None = None
    cores: tuple[str, ...] = ()
    each_commit: bool = False
    deadline_utc: datetime


@dataclass(frozen=True)
class ReplayRange:
    """The range of commits, and the repository that it lies in.

    Attributes:
        repository: The repository.
        base: The incumbent.
        head: The last commit.
        branch: A branch of the repository.
        base_paths: Files of the base.
        changed: Paths in which head differs from the base.
    """

    repository: Repository
    base: str
    head: str
    branch: str
    base_paths: frozenset[str]
    changed: frozenset[str]


def replay_campaign(span: ReplayRange, options: ReplayOptions) -> dict[str, Any]:
    """Return the campaign, still without a search plan."""
    content = template("campaign.yaml")
    top = span.repository.path
    argv, readable = words_inside(top, options.benchmark)
    build, validator = (
        words_inside(top, words) if words else None for words in (options.build, options.validator)
    )
    readable = sorted({*readable, *(folder for step in (build, validator) if step for folder in step[1])})
    instrument = "reported" if options.metric is not None else options.instrument
    name, unit = METRICS.get(instrument, (options.metric, options.unit))
    timeout_s = options.timeout_s or content["benchmark"]["timeout_s"]
    content.update(
        campaign_id=f"replay-{span.base[:_SHORT]}-{span.head[:_SHORT]}",
        repository={"path": str(top), "branch": span.branch},
        metric={
            "name": name,
            "unit": unit,
            "direction": options.direction if instrument == "reported" else "lower",
        },
        benchmark={"argv": argv, "timeout_s": timeout_s, "instrument": instrument},
        validator={"argv": validator[0], "timeout_s": timeout_s} if validator else None,
        build={"argv": build[0], "timeout_s": timeout_s} if build else None,
        target_package=options.target_package,
        protected_paths=list(options.protected_paths or TRICK_FILES),
        runtime={"python": options.python or content["runtime"]["python"], "readable": readable},
        search_plan=[],
        search_state={"incumbent_revision": span.base},
    )
    # A benchmark from outside the repository finds the program in the checkout that it runs on.
    content["environment"]["PYTHONPATH"] = CHECKOUT_PATH
    for name, value in (("ab_ba_pairs", options.pairs), ("min_gain", options.min_gain)):
        if value is not None:
            content["test_plan"][name] = value
    return content


def fill_campaign(campaign: dict[str, Any], names: dict[str, CommitGroup]) -> None:
    """Add one search plan entry a lane, and room for all of them."""
    campaign["search_plan"] = [_entry(lane, group) for lane, group in names.items()]
    campaign["budget"]["lanes_per_round"] = len(names)
    most = max(len(group.paths) for group in names.values())
    campaign["intake"]["max_files"] = max(campaign["intake"]["max_files"], most)


def _entry(lane: str, group: CommitGroup) -> dict[str, Any]:
    subjects = "; ".join(f"{commit.commit[:_SHORT]} {commit.subject}" for commit in group.commits)
    return {
        "id": _entry_id(lane),
        "target_stage": "whole program",
        "exposed_share": 1.0,
        "conditional_headroom": 1.0,
        "plane": "replay",
        "hypothesis": subjects[:_SUBJECT_CHARACTERS],
        "status": "planned",
    }


def _entry_id(lane: str) -> str:
    return f"E-{lane}"


def replay_draft(
    span: ReplayRange,
    names: dict[str, CommitGroup],
    sources: dict[str, tuple[str, ...]],
    options: ReplayOptions,
) -> dict[str, Any]:
    """Return the round: one replay lane for each group of commits, with exact paths as globs."""
    draft = template("round.yaml")
    draft.update(
        round_id=f"replay-{span.head[:_SHORT]}-{now_utc():%Y%m%d-%H%M%S}",
        deadline_utc=format_utc(options.deadline_utc),
        lane_environment="none",
        lanes=[
            {
                "id": lane,
                "entry": _entry_id(lane),
                "globs": [exact_glob(path) for path in group.paths],
                "creates": not span.base_paths.issuperset(group.paths),
                "harness": "replay",
                "attempts": 1,
                "submission_cap": len(sources[lane]),
                "replay": list(sources[lane]),
            }
            for lane, group in names.items()
        ],
    )
    if options.cores:
        draft["device_sets"] = [
            {"id": f"core{core}", "platform": "cpu", "devices": [core]} for core in options.cores
        ]
    return draft
