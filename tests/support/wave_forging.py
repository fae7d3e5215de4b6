"""An exported wave campaign, edited as a forger with the tool would: every hash over it is mended."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from roundkit.core.canonical import canonical_bytes, digest_bytes

Change = Callable[[Any], object]
INDEX = "waves-index.json"


def reseal(folder: Path) -> None:
    """Write the index over what lies there now."""
    index = json.loads((folder / INDEX).read_bytes())
    for row in index["files"]:
        data = (folder / row["path"]).read_bytes()
        row.update(size=len(data), sha256=digest_bytes(data))
    seal(folder, index)


def seal(folder: Path, index: Any) -> None:
    """Write an index with its seal."""
    data = canonical_bytes(index)
    (folder / INDEX).write_bytes(data)
    (folder / f"{INDEX}.sha256").write_text(f"{digest_bytes(data)}  {INDEX}\n")


def forge(folder: Path, name: str, change: Change, *, line: int = 1) -> None:
    """Change a record, or one line of a file of lines, and mend every hash.

    Args:
        folder: The export.
        name: The record's file.
        change: Changes its JSON value.
        line: Which line of a file of lines, from 1.
    """
    path = folder / name
    rows = path.read_bytes().splitlines() if name.endswith(".jsonl") else [path.read_bytes()]
    value = json.loads(rows[line - 1])
    change(value)
    rows[line - 1] = canonical_bytes(value)
    path.write_bytes(b"".join(row + b"\n" for row in rows) if name.endswith(".jsonl") else rows[0])
    reseal(folder)
