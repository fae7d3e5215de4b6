"""Path globs: one meaning for plan, wrapper, intake and audit.

A glob is anchored at the repository's root. ``*`` and ``?`` stay within one folder, ``**`` crosses
folders, ``{a,b}`` and ``[…]`` work as in a shell, a leading dot needs no special treatment, and a
glob that ends in ``/`` means everything below that folder.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from wcmatch import glob as wcglob

_MAGIC = "*?[]{}\\"
_LAST_CHARACTER = "\U0010ffff"
# What wcmatch puts before a wildcard so that it matches no "." or ".." component; git's paths have none.
_DOT_GUARDS = (
    (r"(?:(?!(?:[/]|^)(?:\.{1,2})(?:$|[/])).)*?", ".*?"),
    (r"(?!\.{1,2}(?:$|[/]))", ""),
)
_FLAGS = wcglob.GLOBSTAR | wcglob.DOTGLOB | wcglob.BRACE | wcglob.FORCEUNIX | wcglob.CASE


def glob_regex(pattern: str) -> str:
    """Translate one glob into a regular expression that matches a whole relative path.

    The expression uses only what Python 3.8's ``re`` understands, since the lane wrapper matches with it.
    """
    expanded = f"{pattern}**" if pattern.endswith("/") else pattern
    included, _ = wcglob.translate(expanded, flags=_FLAGS)
    return "|".join(f"(?:{regex})" for regex in included)


def exact_glob(path: str) -> str:
    """Return the glob that matches exactly one path."""
    return str(wcglob.escape(path, unix=True))


@dataclass(frozen=True)
class GlobSet:
    """Several globs compiled into one pattern.

    Attributes:
        patterns: The globs as their owner wrote them.
    """

    patterns: tuple[str, ...]

    @cached_property
    def _compiled(self) -> re.Pattern[str] | None:
        return re.compile("|".join(map(glob_regex, self.patterns))) if self.patterns else None

    def matches(self, path: str) -> bool:
        """Say whether any glob matches the relative path."""
        return self._compiled is not None and self._compiled.match(path) is not None

    def select(self, paths: Iterable[str]) -> list[str]:
        """Return the paths that any glob matches, in the order given."""
        if isinstance(paths, PathIndex):
            return paths.matching(self.patterns)
        if self._compiled is None:
            return []
        match = self._compiled.match
        return [path for path in paths if match(path)]


class PathIndex(Collection[str]):
    """The files of a tree, sorted, so that a glob looks only at paths that can match it.

    A glob with a fixed beginning (``src/lexer/**``) looks at that folder alone, one with a fixed end
    (``**/conftest.py``) compares ends first; a regular expression decides what is left. Answers are kept,
    since one round asks for the same globs several times over.

    Args:
        paths: Paths as git has them: relative, without ``.`` and ``..``. Each path once.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = sorted(paths)
        self._found: dict[str, Sequence[str]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __contains__(self, path: object) -> bool:
        return path in self._known

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self._paths)

    def matching(self, patterns: Iterable[str]) -> list[str]:
        """Return the paths that any of the globs matches, sorted."""
        return sorted(self.reached(patterns))

    def reached(self, patterns: Iterable[str]) -> set[str]:
        """Return the paths that any of the globs matches, unordered."""
        wanted = dict.fromkeys(patterns)
        self._search_all([pattern for pattern in wanted if pattern not in self._found])
        return set().union(*(self._found[pattern] for pattern in wanted))

    def _search_all(self, patterns: Sequence[str]) -> None:
        globs = [_Glob.of(pattern) for pattern in patterns]
        ends = tuple({glob.suffix for glob in globs if glob.suffix and not glob.prefix})
        # All of the tree is gone through once, however many globs fix nothing but the end.
        ending = [path for path in self._paths if path.endswith(ends)] if ends else []
        for pattern, glob in zip(patterns, globs, strict=True):
            paths = self._below(glob.prefix) if glob.prefix else ending if glob.suffix else self._paths
            self._found[pattern] = glob.select(paths)

    def _below(self, prefix: str) -> list[str]:
        first = bisect_left(self._paths, prefix)
        return self._paths[first : bisect_left(self._paths, prefix + _LAST_CHARACTER, first)]


@dataclass(frozen=True)
class _Glob:
    """One glob, and how every path that it matches begins and ends, as far as that is fixed."""

    pattern: str
    prefix: str
    suffix: str

    @classmethod
    def of(cls, pattern: str) -> _Glob:
        pattern = f"{pattern}**" if pattern.endswith("/") else pattern
        magic = [index for index, letter in enumerate(pattern) if letter in _MAGIC]
        first, last = (magic[0], magic[-1] + 1) if magic else (len(pattern), 0)
        # Doubled slashes match one, and "**/name" matches "name" as well.
        prefix, suffix = (re.sub("//+", "/", part) for part in (pattern[:first], pattern[last:]))
        return cls(pattern, prefix, suffix.lstrip("/"))

    def select(self, paths: Sequence[str]) -> Sequence[str]:
        """Return what the glob matches of paths that begin as it does."""
        suffix = self.suffix
        if suffix:
            paths = [path for path in paths if path.endswith(suffix)]
        if self._says_all():
            return paths
        match = re.compile(_plain_regex(self.pattern)).match
        if not self._folder_decides():
            return [path for path in paths if match(path)]
        # Paths are sorted by folder, nearly: one match stands for all files beside it.
        found: dict[str, bool] = {}
        chosen = []
        for path in paths:
            folder = path.rpartition("/")[0]
            fits = found.get(folder)
            if fits is None:
                fits = found[folder] = match(path) is not None
            if fits:
                chosen.append(path)
        return chosen

    def _folder_decides(self) -> bool:
        """Say whether of two paths in one folder that end in the suffix, the glob matches both or none."""
        last = self.pattern.rpartition("/")[2]
        return last in {"**", f"*{self.suffix}"} and not set("[]{}\\").intersection(self.pattern)

    def _says_all(self) -> bool:
        """Say whether beginning and end decide, as in ``src/**`` and ``src/**/*.py``."""
        if self.prefix and not self.prefix.endswith("/"):
            return False
        whole = {f"{self.prefix}**", f"{self.prefix}**/*{self.suffix}"}
        return self.pattern in whole and "/" not in self.suffix


def _plain_regex(pattern: str) -> str:
    regex = glob_regex(pattern)
    for guard, plain in _DOT_GUARDS:
        regex = regex.replace(guard, plain)
    return regex
