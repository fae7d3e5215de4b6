"""Evidence of a round, edited as a forger with the tool would: every hash over it is mended."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from roundkit.core.canonical import canonical_bytes, digest_bytes

Rows = list[dict[str, Any]]


def forge_log(evidence: Path, copy: Path, change: Callable[[Rows], Rows]) -> Path:
    """Copy an evidence folder with another log, and return the copy."""
    rows = [json.loads(line) for line in (evidence / "events.jsonl").read_bytes().splitlines()]
    shutil.copytree(evidence, copy)
    return put(copy, "events.jsonl", b"".join(canonical_bytes(row) + b"\n" for row in change(rows)))


def forge_record(evidence: Path, copy: Path, name: str, change: Callable[[Any], object]) -> Path:
    """Copy an evidence folder with one record changed, and return the copy."""
    value = json.loads((evidence / name).read_bytes())
    change(value)
    shutil.copytree(evidence, copy)
    return put(copy, name, canonical_bytes(value))


def put(folder: Path, name: str, data: bytes) -> Path:
    """Replace a file of an evidence folder, and mend index and seal."""
    (folder / name).write_bytes(data)
    index = json.loads((folder / "index.json").read_bytes())
    for row in index["files"]:
        if row["path"] == name:
            row.update(size=len(data), sha256=digest_bytes(data))
    sealed = canonical_bytes(index)
    (folder / "index.json").write_bytes(sealed)
    (folder / "index.json.sha256").write_text(f"{digest_bytes(sealed)}  index.json\n")
    return folder
