"""The page of codes."""

from __future__ import annotations

from _reference.markdown import anchor, code, table
from roundkit.core.codes import FAMILIES, all_codes

_HEAD = """# Codes

What went wrong is said with a code in square brackets, its place, and what would fix it. Records hold codes
too. A code never changes its meaning. `roundkit explain CODE` says the same as this page.

| exit code | what it says |
| --- | --- |
| 0 | done; of `close`: the round is closed, whatever it decided |
| 1 | the work ran and failed its purpose: no pass, a difference in an audit, a system that refused |
| 2 | wrong usage: an option or an argument that there is not |
| 3 | refused: nothing was done, and every record is as it was |
"""
_TITLES = {
    "refusals": "Refusals",
    "words": "Verdicts and states",
    "verdicts": "Reasons of verdicts",
    "trials": "Problems of a trial",
    "infrastructure": "Broken measurements",
    "rejections": "Rejections",
    "lanes": "Lanes of a closed round",
    "agents": "Ends of agents",
    "findings": "Findings of pilots",
    "audit": "Checks of an audit",
}


def pages() -> dict[str, str]:
    """Return the page."""
    parts = [_HEAD]
    for family, about in FAMILIES.items():
        rows = [
            [code(each.code), each.meaning, *([each.remedy] if family != "audit" else [])]
            for each in all_codes()
            if each.family == family
        ]
        headings = ["check", "what is compared"] if family == "audit" else ["code", "meaning", "what to do"]
        parts.append(
            f"({anchor('codes', family)})=\n## {_TITLES[family]}\n\n{about}.\n\n{table(headings, rows)}"
        )
    return {"codes.md": "\n".join(parts)}
