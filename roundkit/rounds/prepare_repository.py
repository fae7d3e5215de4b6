"""What ``prepare`` reads of the campaign repository, and why it may refuse it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from roundkit.core.canonical import digest_bytes
from roundkit.core.errors import Refusal
from roundkit.core.git import Repository, TreeEntry
from roundkit.core.globs import GlobSet, PathIndex
from roundkit.core.process import CommandFailed
from roundkit.models.campaign import CampaignPlan
from roundkit.rules.round_facts import Place
from roundkit.rules.scope import campaign_commands, missing_script

_SUBMODULE_MODE = "160000"
_SHOWN_PATHS = 5
_BEFORE_BUILD = ("provision", "build")


@dataclass(frozen=True)
class Survey:
    """The campaign repository at the incumbent.

    Attributes:
        repository: The repository.
        incumbent: I0.
        tree: Its tree id.
        entries: Its files.
    """

    repository: Repository
    incumbent: str
    tree: str
    entries: tuple[TreeEntry, ...]

    @cached_property
    def paths(self) -> PathIndex:
        """Paths of the incumbent's files."""
        return PathIndex(entry.path for entry in self.entries)

    def digests(self, globs: GlobSet, but_for: GlobSet) -> dict[str, str]:
        """Return the SHA-256 of each file that some globs match and others do not."""
        chosen = [path for path in globs.select(self.paths) if not but_for.matches(path)]
        return {path: digest_bytes(self.repository.read_blob(self.incumbent, path)) for path in chosen}


def survey_repository(
    root: Path, campaign: CampaignPlan, at: Place, *, excepted: Sequence[Path]
) -> tuple[Survey | None, list[Refusal]]:
    """Read the repository at the incumbent and list what stands against using it.

    Args:
        root: The repository's folder.
        campaign: The campaign plan.
        at: Names a place in the campaign file.
        excepted: Files and folders that may differ from the last commit.
    """
    repository = Repository(root)
    problem = not_usable(repository, at("repository", "path"))
    if problem is not None:
        return None, [problem]
    refusals = [*_branch_problems(repository, campaign, at), *_dirt(repository, excepted, at)]
    incumbent = campaign.search_state.incumbent_revision
    if repository.resolve(incumbent) != incumbent:
        refusals.append(
            Refusal(
                "incumbent-missing",
                f"the repository has no commit {incumbent}",
                at("search_state", "incumbent_revision"),
                "name a commit of this repository by its whole id (`git rev-parse HEAD`), or fetch it",
            )
        )
        return None, refusals
    survey = Survey(repository, incumbent, repository.tree_id(incumbent), tuple(repository.tree(incumbent)))
    refusals += [*_tree_problems(survey, at), *_command_problems(survey, campaign, at)]
    return survey, refusals


def not_usable(repository: Repository, place: str) -> Refusal | None:
    """Say why a folder cannot be the repository of a campaign, if there is a reason.

    Args:
        repository: The folder.
        place: What names it, in a file or on the command line.
    """
    root = repository.path
    if not root.is_dir():
        return Refusal("not-a-repository", f"there is no folder {root}", place, "correct the path")
    bare = repository.git("rev-parse", "--is-bare-repository", check=False)
    if bare.exit_code != 0:
        return Refusal(
            "not-a-repository", f"{root} is not in a git repository", place, "correct the path, or `git init`"
        )
    if bare.text == "true":
        return Refusal(
            "bare-repository", f"{root} has no working tree", place, "clone it, and name the clone here"
        )
    top = repository.git("rev-parse", "--show-toplevel", check=False)
    if top.exit_code != 0 or Path(top.text) != root:
        return Refusal(
            "not-a-repository",
            f"{root} is not the top of a working tree",
            place,
            f"name the top: {top.text or 'the folder that holds .git'}",
        )
    if not repository.git("rev-list", "--max-count=1", "--all", check=False).text:
        return Refusal("empty-repository", f"{root} has no commit", place, "commit the program first")
    return None


def _branch_problems(repository: Repository, campaign: CampaignPlan, at: Place) -> Iterator[Refusal]:
    branch = campaign.repository.branch
    if not repository.branch_exists(branch):
        yield Refusal(
            "branch-missing",
            f"the repository has no branch {branch!r}",
            at("repository", "branch"),
            "name the branch that the campaign improves",
        )


def uncommitted(repository: Repository, excepted: Sequence[Path]) -> list[str]:
    """Return the paths that differ from the last commit, without some files and folders."""
    allowed = {
        path.relative_to(repository.path).as_posix() for path in excepted if _is_below(path, repository)
    }
    return [
        path
        for path in repository.dirty_paths()
        if path not in allowed and not any(path.startswith(f"{folder}/") for folder in allowed)
    ]


def _dirt(repository: Repository, excepted: Sequence[Path], at: Place) -> Iterator[Refusal]:
    dirty = uncommitted(repository, excepted)
    if dirty:
        yield Refusal(
            "repository-dirty",
            f"changed or untracked: {some(dirty)}",
            at("repository", "path"),
            "commit, stash or remove them: a round starts from a commit and from nothing else",
        )


def _is_below(path: Path, repository: Repository) -> bool:
    return path.is_relative_to(repository.path)


def _tree_problems(survey: Survey, at: Place) -> Iterator[Refusal]:
    submodules = [entry.path for entry in survey.entries if entry.mode == _SUBMODULE_MODE]
    if submodules:
        yield Refusal(
            "submodule",
            f"the incumbent has submodules: {some(submodules)}",
            at("repository", "path"),
            "checkouts hold the repository's own files only: commit the submodule's files instead",
        )


def _command_problems(survey: Survey, campaign: CampaignPlan, at: Place) -> Iterator[Refusal]:
    paths = survey.paths
    for keys, argv in campaign_commands(campaign):
        missing = missing_script(
            argv, paths, built=campaign.build is not None and keys[0] not in _BEFORE_BUILD
        )
        if missing is not None:
            yield Refusal(
                "instrument-missing",
                f"{missing!r} is not a file of the incumbent",
                at(*keys),
                "commit it, or correct the command; paths are relative to the repository's top",
            )
    hidden = campaign.hidden_paths
    for position, glob in enumerate(hidden):
        if not GlobSet((glob,)).select(paths):
            yield Refusal(
                "glob-matches-nothing",
                f"{glob!r} hides no file of the incumbent",
                at("hidden_paths", position),
                "correct it: a misspelt hold-out is visible to every lane",
            )
    yield from _validator_problems(survey, campaign, at)


def _validator_problems(survey: Survey, campaign: CampaignPlan, at: Place) -> Iterator[Refusal]:
    for path, wanted in campaign.test_plan.validator_hashes.items():
        try:
            found = digest_bytes(survey.repository.read_blob(survey.incumbent, path))
        except CommandFailed:
            found = "missing"
        if found != wanted:
            yield Refusal(
                "validator-hash",
                f"{path!r} is {found} at the incumbent, and the test plan pins {wanted}",
                at("test_plan", "validator_hashes", path),
                "restore the validator, or pin its new digest on purpose",
            )


def some(paths: Sequence[str]) -> str:
    """Name the first few paths, and how many there are besides."""
    shown = ", ".join(repr(path) for path in paths[:_SHOWN_PATHS])
    left = len(paths) - _SHOWN_PATHS
    return f"{shown} and {left} more" if left > 0 else shown
