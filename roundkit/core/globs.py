"""Path globs: one meaning for plan, wrapper, intake and audit.

A glob is anchored at the repository's root. ``*`` and ``?`` stay within one folder, ``**`` crosses
folders, ``{a,b}`` and ``[…]`` work as in a shell, a leading dot needs no special treatment, and a
glob that ends in ``/`` means everything below that folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from wcmatch import glob as wcglob

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
        if self._compiled is None:
            return []
        match = self._compiled.match
        return [path for path in paths if match(path)]
