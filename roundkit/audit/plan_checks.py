"""The plan: its digest, the secret, the run specification, gates, lanes, and who names whom."""

from __future__ import annotations

from collections.abc import Iterator

from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.material import Material
from roundkit.core.canonical import digest_bytes
from roundkit.core.text import counted
from roundkit.models.ledger import RoundLedger
from roundkit.models.round_plan import RoundPlan
from roundkit.rules.disagreement import compare_run_specs
from roundkit.rules.run_spec import run_spec_of


def check_plan(material: Material) -> list[Check]:
    """Check that plan, secret, run specification, ledger and index belong together."""
    plan, digest = material.plan, material.evidence.round_digest
    return [
        *conclude("plan digest", _digest_problems(material), f"canonical bytes, SHA-256 {digest}"),
        *conclude("secret", _secret_problems(material), "its digest stands in the plan"),
        *conclude("run spec", _run_spec_problems(material), "follows from the plan"),
        *conclude("gates", _gate_problems(material), "no looser than the campaign's test plan"),
        *conclude("lanes", _lane_problems(material), f"{counted(len(plan.lanes), 'lane')} as planned"),
    ]


def _digest_problems(material: Material) -> Iterator[Disagreement]:
    plan, ledger, index = material.plan, material.ledger, material.evidence.index
    digest = plan.digest()
    claims = (
        ("round-plan.json", "digest of the bytes", material.evidence.round_digest, digest),
        ("round-ledger.json", "round_digest", ledger.round_digest, digest),
        ("run-spec.json", "round_digest", material.spec.round_digest, digest),
        ("round-ledger.json", "round_id", ledger.round_id, plan.round_id),
        ("round-ledger.json", "campaign_id", ledger.campaign_id, plan.campaign.campaign_id),
        ("round-ledger.json", "incumbent", ledger.incumbent, plan.incumbent),
        ("index.json", "subject_id", index.subject_id, plan.round_id),
        ("index.json", "campaign_id", index.campaign_id, plan.campaign.campaign_id),
        (
            "round-plan.json",
            "incumbent",
            plan.incumbent,
            plan.campaign.search_state.incumbent_revision,
        ),
    )
    for where, what, stands, computed in claims:
        if stands != computed:
            yield differs(where, what, stands, computed)
    if not plan.frozen_utc <= ledger.closed_utc <= index.exported_utc:
        yield Disagreement("round-ledger.json", "the round was not frozen, closed and exported in this order")
    if ledger.opened_utc != plan.frozen_utc:
        yield differs("round-ledger.json", "opened_utc", ledger.opened_utc, plan.frozen_utc)


def _secret_problems(material: Material) -> Iterator[Disagreement]:
    computed = digest_bytes(material.secret)
    if computed != material.plan.secret_sha256:
        yield differs("secret.json", "the plan's secret_sha256", material.plan.secret_sha256, computed)


def _run_spec_problems(material: Material) -> Iterator[Disagreement]:
    yield from compare_run_specs("run-spec.json", material.spec, run_spec_of(material.plan))


def _gate_problems(material: Material) -> Iterator[Disagreement]:
    gates, limits, where = material.plan.gates, material.plan.campaign.test_plan, "round-plan.json"
    tighter = (
        ("ab_ba_pairs", gates.ab_ba_pairs >= limits.ab_ba_pairs),
        ("min_gain", gates.min_gain >= limits.min_gain),
        ("loss_margin", gates.loss_margin <= limits.loss_margin),
        ("sigma_min", gates.sigma_min >= limits.sigma_min),
        ("order_margin", gates.order_margin <= limits.order_margin),
        ("repetitions", gates.repetitions == limits.repetitions),
        ("remeasure_limit", gates.remeasure_limit == limits.remeasure_limit),
        ("order_repeats", gates.order_repeats == limits.order_repeats),
        ("early_stopping", gates.early_stopping == limits.early_stopping),
        ("statistic", gates.statistic == limits.statistic),
        ("session_checks", gates.session_checks == limits.session_checks),
    )
    for name, holds in tighter:
        if not holds:
            yield differs(where, f"gates.{name}", getattr(gates, name), getattr(limits, name))
    for glob in material.plan.campaign.protected_paths:
        if glob not in material.plan.protected_paths:
            yield Disagreement(where, f"the campaign protects {glob!r}, the round does not")


def _lane_problems(material: Material) -> Iterator[Disagreement]:
    yield from _planned_lane_problems(material.plan)
    yield from _recorded_lane_problems(material.plan, material.ledger)


def _planned_lane_problems(plan: RoundPlan) -> Iterator[Disagreement]:
    where = "round-plan.json"
    entries = {entry.id: entry for entry in plan.campaign.search_plan}
    planned = [lane.id for lane in plan.lanes]
    if len(set(planned)) != len(planned):
        yield Disagreement(where, "two lanes have one id")
    for lane in plan.lanes:
        entry = entries.get(lane.entry)
        if entry is None:
            yield Disagreement(where, f"lane {lane.id} names an entry that the search plan lacks")
        elif (entry.plane, entry.hypothesis) not in {
            (lane.plane, lane.hypothesis),
            ((lane.plane,), lane.hypothesis),
        }:
            yield Disagreement(where, f"lane {lane.id} does not carry the plane and hypothesis of its entry")
        if lane.deadline_utc > plan.deadline_utc:
            yield Disagreement(where, f"lane {lane.id} ends after the round")


def _recorded_lane_problems(plan: RoundPlan, ledger: RoundLedger) -> Iterator[Disagreement]:
    planned = [lane.id for lane in plan.lanes]
    if [record.lane for record in ledger.lanes] != planned:
        yield differs("round-ledger.json", "lanes", [record.lane for record in ledger.lanes], planned)
        return
    for record, lane in zip(ledger.lanes, plan.lanes, strict=True):
        for name in ("entry", "plane", "harness", "model"):
            if getattr(record, name) != getattr(lane, name):
                yield differs(f"lane {lane.id}", name, getattr(record, name), getattr(lane, name))
        if record.attempts > lane.attempts:
            yield differs(f"lane {lane.id}", "attempts", record.attempts, f"at most {lane.attempts}")
