"""When a watched file has collapsed: what is left of its lines against HEAD."""

from __future__ import annotations


def line_count(data: bytes) -> int:
    """Return the number of lines; a last one without an end counts."""
    return data.count(b"\n") + (bool(data) and not data.endswith(b"\n"))


def has_collapsed(head: bytes, now: bytes | None, least: float) -> bool:
    """Say whether a watched file lost too much to be committed.

    Args:
        head: Its content at HEAD.
        now: Its content in the tree; null where it is gone.
        least: Share of HEAD's lines that it must keep.
    """
    before = line_count(head)
    return before > 0 and line_count(now or b"") < before * least
