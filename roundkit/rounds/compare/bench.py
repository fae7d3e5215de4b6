"""From options to a frozen comparison: campaign by the template, plan, run specification, cores."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundkit.core.canonical import digest_bytes
from roundkit.core.clock import now_utc
from roundkit.core.errors import Refusal, Refused
from roundkit.core.globs import PathIndex
from roundkit.measure.trees import copy_tree, list_files
from roundkit.models.campaign import CampaignPlan
from roundkit.models.comparison import ComparisonPlan
from roundkit.models.instruments import Instrument
from roundkit.models.round_plan import DeviceSet, Tightening
from roundkit.models.run_spec import RunSpec
from roundkit.rounds.compare.instruments import METRICS
from roundkit.rounds.compare.options import CompareOptions
from roundkit.rounds.compare.sides import Located
from roundkit.rounds.prepare_instrument import resolve_instrument
from roundkit.rounds.prepare_runtime import resolve_runtime
from roundkit.rounds.template_files import (
    CHECKOUT_PATH,
    checked_campaign,
    program_refusals,
    template,
    words_inside,
)
from roundkit.rules.freezing import gates_in_force
from roundkit.rules.run_spec import comparison_run_spec
from roundkit.rules.scope import TRICK_FILES, campaign_commands, missing_script, protected_globs

_SECRET_BYTES = 32
_OPTIONS = {
    "benchmark": "--benchmark",
    "benchmark.instrument": "--instrument",
    "validator": "--validator",
    "build": "--build",
    "runtime.python": "--python",
    "runtime.readable": "--read",
}


@dataclass(frozen=True)
class CompareBench:
    """What every trial of a comparison shares.

    Attributes:
        work: The comparison's own folder.
        campaign: The template, filled in.
        plan: What was asked for.
        spec: How a trial runs.
        secret: Coins and seeds come from it.
    """

    work: Path
    campaign: CampaignPlan
    plan: ComparisonPlan
    spec: RunSpec
    secret: bytes

    @property
    def pristine(self) -> Path:
        """The untouched baseline, which protected files are mounted from."""
        return self.work / "pristine"


def open_bench(
    baseline: Located, candidate: Located, options: CompareOptions, work: Path, *, name: str
) -> CompareBench:
    """Copy both sides into the work folder and freeze how they are compared.

    Args:
        baseline: Side A; its files stand in ``pristine`` and ``baseline`` afterwards.
        candidate: Side B; its files stand in ``candidate``.
        options: What is measured.
        work: The comparison's own folder.
        name: Beginning of the comparison's id.

    Raises:
        Refused: with everything that stands against it; no trial was run.
        OSError: a side cannot be copied.
    """
    sides = (baseline.fill(work / "pristine"), candidate.fill(work / "candidate"))
    # Not copied from its owner twice: it may be edited meanwhile.
    copy_tree(work / "pristine", work / "baseline")
    paths = PathIndex(list_files(work / "pristine"))
    campaign = checked_campaign(_campaign(baseline, options), "the command line")
    keep_out = (baseline.path, candidate.path, work)
    runtime, refusals = resolve_runtime(campaign, _option, keep_out=keep_out)
    tool, missing = resolve_instrument(campaign, _option)
    refusals = [*refusals, *_command_refusals(campaign, paths), *_option_refusals(options), *missing]
    if refusals or runtime is None:
        raise Refused(refusals)
    secret = secrets.token_bytes(_SECRET_BYTES)
    now = now_utc()
    plan = ComparisonPlan(
        format="roundkit-comparison-plan/2",
        comparison_id=f"{name}-{now:%Y%m%d-%H%M%S}",
        planned_utc=now,
        baseline=sides[0],
        candidate=sides[1],
        build=campaign.build,
        target_package=campaign.target_package,
        metric=campaign.metric,
        benchmark=campaign.benchmark,
        validator=campaign.validator,
        runtime=runtime,
        environment=campaign.environment,
        limits=campaign.limits,
        protected_paths=protected_globs(campaign, (), paths),
        hidden_paths=campaign.hidden_paths,
        gates=gates_in_force(campaign.test_plan, Tightening()),
        counting_tool=tool,
        device_sets=_device_sets(options.cpus),
        secret_sha256=digest_bytes(secret),
    )
    return CompareBench(work, campaign, plan, comparison_run_spec(plan), secret)


def with_instrument(bench: CompareBench, instrument: Instrument, *, pairs: int | None = None) -> CompareBench:
    """Return the same bench under another instrument of the coordinator's own.

    Args:
        bench: The bench.
        instrument: The other instrument.
        pairs: Another number of pairs.

    Raises:
        Refused: ``instrument-missing``: this machine does not give it.
    """
    name, unit = METRICS[instrument]
    metric = bench.campaign.metric.model_copy(update={"name": name, "unit": unit, "direction": "lower"})
    benchmark = bench.campaign.benchmark.model_copy(update={"instrument": instrument})
    tests = bench.campaign.test_plan
    tests = tests.model_copy(update={"ab_ba_pairs": pairs or tests.ab_ba_pairs})
    changed = {"metric": metric, "benchmark": benchmark, "test_plan": tests}
    campaign = bench.campaign.model_copy(update=changed)
    tool, missing = resolve_instrument(campaign, _option)
    if missing:
        raise Refused(missing)
    changes = {
        "metric": metric,
        "benchmark": benchmark,
        "gates": gates_in_force(tests, Tightening()),
        "counting_tool": tool,
    }
    # The plan stays the one that was asked for, and coins and seeds come from its digest.
    spec = comparison_run_spec(bench.plan.model_copy(update=changes))
    spec = spec.model_copy(update={"round_digest": bench.plan.digest()})
    return CompareBench(bench.work, campaign, bench.plan, spec, bench.secret)


def _device_sets(cpus: tuple[str, ...]) -> tuple[DeviceSet, ...]:
    """Return the one set that was asked for, else every core by itself, the last one first."""
    if cpus:
        return (DeviceSet(id="cpus", platform="cpu", devices=cpus),)
    cores = sorted(os.sched_getaffinity(0), reverse=True)
    return tuple(DeviceSet(id=f"core{core}", platform="cpu", devices=(str(core),)) for core in cores)


def _campaign(baseline: Located, options: CompareOptions) -> dict[str, Any]:
    content = template("campaign.yaml")
    timeout_s = options.timeout_s or content["benchmark"]["timeout_s"]
    readable = list(options.readable)

    def command(argv: tuple[str, ...] | None) -> dict[str, Any] | None:
        if argv is None:
            return None
        words, folders = words_inside(baseline.path, argv)
        readable.extend(folders)
        return {"argv": words, "timeout_s": timeout_s}

    name, unit = METRICS.get(options.instrument, (options.metric, options.unit))
    content.update(
        campaign_id="outside-a-round",
        metric={"name": name, "unit": unit, "direction": options.direction},
        benchmark={**(command(options.benchmark) or {}), "instrument": options.instrument},
        validator=command(options.validator),
        build=command(options.build),
        target_package=options.package,
        protected_paths=[*options.protected_paths, *TRICK_FILES],
        runtime={"python": options.python or content["runtime"]["python"], "readable": readable},
        search_plan=[],
    )
    # A benchmark from outside finds the program in the checkout that it runs on.
    content["environment"]["PYTHONPATH"] = CHECKOUT_PATH
    gates = {"ab_ba_pairs": options.pairs, "min_gain": options.min_gain}
    content["test_plan"].update({name: value for name, value in gates.items() if value is not None})
    if options.all_pairs:
        content["test_plan"]["early_stopping"] = None
    return content


def _option(*keys: str | int) -> str:
    """Name the option that a key of the campaign comes from."""
    words = [str(key) for key in keys]
    return _OPTIONS.get(".".join(words[:2])) or _OPTIONS.get(words[0], ".".join(words))


def _command_refusals(campaign: CampaignPlan, paths: PathIndex) -> Iterator[Refusal]:
    for keys, argv in campaign_commands(campaign):
        built = campaign.build is not None and keys[0] != "build"
        missing = missing_script(argv, paths, built=built)
        if missing is not None:
            yield Refusal(
                "command-missing",
                f"{missing!r} is not a file of the baseline",
                _option(*keys),
                "paths are relative to the top of A; name a file elsewhere by its absolute path",
            )
    yield from program_refusals(campaign, _option)


def _option_refusals(options: CompareOptions) -> Iterator[Refusal]:
    yield from _core_refusals(options.cpus)
    for glob in options.protected_paths:
        if glob.startswith("/") or ".." in glob.split("/"):
            yield Refusal(
                "protect-outside",
                f"{glob!r} lies outside of the checkouts",
                "--protect",
                "globs are relative to the top of A, such as data/**; --read gives a folder elsewhere",
            )


def _core_refusals(cpus: tuple[str, ...]) -> Iterator[Refusal]:
    offered = sorted(os.sched_getaffinity(0))
    twice = sorted({core for core in cpus if cpus.count(core) > 1})
    if twice:
        yield Refusal(
            "device-twice", f"core {', '.join(twice)} is named twice", "--cpus", "name each core once"
        )
    for core in cpus:
        if not (core.isascii() and core.isdigit() and int(core) in offered):
            yield Refusal(
                "device-missing",
                f"this process may not run on a core {core!r}",
                "--cpus",
                f"this machine offers cores {', '.join(map(str, offered))}: name one of them",
            )
