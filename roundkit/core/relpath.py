"""Relative paths that come from elsewhere: which ones may be laid into a checkout at all."""

from __future__ import annotations

import unicodedata

_MAX_PATH_BYTES = 1024
_MAX_DEPTH = 64


def path_problem(path: str) -> str | None:
    """Say what is wrong with a candidate's relative path, or return None when it is safe.

    A safe path is relative, in POSIX form, normalised, valid UTF-8 without control characters,
    of bounded length and depth, and never enters ``.git`` or ``.roundkit`` in any letter case.
    """
    problem = _encoding_problem(path)
    if problem is not None:
        return problem
    parts = path.split("/")
    if path.startswith("/"):
        return "is absolute"
    if len(parts) > _MAX_DEPTH:
        return f"is nested more than {_MAX_DEPTH} folders deep"
    for part in parts:
        if part in {"", ".", ".."}:
            return f"is not normalised (component {part!r})"
        if is_reserved_name(part):
            return f"enters {part!r}, which is not the candidate's"
    return None


def is_reserved_name(part: str) -> bool:
    """Say whether one path component names git's or roundkit's own folder, whatever its spelling."""
    folded = fold_path(part).rstrip(". ")
    return folded in {".git", ".roundkit", "git~1"}


def fold_path(path: str) -> str:
    """Return the form in which two paths that some file system would confuse are equal."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", path).casefold())


def _encoding_problem(path: str) -> str | None:
    try:
        encoded = path.encode("utf-8")
    except UnicodeEncodeError:
        return "is not valid UTF-8"
    if not path:
        return "is empty"
    if len(encoded) > _MAX_PATH_BYTES:
        return f"is longer than {_MAX_PATH_BYTES} bytes"
    if any(unicodedata.category(letter) in {"Cc", "Cf", "Zl", "Zp"} for letter in path):
        return "holds a control character"
    if "\\" in path:
        return "holds a backslash"
    return None
