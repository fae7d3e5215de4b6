"""The page of data frames."""

from __future__ import annotations

from _reference.markdown import anchor, code, table
from roundkit.analysis.catalog import FRAME_ROWS, FRAMES

_HEAD = """# Frames

What [notebooks and `roundkit export`](../how-to/notebooks.md) give. What was not measured is null with a
reason beside it, never zero. Times are UTC. `metric` as a unit stands for the unit of the round's own
metric. `roundkit schema FRAME` prints the same.
"""
_WHERE = {
    "pilot": "`roundkit.analysis.pilot_frames` of a pilot's folder",
    "policy": "`roundkit.analysis.policy` of a policy pilot's records",
    "wave": "`roundkit.analysis.load_waves` of a wave campaign's folder",
    "sample": "`roundkit.analysis.importers.read_pyperf` and `read_hyperfine`",
}


def pages() -> dict[str, str]:
    """Return the page."""
    parts = [_HEAD, table(["frame", "a row", "columns"], [_listed(name) for name in FRAMES])]
    for name, columns in FRAMES.items():
        rows = [
            [code(column.name), _type(str(column.dtype)), column.unit, column.meaning] for column in columns
        ]
        parts.append(
            f"({anchor('frame', name)})=\n## {name}\n\n{_sentence(FRAME_ROWS[name])} From {_where(name)}.\n\n"
            + table(["column", "type", "unit", "meaning"], rows)
        )
    return {"frames.md": "\n".join(parts)}


def _listed(name: str) -> list[str]:
    return [f"[{name}](#{anchor('frame', name)})", FRAME_ROWS[name], str(len(FRAMES[name]))]


def _where(name: str) -> str:
    found = [where for start, where in _WHERE.items() if name.startswith(start)]
    return found[0] if found else "`roundkit.analysis.load` of rounds and evidence"


def _type(dtype: str) -> str:
    return code(dtype)


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."
