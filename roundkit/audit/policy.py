"""The audit of a policy pilot: every round again, then every run and the decision from the rounds alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from roundkit.audit.findings import AuditReport, Check, Disagreement, conclude
from roundkit.audit.guard import each_family, failures
from roundkit.audit.head_check import posted_head
from roundkit.audit.policy_clocks import clock_problems
from roundkit.audit.policy_material import PolicyMaterial, RunMaterial, read_policy
from roundkit.audit.policy_rounds import check_rounds
from roundkit.core.canonical import digest_bytes
from roundkit.core.progress import SILENT, Progress
from roundkit.core.yamlfile import load_yaml, plain
from roundkit.evidence import EvidenceProblem
from roundkit.evidence import policy_layout as layout
from roundkit.evidence.plan_seal import SEAL, seal_problem
from roundkit.evidence.policy_files import run_files
from roundkit.models.campaign import CampaignPlan
from roundkit.rules.pilot_chain import Chain, chain_of
from roundkit.rules.policy_order import policy_schedule, schedule_digest
from roundkit.rules.policy_result import decision_of
from roundkit.rules.policy_run import derive_run, run_link

_OLDER = "roundkit-policy-run/1"


def audit_policy(
    path: Path, *, expect: str | None = None, head: str | None = None, progress: Progress = SILENT
) -> AuditReport:
    """Recompute everything in a policy pilot's folder.

    Args:
        path: The pilot's folder.
        expect: The digest of ``decision.json`` as it was published elsewhere.
        head: The head as it was posted after a run: the digest of what was then the last record.
        progress: Shows how many kinds of checks are done.

    Returns:
        Every check with what agreed or did not. Nothing found wrong in the folder raises.
    """
    name = path.resolve().name
    families: tuple[tuple[str, Callable[[PolicyMaterial], list[Check]]], ...] = (
        ("files", _check_files),
        ("plan", _check_plan),
        ("matrix", _check_matrix),
        ("chain", _check_chain),
        ("rounds", check_rounds),
        ("runs", _check_runs),
        ("decision", _check_decision),
    )
    with progress.task(f"audit of {name}", len(families) + 1, "kinds of checks") as task:
        try:
            material = read_policy(path)
        except EvidenceProblem as found:
            return AuditReport(name, None, tuple(failures("files", found)))
        task.advance()
        digest = material.decision.digest() if material.decision else None
        checks = [*_expected(digest, expect), *posted_head(_chain(material), head)]
        checks += each_family(families, material, task)
    return AuditReport(name, digest, tuple(checks))


def _expected(digest: str | None, expect: str | None) -> list[Check]:
    if expect is None:
        there = f"digest {digest}" if digest is not None else "nothing is decided yet"
        return [Check("digest", True, layout.DECISION, f"{there}; none was given to expect")]
    found = [Disagreement(layout.DECISION, f"digest {digest or 'none yet'}, expected {expect}")]
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
    if (said := seal_problem(material.plan_bytes, material.seal)) is not None:
        found.append(Disagreement(SEAL, said))
    if digest_bytes(material.campaign_bytes) != plan.campaign_sha256:
        found.append(Disagreement(layout.CAMPAIGN, "not the campaign file that was frozen"))
    schedule = policy_schedule(plan.seed, plan.repetitions)
    if schedule != plan.schedule or schedule_digest(schedule) != plan.schedule_sha256:
        found.append(Disagreement(layout.PLAN, "the schedule is not the one that follows from the seed"))
    if plan.campaign.campaign_id != plan.campaign_id:
        found.append(Disagreement(layout.PLAN, "the campaign is another one"))
    if (
        CampaignPlan.model_validate(plain(load_yaml(material.campaign_bytes, place=layout.CAMPAIGN)))
        != plan.campaign
    ):
        found.append(Disagreement(layout.PLAN, "its campaign is not what the campaign file says"))
    lanes = [lane.id for lane in plan.round.lanes]
    if len(set(lanes)) != len(lanes):
        found.append(Disagreement(layout.PLAN, "two lanes have one id"))
    found += [
        Disagreement(f"{run.folder}/{layout.START}", "was started before the plan was frozen")
        for run in material.runs
        if run.start is not None and run.start.started_utc < plan.frozen_utc
    ]
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
    found += _one_after_the_other(material)
    return conclude("matrix", found, f"{len(there)} runs, each once")


def _chain(material: PolicyMaterial) -> Chain:
    return chain_of([run_link(run.slot, run.start, run.record) for run in material.runs])


def _check_chain(material: PolicyMaterial) -> list[Check]:
    chain = _chain(material)
    orders = {run.slot.run_id: run.slot.order for run in material.runs}
    places = [orders[name] for name in chain.order]
    turn = (
        "in the frozen order" if places == sorted(places) else f"run as {' '.join(chain.order)}, out of order"
    )
    agreed = (
        f"{len(chain.order)} runs, {turn}, each names the record before it; head {chain.head or 'none yet'}"
    )
    return conclude("chain", chain.problems, agreed)


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
    both = [(layout.LAUNCH, run.launch.clock, run.launch.launched_utc)] if run.launch is not None else []
    both += [(layout.END, run.end.clock, run.end.noted_utc)] if run.end is not None else []
    for name, clock, moment in both:
        if clock is not None and clock.utc != moment:
            yield Disagreement(f"{run.folder}/{name}", "is of another moment on its two clocks")
    yield from _clock(run)


def _one_after_the_other(material: PolicyMaterial) -> Iterator[Disagreement]:
    """Yield times that went back: within a run, or from one run to the one that was started after it."""
    by_name = {run.slot.run_id: run for run in material.runs}
    before: datetime | None = None
    for name in _chain(material).order:
        run = by_name[name]
        moments = [before, run.start.started_utc if run.start else None]
        for view in run.rounds:
            moments += [view.plan.frozen_utc, view.ledger.closed_utc]
        moments.append(run.end.noted_utc if run.end else None)
        known = [moment for moment in moments if moment is not None]
        if any(later < earlier for earlier, later in itertools.pairwise(known)):
            what = "its times, or the step from the run before it, go back: a clock was set, or one is forged"
            yield Disagreement(run.folder, what)
        before = known[-1] if known else before


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
    by_name = {run.slot.run_id: run for run in material.runs}
    found = list(clock_problems([by_name[name] for name in _chain(material).order]))
    for run in material.runs:
        if run.end is None or run.record is None:
            continue
        # The older format binds none of the run's own files, and knows one clock alone.
        one_clock = run.launch is None or run.launch.clock is None
        older = run.record.format == _OLDER and one_clock
        files = None if older else run_files(material.path / run.folder)
        computed = derive_run(material.plan, run.slot, run.end, run.launch, run.views(), files)
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
