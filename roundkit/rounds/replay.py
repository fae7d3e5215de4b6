"""A whole round from a range of commits: lanes are groups of commits that change disjoint files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundkit.core.errors import Refused, refuse
from roundkit.core.files import atomic_write
from roundkit.core.git import Repository
from roundkit.core.globs import exact_glob
from roundkit.core.relpath import path_problem
from roundkit.core.yamlfile import dump_yaml
from roundkit.rounds.replay_files import (
    ReplayOptions,
    ReplayRange,
    fill_campaign,
    replay_campaign,
    replay_draft,
)
from roundkit.rounds.template_files import checked_campaign, program_refusals
from roundkit.rules.replay_lanes import CommitChange, CommitGroup, group_commits
from roundkit.rules.scope import protected_globs, protected_reach


@dataclass(frozen=True)
class Dropped:
    """Commits that are not replayed, and why."""

    commits: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class ReplayRound:
    """The two files of a round that the ordinary ``prepare`` takes, and what they hold.

    Attributes:
        sources: What each lane replays, by lane id.
        commits: The commits behind each lane, by lane id.
        dropped: What is not replayed.
    """

    campaign_file: Path
    round_file: Path
    campaign: dict[str, Any]
    draft: dict[str, Any]
    sources: dict[str, tuple[str, ...]]
    commits: dict[str, tuple[str, ...]]
    dropped: tuple[Dropped, ...]


def plan_replay(repository: Path, base: str, head: str, work: Path, options: ReplayOptions) -> ReplayRound:
    """Write ``campaign.yaml`` and ``round.yaml`` for the commits of a range.

    Commits are taken along first parents, oldest first; a merge counts as one change. A lane's globs are
    exactly the paths that its commits change.

    Args:
        repository: Top of the working tree.
        base: The incumbent; an ancestor of ``head``.
        head: The last commit.
        work: Folder for the two files, outside the repository.
        options: What is measured.

    Raises:
        Refused: ``range``, ``branch-missing``, ``work-inside-repository``, ``command-missing`` or
            ``nothing-to-replay``.
    """
    repository, work = repository.resolve(), work.resolve()
    if work.is_relative_to(repository):
        raise refuse(
            "work-inside-repository",
            f"{work} lies in {repository}",
            place=str(work),
            remedy="choose a folder outside of the repository",
        )
    span = _range(Repository(repository), base, head)
    campaign = replay_campaign(span, options)
    # Measured on this machine at once: what is missing here would only be found by the first trial.
    model = checked_campaign(campaign, "the replayed campaign")
    if missing := tuple(program_refusals(model, lambda step, *_: f"--{step}")):
        raise Refused(missing)
    groups, dropped = _lanes(span, campaign, options)
    if not groups:
        reasons = "; ".join(f"{len(row.commits)} commits: {row.reason}" for row in dropped)
        raise refuse(
            "nothing-to-replay",
            f"no commit of {base}..{head} can be replayed ({reasons or 'there is none'})",
            place=f"{base}..{head}",
            remedy="choose another range; what the benchmark names cannot be replayed",
        )
    names = {f"L{number}": group for number, group in enumerate(groups, 1)}
    sources = {lane: _sources(span, group, options) for lane, group in names.items()}
    fill_campaign(campaign, names)
    draft = replay_draft(span, names, sources, options)
    work.mkdir(parents=True, exist_ok=True)
    campaign_file, round_file = work / "campaign.yaml", work / "round.yaml"
    atomic_write(campaign_file, dump_yaml(campaign))
    atomic_write(round_file, dump_yaml(draft))
    commits = {lane: tuple(commit.commit for commit in group.commits) for lane, group in names.items()}
    return ReplayRound(campaign_file, round_file, campaign, draft, sources, commits, tuple(dropped))


def _range(repository: Repository, base: str, head: str) -> ReplayRange:
    first, last = repository.resolve(base), repository.resolve(head)
    place = f"{base}..{head}"
    if first is None or last is None:
        missing = base if first is None else head
        raise refuse(
            "range", f"{repository.path} has no commit {missing!r}", place=place, remedy="name two commits"
        )
    if repository.git("merge-base", "--is-ancestor", first, last, check=False).exit_code != 0:
        raise refuse(
            "range",
            f"{base} is no ancestor of {head}",
            place=place,
            remedy=f"start from `git merge-base {base} {head}`",
        )
    changed = _changed(repository, first, last)
    return ReplayRange(
        repository, first, last, _branch(repository), frozenset(repository.paths(first)), changed
    )


def _branch(repository: Repository) -> str:
    current = repository.current_branch()
    if current is not None:
        return current
    branches = repository.git("for-each-ref", "--count=1", "--format=%(refname:lstrip=2)", "refs/heads").text
    if not branches:
        raise refuse(
            "branch-missing",
            f"{repository.path} has no branch",
            place=str(repository.path),
            remedy="make one: `git branch main`",
        )
    return branches


def _changed(repository: Repository, before: str, after: str) -> frozenset[str]:
    rows = repository.git("diff-tree", "-r", "-z", "--name-only", "--no-renames", before, after).stdout
    return frozenset(row.decode("utf-8", "surrogateescape") for row in rows.split(b"\0") if row)


def _commits(span: ReplayRange) -> list[CommitChange]:
    walk = ("-z", "--first-parent", "--reverse", "--format=%H %s", f"{span.base}..{span.head}")
    listed = span.repository.git("log", *walk).stdout.decode("utf-8", "replace")
    # A subject may hold form feeds and line separators, which end no row.
    rows = [row.partition(" ") for row in listed.split("\0") if row]
    return [
        CommitChange(
            commit, " ".join(subject.split()), tuple(sorted(_changed(span.repository, f"{commit}^1", commit)))
        )
        for commit, _, subject in rows
    ]


def _lanes(
    span: ReplayRange, campaign: dict[str, Any], options: ReplayOptions
) -> tuple[list[CommitGroup], list[Dropped]]:
    commits = _commits(span)
    kept: list[CommitGroup] = []
    dropped = [Dropped((commit.commit,), "changes no file") for commit in commits if not commit.paths]
    model = checked_campaign(campaign, "the replayed campaign")
    protected = protected_globs(model, (), span.base_paths)
    for group in group_commits(commits):
        problem = _problem(span, group, protected, each_commit=options.each_commit)
        if problem is None:
            kept.append(group)
        else:
            dropped.append(Dropped(tuple(commit.commit for commit in group.commits), problem))
    return kept, dropped


def _problem(
    span: ReplayRange, group: CommitGroup, protected: tuple[str, ...], *, each_commit: bool
) -> str | None:
    unusable = [path for path in group.paths if path_problem(path) is not None]
    if unusable:
        return f"path {unusable[0]!r} {path_problem(unusable[0])}"
    globs = [exact_glob(path) for path in group.paths]
    reached = protected_reach(globs, protected, group.paths)
    if reached:
        return f"changes the protected {', '.join(map(repr, reached))}"
    if not each_commit and not span.changed.intersection(group.paths):
        return "is undone within the range"
    return None


def _sources(span: ReplayRange, group: CommitGroup, options: ReplayOptions) -> tuple[str, ...]:
    if options.each_commit:
        return tuple(commit.commit for commit in group.commits)
    # Restricted to the lane's own paths, the whole range is what its commits come to.
    return (f"{span.base}..{span.head}",)
