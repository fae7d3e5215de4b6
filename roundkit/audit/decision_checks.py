"""What the round decided: selection, order, composition, ratios, rerun, lanes, gain, A/A checks."""

from __future__ import annotations

from collections.abc import Iterator

from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.material import Material
from roundkit.audit.role_checks import standalone_subject
from roundkit.core.text import counted
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.ledger import CompositionStep, InteractionRatio, TicketRecord
from roundkit.models.verdict import VerdictRecord
from roundkit.rules.drift import aa_check, same_place
from roundkit.rules.outcome import STATEMENT, ending_of, lane_records
from roundkit.rules.ratio import BY_CONSTRUCTION, UNMEASURABLE, interaction_ratio
from roundkit.rules.remeasure import is_checked_again
from roundkit.rules.selection import composition_order, select_tickets
from roundkit.rules.verdict import decide


def check_decisions(material: Material) -> list[Check]:
    """Check every decision of close against the rules, and every A/A check against its samples."""
    ledger = material.ledger
    return [
        *conclude(
            "selection and order", _order_problems(material), f"order {', '.join(ledger.order) or 'empty'}"
        ),
        *conclude("composition", _composition_problems(material), counted(len(ledger.composition), "step")),
        *conclude("ratios", _ratio_problems(material), "from step and standalone gains"),
        *conclude("rerun", _rerun_problems(material), _rerun_words(material)),
        *conclude("lane outcomes", _lane_problems(material), counted(len(ledger.lanes), "lane")),
        *conclude("result", _result_problems(material), "head, gain and statement follow from the rerun"),
        *conclude(
            "A/A checks",
            _aa_problems(material),
            f"{counted(len(ledger.aa_checks), 'check')}, drift recomputed",
        ),
    ]


def _chosen(material: Material) -> dict[str, TicketRecord | None]:
    return select_tickets(material.ledger.tickets, [lane.id for lane in material.plan.lanes])


def _order_problems(material: Material) -> Iterator[Disagreement]:
    chosen = _chosen(material)
    for record in material.ledger.lanes:
        ticket = chosen.get(record.lane)
        name = ticket.ticket if ticket else None
        if record.selected != name:
            yield differs(f"lane {record.lane}", "selected", record.selected, name)
    order = tuple(ticket.lane for ticket in composition_order(chosen))
    if material.ledger.order != order:
        yield differs("round-ledger.json", "order", material.ledger.order, order)
    tickets = [ticket.ticket for ticket in composition_order(chosen)]
    stepped = [step.ticket for step in material.ledger.composition]
    if stepped != tickets:
        yield differs("round-ledger.json", "composed tickets", stepped, tickets)


def _composition_problems(material: Material) -> Iterator[Disagreement]:
    head = material.plan.incumbent
    for number, step in enumerate(material.ledger.composition, start=1):
        where = f"composition step {number}"
        ticket = material.ticket(step.ticket)
        wanted = {
            "step": number,
            "lane": ticket.lane if ticket else None,
            "head_before": head,
            "reused": number == 1,
            "kept": step.verdict.verdict == "pass",
        }
        for name, value in wanted.items():
            if getattr(step, name) != value:
                yield differs(where, name, getattr(step, name), value)
        yield from _step_files(material, step, ticket, where)
        if step.kept and step.candidate is not None:
            head = step.candidate


def _step_files(
    material: Material, step: CompositionStep, ticket: TicketRecord | None, where: str
) -> Iterator[Disagreement]:
    if step.step == 1 and ticket is not None and step.candidate != ticket.candidate_commit:
        yield differs(where, "candidate", step.candidate, ticket.candidate_commit)
    record = material.experiments.get(step.experiment or "")
    if record is not None and record.candidate.tree != step.tree:
        yield differs(where, "tree", step.tree, record.candidate.tree)


def _ratio_problems(material: Material) -> Iterator[Disagreement]:
    for step in material.ledger.composition:
        computed = _ratio(material, step)
        if step.ratio != computed:
            yield differs(f"composition step {step.step}", "ratio", step.ratio, computed)


def _ratio(material: Material, step: CompositionStep) -> InteractionRatio:
    if step.step == 1:
        return BY_CONSTRUCTION
    if step.candidate is None:
        return UNMEASURABLE
    alone, fresh = _standalone(material, step)
    return interaction_ratio(step.verdict, alone, material.plan.campaign.metric.direction, fresh=fresh)


def _standalone(material: Material, step: CompositionStep) -> tuple[VerdictRecord | None, bool]:
    if material.plan.composition.fresh_standalone:
        records = material.of_subject(standalone_subject(step.lane))
        return (decide(records[-1], material.spec) if records else None), True
    ticket = material.ticket(step.ticket)
    return (ticket.verdict if ticket else None), False


def _rerun_problems(material: Material) -> Iterator[Disagreement]:
    kept = [step for step in material.ledger.composition if step.kept]
    wanted = _wanted_reruns(material, kept)
    stands = [(record.kind, record.commit, record.tree, record.lanes) for record in material.ledger.rerun]
    if stands != wanted:
        yield differs("round-ledger.json", "rerun", stands, wanted)


def _wanted_reruns(material: Material, kept: list[CompositionStep]) -> list[tuple[object, ...]]:
    if not kept:
        return []
    head, lanes = kept[-1], tuple(step.lane for step in kept)
    wanted: list[tuple[object, ...]] = [("rerun", head.candidate, head.tree, lanes)]
    first = material.ledger.rerun[0].verdict.verdict if material.ledger.rerun else None
    best = kept[0]
    falls_back = material.plan.composition.fallback == "best-single" and lanes != (best.lane,)
    if first != "pass" and falls_back:
        wanted.append(("fallback", best.candidate, best.tree, (best.lane,)))
    return wanted


def _rerun_words(material: Material) -> str:
    verdicts = [f"{record.kind} {record.verdict.verdict}" for record in material.ledger.rerun]
    return ", ".join(verdicts) or "nothing was composed, nothing rerun"


def _lane_problems(material: Material) -> Iterator[Disagreement]:
    ledger = material.ledger
    computed = lane_records(
        material.plan,
        ledger.tickets,
        _chosen(material),
        ledger.composition,
        ending_of(ledger.rerun),
        ledger.attempts,
    )
    for stands, ours in zip(ledger.lanes, computed, strict=False):
        for name in type(ours).model_fields:
            if getattr(stands, name) != getattr(ours, name):
                yield differs(f"lane {ours.lane}", name, getattr(stands, name), getattr(ours, name))


def _result_problems(material: Material) -> Iterator[Disagreement]:
    ledger, plan = material.ledger, material.plan
    accepted = ending_of(ledger.rerun).accepted
    wanted = {
        "advanced": accepted is not None,
        "head": accepted.commit if accepted else plan.incumbent,
        "head_tree": accepted.tree if accepted else plan.incumbent_tree,
        "gain": accepted.verdict.gain if accepted else None,
        "statement": STATEMENT,
    }
    for name, value in wanted.items():
        if getattr(ledger, name) != value:
            yield differs("round-ledger.json", name, getattr(ledger, name), value)


def _is_no_check(material: Material, record: ExperimentRecord) -> bool:
    """Say whether an A/A experiment broke by no fault of the incumbent, and was done anew."""
    of_subject = material.of_subject(record.subject)
    earlier = of_subject[: of_subject.index(record)]
    return is_checked_again(record, earlier, material.spec.gates)


def _aa_problems(material: Material) -> Iterator[Disagreement]:
    incumbent, drift = material.plan.incumbent, material.plan.campaign.test_plan.drift
    checks = material.ledger.aa_checks
    recorded = {
        record.experiment_id
        for record in material.experiments.values()
        if record.purpose == "aa" and not _is_no_check(material, record)
    }
    for experiment_id in sorted(recorded ^ {check.experiment for check in checks}):
        yield Disagreement(
            experiment_id, "an A/A experiment without a check, or a check without its experiment"
        )
    for position, check in enumerate(checks):
        record = material.experiments.get(check.experiment)
        if record is None:
            continue
        if (record.baseline.commit, record.candidate.commit) != (incumbent, incumbent):
            yield Disagreement(check.experiment, "is not the incumbent against itself")
        verdict = decide(record, material.spec)
        earlier = same_place(record, checks[:position], material.experiments)
        computed = aa_check(record, verdict, earlier, drift, resumes=check.resumes)
        if check != computed:
            yield differs(check.experiment, "A/A check", check, computed)
