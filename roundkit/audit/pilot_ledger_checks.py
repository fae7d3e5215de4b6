"""Ledgers of interventions against what binds their last lines: later starts, and what somebody posted."""

from __future__ import annotations

from collections.abc import Iterator

from roundkit.audit.findings import Disagreement
from roundkit.audit.pilot_material import PilotMaterial, read_or_none
from roundkit.core.canonical import digest_bytes
from roundkit.evidence import pilot_layout as layout
from roundkit.models.pilot_trial import TrialStart


def ledger_problems(material: PilotMaterial) -> Iterator[Disagreement]:
    """Yield ledgers that do not begin with what stood in them when a later attempt was started."""
    reader = material.reader
    for folder in (*reader.trial_folders(), *reader.setup_folders()):
        start = read_or_none(reader, f"{folder}/{layout.START}", TrialStart)
        for state in (start.ledgers or ()) if start is not None else ():
            trial = f"{layout.TRIALS}/{state.attempt}"
            data = reader.artifact(trial, layout.INTERVENTIONS).data
            if data is None or digest_bytes(data[: state.size]) != state.sha256:
                said = f"does not begin with the {state.size} bytes that {folder}/{layout.START} names"
                yield Disagreement(f"{trial}/{layout.INTERVENTIONS}", said)


def posted_ledgers(material: PilotMaterial) -> Iterator[tuple[str, str]]:
    """Yield the digest of each ledger as it stood after each of its lines, and where that is, in words."""
    for row in material.cohort.observations:
        count = len(row.interventions)
        if row.files is None or not count:
            continue
        # Each line names the digest of all before it: that is what was posted of the line before.
        digests = [entry.before_sha256 for entry in row.interventions[1:]]
        whole = row.files.get(layout.INTERVENTIONS).data
        digests += [digest_bytes(whole)] if whole is not None else []
        for number, digest in enumerate(digests, start=1):
            yield digest, f"line {number} of {count} in {row.folder}/{layout.INTERVENTIONS}"
