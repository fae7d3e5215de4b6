"""A policy pilot's evidence, edited as a forger with the tool would: whatever follows is derived anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.forging import put

from roundkit.audit.policy_material import read_policy
from roundkit.core.canonical import canonical_bytes, digest_bytes
from roundkit.evidence import policy_layout as layout
from roundkit.evidence.policy_files import run_files
from roundkit.rules.policy_result import decision_of
from roundkit.rules.policy_run import derive_run


def forge(pilot: Path, name: str, change: Callable[[Any], object]) -> None:
    """Change a record of a run, or of one of its rounds, mend every digest and derive every record anew."""
    path = pilot / name
    value = json.loads(path.read_bytes())
    change(value)
    head, found, rest = name.partition(f"/{layout.ROUNDS}/")
    if found:
        folder, _, within = rest.partition("/")
        put(pilot / head / layout.ROUNDS / folder, within, canonical_bytes(value))
    else:
        path.write_bytes(canonical_bytes(value))
    derive_again(pilot)


def derive_again(pilot: Path) -> None:
    """Write every run's record, each start's digest of the one before, and the decision."""
    material = read_policy(pilot)
    previous = None
    for run in material.runs:
        folder = pilot / run.folder
        start = json.loads((folder / layout.START).read_bytes())
        (folder / layout.START).write_bytes(canonical_bytes({**start, "previous_sha256": previous}))
        assert run.end is not None
        record = derive_run(material.plan, run.slot, run.end, run.launch, run.views(), run_files(folder))
        (folder / layout.RECORD).write_bytes(record.to_bytes())
        previous = digest_bytes(record.to_bytes())
    decision = decision_of(material.plan, read_policy(pilot).records)
    (pilot / layout.DECISION).write_bytes(decision.to_bytes())
