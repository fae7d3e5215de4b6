"""Relative paths that come from elsewhere: which ones may be laid into a checkout at all."""

from __future__ import annotations

import re
import unicodedata

# Linux takes 4,096 bytes for a whole path: three quarters are left for the folders that a round makes above.
MAX_PATH_BYTES = 1024
# What every common file system of Linux takes for one component.
MAX_NAME_BYTES = 255
_MAX_DEPTH = 64
# By which NTFS would find `.gitmodules` as well: git leaves links of these names out of a tree.
_GITMODULES = re.compile(
    r"(?:\.gitmodules|gitmod~[1-4]|(?=.{8}(?:[. :]|\Z))g(?:i(?:7(?:e(?:ba?)?)?)?)?~[1-9][0-9]*)[. ]*(?::.*)?"
)


def path_problem(path: str) -> str | None:
    """Say what is wrong with a candidate's relative path, or return None when it is safe.

    A safe path is relative, in POSIX form, normalised, valid UTF-8 without control characters,
    of bounded length and depth, and never enters ``.git`` or ``.roundkit`` in any letter case.
    """
    problem = text_problem(path)
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
        if len(part.encode("utf-8")) > MAX_NAME_BYTES:
            return f"has a component of more than {MAX_NAME_BYTES} bytes"
    return None


def is_reserved_name(part: str) -> bool:
    """Say whether one path component names git's or roundkit's own folder, whatever its spelling.

    NTFS takes what follows a colon for a stream of the file, so that git leaves such paths out of a tree.
    """
    folded = fold_path(part).partition(":")[0].rstrip(". ")
    return folded in {".git", ".roundkit", "git~1"}


def is_reserved_link(path: str) -> bool:
    """Say whether git takes no link of that name: some file system would find `.gitmodules` by it."""
    return _GITMODULES.fullmatch(fold_path(path.rpartition("/")[2])) is not None


def fold_path(path: str) -> str:
    """Return the form in which two paths that some file system would confuse are equal."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", path).casefold())


def text_problem(path: str) -> str | None:
    """Say why a text can be no path at all, of a file or of what a link leads to; None when it can."""
    try:
        encoded = path.encode("utf-8")
    except UnicodeEncodeError:
        return "is not valid UTF-8"
    if not path:
        return "is empty"
    if len(encoded) > MAX_PATH_BYTES:
        return f"is longer than {MAX_PATH_BYTES} bytes"
    if any(unicodedata.category(letter) in {"Cc", "Cf", "Zl", "Zp"} for letter in path):
        return "holds a control character"
    if "\\" in path:
        return "holds a backslash"
    return None
