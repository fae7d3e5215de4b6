"""Whether a candidate's files may be laid on the incumbent: paths, scope, protection, links, sizes."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from roundkit.core.globs import GlobSet
from roundkit.core.relpath import fold_path, is_reserved_link, path_problem, text_problem
from roundkit.models.lane import Manifest
from roundkit.models.ledger import RejectCause
from roundkit.models.round_plan import RoundPlan

# XFS keeps no longer target of a link; other file systems take more.
_MAX_TARGET_BYTES = 1023
# Linux follows no more links on the way to one file.
_MAX_LINKS = 40


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
    standing_links: Mapping[str, str] | None = None,
) -> Rejection | None:
    """Return the first reason against a candidate, or None.

    Args:
        manifest: The candidate's paths.
        plan: The frozen plan; globs come from nowhere else.
        link_targets: Target of each symbolic link in the manifest, by path.
        submodules: Paths of submodules in the incumbent.
        standing_links: Target of each symbolic link in the incumbent, by path, where they are known.
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
        or _link_problem(link_targets or {}, _left_standing(manifest, standing_links or {}))
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


def _left_standing(manifest: Manifest, standing_links: Mapping[str, str]) -> dict[str, str]:
    """Return the incumbent's links that a candidate neither changes nor deletes."""
    changed = {entry.path for entry in manifest.entries}
    return {path: target for path, target in standing_links.items() if path not in changed}


def _link_problem(link_targets: Mapping[str, str], standing: Mapping[str, str]) -> Rejection | None:
    links = {**standing, **link_targets}
    for path, target in sorted(link_targets.items()):
        if is_reserved_link(path):
            return Rejection("symlink", f"{path!r} is a name that git takes for no link")
        if target.startswith("/"):
            return Rejection("symlink", f"{path!r} links to an absolute path")
        problem = text_problem(target)
        if problem is None and len(target.encode("utf-8")) > _MAX_TARGET_BYTES:
            problem = f"is longer than {_MAX_TARGET_BYTES} bytes"
        if problem is not None:
            return Rejection("symlink", f"the target of the link {path!r} {problem}")
        reached = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        followed = _followed(path, links)
        if path_problem(reached) is not None or followed is None or path_problem(followed) is not None:
            return Rejection("symlink", f"{path!r} links out of the checkout or to a reserved name")
    return None


def _followed(path: str, links: Mapping[str, str]) -> str | None:
    """Return where a link leads through all links there are; None where it leaves or never ends."""
    here = path.split("/")[:-1]
    ahead = list(reversed(links[path].split("/")))
    left = _MAX_LINKS
    while ahead:
        part = ahead.pop()
        if part == "..":
            if not here:
                return None
            here.pop()
        elif part not in {"", "."}:
            target = links.get("/".join((*here, part)))
            if target is None:
                here.append(part)
                continue
            left -= 1
            if left == 0 or target.startswith("/"):
                return None
            ahead += reversed(target.split("/"))
    return "/".join(here)
