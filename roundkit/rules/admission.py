"""Whether a candidate's files may be laid on the incumbent: paths, scope, protection, links, sizes."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from roundkit.core.globs import GlobSet
from roundkit.core.relpath import fold_path, path_problem
from roundkit.models.lane import Manifest
from roundkit.models.ledger import RejectCause
from roundkit.models.round_plan import RoundPlan


@dataclass(frozen=True)
class Rejection:
    """Why a submission is rejected."""

    cause: RejectCause
    detail: str


def admission_problem(
    manifest: Manifest,
    plan: RoundPlan,
    *,
    link_targets: Mapping[str, str] | None = None,
    submodules: Collection[str] = (),
) -> Rejection | None:
    """Return the first reason against a candidate, or None.

    Args:
        manifest: The candidate's paths.
        plan: The frozen plan; globs come from nowhere else.
        link_targets: Target of each symbolic link in the manifest, by path.
        submodules: Paths of submodules in the incumbent.
    """
    if not manifest.entries:
        return Rejection("malformed", "the manifest names no path")
    if len(manifest.entries) > plan.campaign.intake.max_files:
        return Rejection(
            "too-large", f"{len(manifest.entries)} files, more than {plan.campaign.intake.max_files}"
        )
    for check in (_shape_problem, _repeat_problem):
        if (rejection := check(manifest)) is not None:
            return rejection
    return (
        _protection_problem(manifest, plan)
        or _scope_problem(manifest, plan)
        or _submodule_problem(manifest, submodules)
        or _link_problem(link_targets or {})
    )


def _shape_problem(manifest: Manifest) -> Rejection | None:
    for entry in manifest.entries:
        problem = path_problem(entry.path)
        if problem is not None:
            return Rejection("malformed", f"path {entry.path!r} {problem}")
        whole = entry.mode is not None and entry.sha256 is not None
        if entry.deleted == whole or (entry.mode is None) != (entry.sha256 is None):
            return Rejection("malformed", f"path {entry.path!r} is neither a file nor a deletion")
    return None


def _repeat_problem(manifest: Manifest) -> Rejection | None:
    seen: dict[str, str] = {}
    for entry in manifest.entries:
        folded = fold_path(entry.path)
        if folded in seen:
            return Rejection("malformed", f"{entry.path!r} and {seen[folded]!r} name one path")
        seen[folded] = entry.path
    return None


def _protection_problem(manifest: Manifest, plan: RoundPlan) -> Rejection | None:
    exact = GlobSet(plan.protected_paths)
    folded = GlobSet(tuple(fold_path(pattern) for pattern in plan.protected_paths))
    for entry in manifest.entries:
        if exact.matches(entry.path):
            return Rejection("protected-path", f"{entry.path!r} is protected")
        if folded.matches(fold_path(entry.path)):
            return Rejection(
                "protected-path", f"{entry.path!r} differs from a protected path by spelling only"
            )
    return None


def _scope_problem(manifest: Manifest, plan: RoundPlan) -> Rejection | None:
    own = GlobSet(plan.lane(manifest.lane).globs)
    others = [(lane.id, GlobSet(lane.globs)) for lane in plan.lanes if lane.id != manifest.lane]
    for entry in manifest.entries:
        for lane_id, globs in others:
            if globs.matches(entry.path):
                return Rejection("scope", f"{entry.path!r} belongs to lane {lane_id}")
        if not own.matches(entry.path):
            return Rejection("scope", f"{entry.path!r} is outside the lane's globs")
    return None


def _submodule_problem(manifest: Manifest, submodules: Collection[str]) -> Rejection | None:
    for entry in manifest.entries:
        for submodule in submodules:
            if entry.path == submodule or entry.path.startswith(f"{submodule}/"):
                return Rejection("submodule", f"{entry.path!r} changes the submodule {submodule!r}")
    return None


def _link_problem(link_targets: Mapping[str, str]) -> Rejection | None:
    for path, target in sorted(link_targets.items()):
        if target.startswith("/"):
            return Rejection("symlink", f"{path!r} links to an absolute path")
        reached = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        if reached == ".." or reached.startswith("../") or path_problem(reached) is not None:
            return Rejection("symlink", f"{path!r} links out of the checkout or to a reserved name")
    return None
