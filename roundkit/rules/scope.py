"""Which paths a lane may change: overlaps, reach into protected paths, empty globs."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from roundkit.core.globs import PathIndex, exact_glob, glob_regex
from roundkit.core.relpath import fold_path
from roundkit.models.campaign import CampaignPlan, Command

_MAGIC = frozenset("*?[]{}!\\")

TRICK_FILES = (
    "**/conftest.py",
    "**/sitecustomize.py",
    "**/usercustomize.py",
    "**/*.pth",
    "**/*.pyc",
    "**/.gitmodules",
    "**/.gitattributes",
)
"""Files that change how others are imported, tested or checked out; protected in every round."""

_READ_BY_TOOL = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "cmake": ("CMakeLists.txt",),
    "ninja": ("build.ninja",),
    "meson": ("meson.build",),
    "cargo": ("Cargo.toml", "Cargo.lock", "build.rs"),
    "npm": ("package.json", "package-lock.json"),
    "pip": ("pyproject.toml", "setup.py", "setup.cfg"),
    "build": ("pyproject.toml", "setup.py", "setup.cfg"),
    "pytest": ("pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg"),
    "tox": ("tox.ini",),
}
"""What a build or test tool reads by itself, without being told on the command line."""


@dataclass(frozen=True)
class Overlap:
    """Two lanes that may both change the same paths."""

    first: str
    second: str
    paths: tuple[str, ...]


def is_literal(glob: str) -> bool:
    """Say whether a glob names one path and nothing else."""
    return not glob.endswith("/") and not _MAGIC.intersection(glob)


def overlaps(lanes: Sequence[tuple[str, Sequence[str]]], paths: Iterable[str]) -> list[Overlap]:
    """Find every pair of lanes whose globs match a common path.

    Args:
        lanes: Id and globs of each lane.
        paths: Files of the incumbent. Files that a lane names outright count although they do not exist yet.
    """
    index = as_index(paths)
    named = PathIndex(glob for _, globs in lanes for glob in globs if is_literal(glob))
    reached = [(lane, index.reached(globs) | named.reached(globs)) for lane, globs in lanes]
    return [
        Overlap(first, second, tuple(sorted(mine & theirs)))
        for (first, mine), (second, theirs) in combinations(reached, 2)
        if not mine.isdisjoint(theirs)
    ]


def protected_files(protected: Sequence[str], paths: Iterable[str]) -> PathIndex:
    """Return the files that protected globs match, spelling variants of them included.

    Args:
        protected: Globs of what no lane may change.
        paths: Files of the incumbent.
    """
    index = as_index(paths)
    folded = tuple(fold_path(pattern) for pattern in protected)
    variants = _folded_otherwise(index)
    plain = [path for path in index.reached(folded) if path not in variants]
    reached = PathIndex(set(variants.values())).reached(folded)
    odd = [path for path, variant in variants.items() if variant in reached]
    return PathIndex({*index.reached(protected), *plain, *odd})


def _folded_otherwise(paths: Collection[str]) -> dict[str, str]:
    """Return the paths that folding changes, and what it makes of each."""
    # No letter composes with a NUL, so folding all paths at once folds each of them.
    whole = "\0".join(paths)
    folded = fold_path(whole)
    if folded == whole:
        return {}
    pairs = zip(paths, folded.split("\0"), strict=True)
    return {path: variant for path, variant in pairs if variant != path}


def protected_reach(globs: Sequence[str], protected: Sequence[str], paths: Iterable[str]) -> list[str]:
    """List the protected paths that a lane's globs match, spelling variants of them included.

    Args:
        globs: The lane's globs.
        protected: Globs of what no lane may change.
        paths: Files of the incumbent, or those of them that are protected; files that the lane names
            outright count too.
    """
    named = [glob for glob in globs if is_literal(glob)]
    return sorted(protected_files(protected, paths).reached(globs).union(protected_files(protected, named)))


def empty_globs(globs: Iterable[str], paths: Iterable[str]) -> list[str]:
    """List the globs that match no file of the incumbent."""
    index = as_index(paths)
    return [glob for glob in globs if not index.reached((glob,))]


def as_index(paths: Iterable[str]) -> PathIndex:
    """Return the paths indexed; an index stays as it is."""
    return paths if isinstance(paths, PathIndex) else PathIndex(paths)


def submission_regex(lane: str, lanes: Mapping[str, Sequence[str]], protected: Sequence[str]) -> str:
    """Return the expression for what a lane may submit: its globs, less protected paths and other lanes'."""
    denied = [*protected, *(glob for other, globs in lanes.items() if other != lane for glob in globs)]
    refused = f"(?!{_any_of(denied)})" if denied else ""
    return f"{refused}(?:{_any_of(lanes[lane])})"


def _any_of(globs: Sequence[str]) -> str:
    return "|".join(map(glob_regex, globs))


def named_files(argv: Sequence[str], paths: Collection[str]) -> list[str]:
    """List the files of the incumbent that a command names, runs as a module, or reads by itself.

    Args:
        argv: The command; ``sh -c`` texts and ``--option=path`` are looked into.
        paths: Files of the incumbent.
    """
    known = paths if isinstance(paths, (set, frozenset, PathIndex)) else set(paths)
    words = _words(argv)
    candidates = [posixpath.normpath(word) for word in words if word]
    for before, word in pairwise(words):
        if before == "-m":
            candidates += _module_files(word)
    tools = {posixpath.basename(word) for word in words}
    candidates += [file for tool in sorted(tools & _READ_BY_TOOL.keys()) for file in _READ_BY_TOOL[tool]]
    return sorted({path for path in candidates if path in known})


def missing_script(argv: Sequence[str], paths: Collection[str], *, built: bool) -> str | None:
    """Return the file that a command needs and the incumbent lacks, or None.

    Args:
        argv: The command.
        paths: Files of the incumbent.
        built: Whether a build step comes first, which may make the program (but no Python script).
    """
    program = argv[0]
    if not _is_python(program):
        relative = "/" in program and not program.startswith("/")
        return program if relative and not built and posixpath.normpath(program) not in paths else None
    for word in argv[1:]:
        if word in {"-c", "-m"} or word.startswith(("/", "{")):
            return None
        if not word.startswith("-"):
            return word if posixpath.normpath(word) not in paths else None
    return None


def _is_python(program: str) -> bool:
    return program == "{python}" or posixpath.basename(program).startswith("python")


def _words(argv: Sequence[str]) -> list[str]:
    words: list[str] = []
    for argument in argv:
        words.append(argument)
        if "=" in argument:
            words.append(argument.partition("=")[2])
        if " " in argument:
            words += _shell_words(argument)
    return words


def _shell_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _module_files(module: str) -> list[str]:
    stem = module.replace(".", "/")
    parents = [stem.rsplit("/", depth)[0] for depth in range(1, stem.count("/") + 1)]
    return [
        f"{stem}.py",
        f"{stem}/__init__.py",
        f"{stem}/__main__.py",
        *(f"{up}/__init__.py" for up in parents),
    ]


def protected_globs(
    campaign: CampaignPlan, further: Sequence[str], paths: Collection[str]
) -> tuple[str, ...]:
    """Return the globs that no lane may reach: the owner's, hold-outs, what commands name, trick files.

    Args:
        campaign: The campaign plan.
        further: Globs that the round, or its own files, add.
        paths: Files of the incumbent.
    """
    named = [path for _, argv in campaign_commands(campaign) for path in named_files(argv, paths)]
    exact = [exact_glob(path) for path in named]
    owner = (*campaign.protected_paths, *campaign.hidden_paths, *further)
    return tuple(dict.fromkeys([*owner, *exact, *TRICK_FILES]))


def campaign_commands(campaign: CampaignPlan) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """List every command of a campaign as (keys that lead to it, argv)."""
    benchmark = campaign.benchmark
    rows = [
        (("benchmark", "argv"), benchmark.argv),
        (("benchmark", "driver"), benchmark.driver),
        (("benchmark", "worker"), benchmark.worker),
    ]
    for name in ("validator", "provision", "build", "smoke"):
        command: Command | None = getattr(campaign, name)
        rows.append(((name, "argv"), command.argv if command else None))
    return [(keys, argv) for keys, argv in rows if argv is not None]
