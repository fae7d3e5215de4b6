"""The audit of a policy pilot: every round again, then every run and the decision from the rounds alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from roundkit.audit.findings import AuditReport, Check, Disagreement, conclude
from roundkit.audit.policy_material import PolicyMaterial, RunMaterial, read_policy
from roundkit.audit.policy_rounds import check_rounds
from roundkit.core.canonical import digest_bytes
from roundkit.core.errors import RoundkitError
from roundkit.evidence import EvidenceProblem
from roundkit.evidence import policy_layout as layout
from roundkit.rules.policy_order import policy_schedule, schedule_digest
from roundkit.rules.policy_result import decision_of
from roundkit.rules.policy_run import derive_run

_BROKEN = (RoundkitError, ValueError, LookupError, ArithmeticError, TypeError, AssertionError, OSError)


def audit_policy(path: Path, *, expect: str | None = None) -> AuditReport:
    """Recompute everything in a policy pilot's folder.

    Args:
        path: The pilot's folder.
        expect: The digest of ``decision.json`` as it was published elsewhere.

    Returns:
        Every check with what agreed or did not. Nothing found wrong in the folder raises.
    """
    name = path.resolve().name
    try:
        material = read_policy(path)
    except EvidenceProblem as found:
        return AuditReport(name, None, tuple(_failures("files", found)))
    families: tuple[tuple[str, Callable[[PolicyMaterial], list[Check]]], ...] = (
        ("files", _check_files),
        ("plan", _check_plan),
        ("matrix", _check_matrix),
        ("rounds", check_rounds),
        ("runs", _check_runs),
        ("decision", _check_decision),
    )
    digest = material.decision.digest() if material.decision else None
    checks = _expected(digest, expect)
    for family, check in families:
        checks += _guarded(family, partial(check, material))
    return AuditReport(name, digest, tuple(checks))


def _expected(digest: str | None, expect: str | None) -> list[Check]:
    if expect is None:
        return [Check("digest", True, layout.DECISION, f"digest {digest}; none was given to expect")]
    found = [Disagreement(layout.DECISION, f"digest {digest}, expected {expect}")]
    return conclude("digest", [] if digest == expect else found, "digest as expected")


def _check_files(material: PolicyMaterial) -> list[Check]:
    unreadable = [
        Check("files", False, refusal.place, f"[{refusal.code}] {refusal.message}")
        for found in material.problems
        for refusal in found.refusals
    ]
    extra = [Disagreement(name, "no pilot has such a file or folder") for name in material.extra]
    checks = conclude("files", extra, "no name that does not belong")
    return [*unreadable, *(check for check in checks if not (unreadable and check.passed))]


def _check_plan(material: PolicyMaterial) -> list[Check]:
    plan, found = material.plan, []
    if material.seal != layout.seal_bytes(digest_bytes(material.plan_bytes)):
        found.append(Disagreement(layout.SEAL, "does not name the digest of the plan"))
    if digest_bytes(material.campaign_bytes) != plan.campaign_sha256:
        found.append(Disagreement(layout.CAMPAIGN, "not the campaign file that was frozen"))
    schedule = policy_schedule(plan.seed, plan.repetitions)
    if schedule != plan.schedule or schedule_digest(schedule) != plan.schedule_sha256:
        found.append(Disagreement(layout.PLAN, "the schedule is not the one that follows from the seed"))
    if plan.campaign.campaign_id != plan.campaign_id:
        found.append(Disagreement(layout.PLAN, "the campaign is another one"))
    return conclude("plan", found, f"{len(schedule)} runs in the order that follows from the seed")


def _check_matrix(material: PolicyMaterial) -> list[Check]:
    there = {run.slot.run_id for run in material.runs}
    found = [
        Disagreement(layout.run_folder(slot), f"run {slot.run_id} is missing")
        for slot in material.plan.schedule
        if slot.run_id not in there
    ]
    for run in material.runs:
        found += _bindings(run, material.plan.digest())
    return conclude("matrix", found, f"{len(there)} runs, each once")


def _bindings(run: RunMaterial, plan: str) -> Iterator[Disagreement]:
    """Yield records that are missing, or of another run or plan, and times that cannot be."""
    for name, record in (
        (layout.START, run.start),
        (layout.END, run.end),
        (layout.RECORD, run.record),
        (layout.LAUNCH, run.launch),
    ):
        where = f"{run.folder}/{name}"
        if record is None:
            if name != layout.LAUNCH or run.rounds:
                yield Disagreement(where, "is missing")
        elif (record.run_id, record.plan_sha256) != (run.slot.run_id, plan):
            yield Disagreement(where, f"is of run {record.run_id} or of another plan")
    if run.start is not None and run.start.order != run.slot.order:
        yield Disagreement(f"{run.folder}/{layout.START}", "is of another place in the order")
    yield from _clock(run)


def _clock(run: RunMaterial) -> Iterator[Disagreement]:
    """Yield a first launch that does not lie between the run's start and its first agent."""
    if run.start is None or run.launch is None or not run.rounds:
        return
    first = run.rounds[0]
    begun = [attempt.reserved_utc for attempt in first.ledger.attempts]
    launched = run.launch.launched_utc
    early = launched < max(run.start.started_utc, first.plan.frozen_utc)
    late = bool(begun) and launched > min(begun)
    if early or late:
        yield Disagreement(
            f"{run.folder}/{layout.LAUNCH}",
            "the first launch is not after the first round's preparation and before its first agent",
        )


def _check_runs(material: PolicyMaterial) -> list[Check]:
    found = []
    for run in material.runs:
        if run.end is None or run.record is None:
            continue
        moment = run.launch.launched_utc if run.launch else None
        computed = derive_run(material.plan, run.slot, run.end, moment, run.views())
        for name in type(computed).model_fields:
            stands, follows = getattr(run.record, name), getattr(computed, name)
            if stands != follows:
                where = f"{run.folder}/{layout.RECORD}: {name}"
                found.append(Disagreement(where, f"stands {stands!r}, follows {follows!r}"))
    return conclude("runs", found, f"{len(material.runs)} records follow from their rounds")


def _check_decision(material: PolicyMaterial) -> list[Check]:
    whole = len(material.records) == len(material.plan.schedule)
    if material.decision is None:
        found = [Disagreement(layout.DECISION, "is missing, and every run has its record")] if whole else []
        return conclude("decision", found, "nothing is decided while runs are missing")
    if not whole:
        return [Check("decision", False, layout.DECISION, "decided while runs are missing")]
    computed = decision_of(material.plan, material.records)
    found = [
        Disagreement(
            f"{layout.DECISION}: {name}",
            f"stands {getattr(material.decision, name)!r}, follows {getattr(computed, name)!r}",
        )
        for name in type(computed).model_fields
        if getattr(material.decision, name) != getattr(computed, name)
    ]
    return conclude("decision", found, f"{computed.decision}, from {len(material.records)} records")


def _failures(name: str, found: EvidenceProblem) -> Iterator[Check]:
    for refusal in found.refusals:
        yield Check(name, False, refusal.place, f"[{refusal.code}] {refusal.message}")


def _guarded(family: str, check: Callable[[], list[Check]]) -> list[Check]:
    """A folder that does not even fit the rules' assumptions disagrees, whatever the rule raised."""
    try:
        return check()
    except EvidenceProblem as found:
        return list(_failures(family, found))
    except _BROKEN as error:
        return [Check(family, False, "", f"cannot be recomputed: {type(error).__name__}: {error}")]
