"""N09, P02, P06 on every value: one leaf of one file changed, and the audit of its folder fails."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roundkit.audit import audit_evidence
from roundkit.core.canonical import canonical_bytes

EVIDENCE = Path(__file__).resolve().parents[2] / "evidence"
GONE = object()
SAMPLES = {
    "code-search/rounds/r01": 300,
    "c-functions": 300,
    "knobs/pilots/p-versus-s": 40,
}
"""How many edits of each folder."""

pytestmark = pytest.mark.slow


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the way to everything below a JSON value."""
    children = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in children:
        yield (*path, key)
        if isinstance(child, (dict, list)):
            yield from leaves(child, (*path, key))


def changed(value: Any, draw: random.Random) -> object:
    """Return another value in the place of one; some are taken out."""
    if draw.random() < 0.2:
        return GONE
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return value[:-1] + ("0" if value[-1:] != "0" else "1")
        case list() if len(value) > 1:
            return value[::-1] if value != value[::-1] else value[:-1]
        case _:
            return "x"


def edited(data: bytes, draw: random.Random) -> bytes:
    """Return a file with one value changed, canonically; of a file of lines, in one line."""
    lines = data.splitlines()
    number = draw.randrange(len(lines))
    value = json.loads(lines[number])
    *way, last = draw.choice(list(leaves(value)))
    holder: Any = value
    for step in way:
        holder = holder[step]
    made = changed(holder[last], draw)
    if made is GONE:
        del holder[last]
    else:
        holder[last] = made
    lines[number] = canonical_bytes(value)
    return b"\n".join(lines) + (b"\n" if data.endswith(b"\n") else b"")


@pytest.mark.parametrize("name", SAMPLES)
def test_n09_any_one_edited_value_is_noticed(tmp_path: Path, name: str) -> None:
    draw = random.Random(name)
    folder = Path(shutil.copytree(EVIDENCE / name, tmp_path / Path(name).name))
    files = sorted(path for path in folder.rglob("*.json*") if path.suffix in {".json", ".jsonl"})
    for _ in range(SAMPLES[name]):
        victim = draw.choice(files)
        before = victim.read_bytes()
        after = edited(before, draw)
        victim.write_bytes(after)
        assert not audit_evidence(folder).passed, (victim.relative_to(folder), after[:200])
        victim.write_bytes(before)
    assert audit_evidence(folder).passed
