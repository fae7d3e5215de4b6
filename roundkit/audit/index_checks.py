"""The first checks of evidence that an index binds: the index is the published one, the files are its own."""

from __future__ import annotations

from collections.abc import Callable

from roundkit.audit.findings import Check, Disagreement, conclude
from roundkit.audit.guard import failures
from roundkit.core.text import counted
from roundkit.evidence.problem import EvidenceProblem


def check_index(name: str, digest: str, expect: str | None) -> list[Check]:
    """Check an index against the digest that was published elsewhere.

    Args:
        name: The index's file.
        digest: Its digest.
        expect: The published one; None where none was given.
    """
    if expect is None:
        return [Check("index", True, name, f"digest {digest}; none was given to expect")]
    found = [Disagreement(name, f"digest {digest}, expected {expect}")]
    return conclude("index", [] if digest == expect else found, "digest as expected")


def check_files(verify: Callable[[], None], count: int) -> list[Check]:
    """Check the bytes of every file.

    Args:
        verify: Raises what does not agree.
        count: How many files there are.
    """
    try:
        verify()
    except EvidenceProblem as found:
        return list(failures("files", found))
    return [Check("files", True, "", f"{counted(count, 'file')}, every size and SHA-256")]
