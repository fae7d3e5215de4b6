"""What a pilot's gateway answers, to the byte: eligibility compares it with what lies in the archive."""

from __future__ import annotations

from typing import Literal

AnswerCode = Literal["ok", "stale", "missing", "refused", "malformed", "program"]

EXIT_CODES: dict[AnswerCode, int] = {"ok": 0, "malformed": 2, "stale": 3, "refused": 4, "missing": 5}
"""Exit code of each answer; a program's is its own."""

STALE_STDERR = "stale: the file is not the one that this call expects; read it again\n"
"""Standard error of a refused stale write; its standard output is empty."""
MISSING_STDERR = "missing: there is no such file\n"

READ, LIST, WRITE, DELETE, CALL = "read", "list", "write", "delete", "call"
OWN_TOOLS = frozenset({READ, LIST, WRITE, DELETE, CALL})
"""Names that no program of a plan may have."""
_SHOWN_CHARACTERS = 100


def shown_name(name: str) -> str:
    """Return how a call's row shows the tool or program that an agent named."""
    return name[:_SHOWN_CHARACTERS].encode("utf-8", "replace").decode()
