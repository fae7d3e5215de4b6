"""The checks of a paired pilot's calls: as the wire shows them, and as the files that they were about."""

from __future__ import annotations

from collections.abc import Iterator

from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.pilot_material import PilotMaterial, read_or_none
from roundkit.core.canonical import digest_bytes
from roundkit.evidence import pilot_layout as layout
from roundkit.models.pilot_cohort import Observation
from roundkit.models.pilot_trial import DriftReceipt
from roundkit.rules.pilot_files import Lying, follow


def check_calls(material: PilotMaterial) -> list[Check]:
    """Check the numbers of calls against the calls that the wire shows."""
    count = sum(len(row.gateway) for row in material.cohort.observations)
    return conclude("calls", _call_problems(material), f"{count} calls, each as the wire shows it")


def _call_problems(material: PilotMaterial) -> Iterator[Disagreement]:
    for row in material.cohort.observations:
        if not row.gateway:
            continue  # none, or none that agree with the wire, which eligibility says
        failed = sum(call.exit_code != 0 for call in row.gateway)
        if (row.calls, row.failed_calls) != (len(row.gateway), failed):
            stands = f"{row.calls} calls, {row.failed_calls} failed"
            yield differs(row.tuple_id, "record.json", stands, f"{len(row.gateway)} calls, {failed} failed")
        yield from (Disagreement(row.tuple_id, problem) for problem in _time_problems(material, row))
        yield from (Disagreement(row.tuple_id, problem) for problem in _file_problems(material, row))


def _time_problems(material: PilotMaterial, row: Observation) -> Iterator[str]:
    """Yield calls that took longer than their agent: they were carried out one after the other."""
    took_ms = sum(call.wall_ms for call in row.gateway)
    if row.wall_ms is not None and took_ms > row.wall_ms + len(row.gateway):
        yield f"its calls took {took_ms} ms, and its agent {row.wall_ms} ms"
    most = material.plan.policy.calls
    beyond = [call for call in row.gateway if call.sequence > most and call.code != "refused"]
    if beyond:
        yield f"call {beyond[0].sequence} was carried out, and the plan lets {most} be"


def _file_problems(material: PilotMaterial, row: Observation) -> Iterator[str]:
    """Yield calls that did not find what lay there, and files that are not what the calls left."""
    reader, record = material.reader, row.record
    if record is None or row.folder is None:
        return
    fixture = layout.task_input(row.slot.task, "fixture")
    before: Lying = {}
    for path in {call.path for call in row.gateway if call.path is not None}:
        file = reader.artifact(fixture, path)
        if file.data is not None or file.problem == "missing-file":
            before[path] = None if file.data is None else digest_bytes(file.data)
    receipt = read_or_none(reader, f"{row.folder}/{layout.DRIFT}", DriftReceipt)
    lying, problem = follow(row.gateway, before, receipt)
    if problem is not None:
        yield problem
        return
    # A runner that died, or a gateway that broke, may have done what stands nowhere.
    if record.process not in {"completed", "timeout"} or layout.CANDIDATE in record.truncated:
        return
    left = {file.path: file.sha256 for file in record.files}
    for path, sha256 in sorted(lying.items()):
        stands = left.get(f"{layout.CANDIDATE}/{path}")
        if stands != sha256:
            yield f"its calls left {sha256} at {path}, and its candidate has {stands}"
