"""From a commit to a built checkout: materialize, build, import probe, smoke; all of it confined."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from roundkit.core.globs import GlobSet
from roundkit.core.relpath import MAX_PATH_BYTES
from roundkit.host.confine import CpuSet
from roundkit.host.confine.types import CHANGED
from roundkit.measure.checkout import materialize
from roundkit.measure.free_cores import free_cores
from roundkit.measure.hollow import hollow_bytes
from roundkit.measure.layers import walk_layer
from roundkit.measure.materialized import Base, Checkout, lay_checkout, overlay_missing
from roundkit.measure.probe import import_probe, run_command_confined
from roundkit.measure.provision import check_provision
from roundkit.measure.trees import remove_tree
from roundkit.models.campaign import CampaignPlan
from roundkit.models.ledger import CommandLog, RejectCause
from roundkit.models.measurement import ProvisionRef, SideRef
from roundkit.models.round_plan import RoundPlan
from roundkit.models.run_spec import RunSpec
from roundkit.rounds.layout import RoundFolder

PRISTINE = "pristine"
BASE = "base"
_SHOWN_CHARACTERS = 80


@dataclass(frozen=True)
class Built:
    """A side that is ready to be measured, or the step at which it failed.

    Attributes:
        side: The built checkout; null when a step failed.
        logs: How build, import probe and smoke ended.
        cause: The step that failed.
        detail: The tail of that step's log.
    """

    side: SideRef | None
    logs: tuple[CommandLog, ...]
    cause: RejectCause | None = None
    detail: str | None = None


def pristine_checkout(folder: RoundFolder, plan: RoundPlan) -> Path:
    """Return the untouched checkout of the incumbent that protected files are mounted from."""
    return _incumbent_files(folder, plan, PRISTINE, omit=None)


def base_checkout(folder: RoundFolder, plan: RoundPlan) -> Base | None:
    """Return the checkout of the incumbent, without hidden files, that builds are layers over.

    Returns:
        None where this machine cannot show a tree put together of layers.
    """
    folder.checkouts.mkdir(exist_ok=True)
    if overlay_missing(folder.checkouts) is not None:
        return None
    omit = GlobSet(plan.campaign.hidden_paths)
    return Base(_incumbent_files(folder, plan, BASE, omit=omit), plan.incumbent)


def _incumbent_files(folder: RoundFolder, plan: RoundPlan, name: str, *, omit: GlobSet | None) -> Path:
    target = folder.checkouts / name
    if not target.is_dir():
        # Written beside its place: what a killed process left half-written must not pass for the incumbent.
        partial = folder.checkouts / f".{name}.partial"
        folder.checkouts.mkdir(exist_ok=True)
        remove_tree(partial)
        materialize(folder.repository, plan.incumbent, partial, omit=omit)
        partial.rename(target)
    return target


def build_side(
    folder: RoundFolder,
    plan: RoundPlan,
    spec: RunSpec,
    *,
    commit: str,
    tree: str,
    target: Path,
    provision: ProvisionRef | None = None,
) -> Built:
    """Materialize a commit and run the plan's build, import probe and smoke on it.

    Args:
        folder: The round.
        plan: Its frozen plan.
        spec: The run specification of the round.
        commit: What to build.
        tree: The commit's tree.
        target: Folder of the checkout; what lies there is replaced.
        provision: What the round provisioned.

    Raises:
        MeasurementBroke: ``provision-changed``, or the boundary could not be set up.
    """
    pristine = pristine_checkout(folder, plan)
    remove_tree(target)
    checkout = lay_checkout(
        folder.repository,
        commit,
        target,
        base=base_checkout(folder, plan),
        omit=GlobSet(plan.campaign.hidden_paths),
    )
    return build_checkout(
        plan.campaign,
        spec,
        commit=commit,
        tree=tree,
        checkout=checkout,
        pristine=pristine,
        provision=provision,
        cpus=free_cores(plan.device_sets, pinned=plan.cpu_pinning),
    )


def build_checkout(
    campaign: CampaignPlan,
    spec: RunSpec,
    *,
    commit: str,
    tree: str,
    checkout: Checkout,
    pristine: Path,
    provision: ProvisionRef | None,
    cpus: CpuSet | None = None,
) -> Built:
    """Run a campaign's build, import probe and smoke on a fresh checkout.

    Args:
        campaign: The commands and the target package.
        spec: How they run.
        commit: What the checkout is of.
        tree: Its tree.
        checkout: The folder, which the build may write to.
        pristine: The untouched incumbent, which protected files are mounted from.
        provision: What the round provisioned.
        cpus: Cores that its commands are bound to, while others are measured on; None for any.

    Raises:
        MeasurementBroke: ``provision-changed``, or the boundary could not be set up.
    """
    check_provision(provision)
    logs: list[CommandLog] = []
    for run in _steps(campaign, spec, checkout=checkout, pristine=pristine, provision=provision, cpus=cpus):
        log = run()
        logs.append(log)
        if not log.succeeded:
            return Built(None, tuple(logs), log.step, log.tail)
    try:
        digest = _digest_of_built(checkout, spec.limits.disk_bytes)
    except OSError as error:
        # On record like a command that failed: a verdict that rests on it can then be taken again.
        tail = f"the build left what cannot be used: {error}"
        logs.append(CommandLog(step="build", exit_code=None, end_reason="unreadable", wall_s=0.0, tail=tail))
        return Built(None, tuple(logs), "build", tail)
    side = SideRef(
        commit=commit,
        tree=tree,
        built=str(checkout.folder),
        base=None if checkout.base is None else str(checkout.base),
        built_sha256=digest,
    )
    return Built(side, tuple(logs))


def _digest_of_built(checkout: Checkout, most_hollow_bytes: int | None) -> str:
    """Return a built tree's digest.

    Raises:
        OSError: something cannot be read, or could not be copied to where trials see it; or its files have
            more holes than allowed, which would be read around each experiment.
    """
    if (path := checkout.overlong_path()) is not None:
        size = len(os.fsencode(path))
        raise OSError(f"{path[:_SHOWN_CHARACTERS]!r}… is a path of {size} bytes, more than {MAX_PATH_BYTES}")
    root = checkout.folder if checkout.base is None else checkout.folder / CHANGED
    hollow = hollow_bytes(found for _, found in walk_layer(root))
    if most_hollow_bytes is not None and hollow > most_hollow_bytes:
        raise OSError(f"files that are larger by {hollow} bytes than what they take on the disk")
    return checkout.digest()


def _steps(
    campaign: CampaignPlan,
    spec: RunSpec,
    *,
    checkout: Checkout,
    pristine: Path,
    provision: ProvisionRef | None,
    cpus: CpuSet | None,
) -> Iterator[Callable[[], CommandLog]]:
    """Yield the steps in order: build, import probe, smoke."""
    scratch = checkout.folder.with_name(f"{checkout.folder.name}.scratch")
    command = partial(
        run_command_confined,
        spec=spec,
        checkout=checkout,
        incumbent_built=pristine,
        scratch=scratch,
        provision=provision,
        cpus=cpus,
    )
    if campaign.build is not None:
        yield partial(command, "build", campaign.build)
    if campaign.target_package is not None:
        yield partial(
            import_probe,
            campaign.target_package,
            spec,
            checkout=checkout,
            timeout_s=campaign.benchmark.timeout_s,
            scratch=scratch,
            provision=provision,
            cpus=cpus,
        )
    if campaign.smoke is not None:
        yield partial(command, "smoke", campaign.smoke)
