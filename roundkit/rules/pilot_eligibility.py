"""Whether an observation may enter comparative figures: four items, each measured or with its exact reason.

Fail-closed: whatever is not as it is to be makes its item missing. Nothing raises, and nothing is filled in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from roundkit.core.canonical import digest_bytes
from roundkit.core.errors import Refused, RoundkitError
from roundkit.models.pilot_evidence import FROZEN_GUIDE, FROZEN_PROMPT, TrialFiles
from roundkit.models.pilot_plan import PairedPlan, Slot
from roundkit.models.pilot_trial import (
    Eligibility,
    EligibilityItem,
    ItemResult,
    Presentation,
    RecoveryKind,
    TrialRecord,
    TrialStart,
)
from roundkit.rules.pilot_calls import checked_calls
from roundkit.rules.pilot_interventions import LEDGER_NAME, read_interventions
from roundkit.rules.pilot_lines import LinesProblem
from roundkit.rules.pilot_outcome import prompt_bytes
from roundkit.rules.pilot_reading import Bound, Ineligible, bind, parsed, raw
from roundkit.rules.pilot_recovery import recovery_of
from roundkit.rules.pilot_review_checks import reviewed_ms
from roundkit.rules.pilot_wire import presentation_of

ITEMS: tuple[EligibilityItem, ...] = ("presentation", "review", "recovery", "interventions")
_UNFORESEEN = (RoundkitError, ValueError, LookupError, ArithmeticError, TypeError, RecursionError)
_START, _PROMPT, _WIRE, _PRESENTATION = "start.json", "prompt.md", "wire.jsonl", "presentation.json"


@dataclass(frozen=True)
class _Item:
    value: Any
    reason: str | None


def eligibility(plan: PairedPlan, slot: Slot, files: TrialFiles) -> Eligibility:
    """Decide the eligibility of one trial from its files alone.

    Args:
        plan: The frozen plan.
        slot: The slot that the trial is to fill.
        files: What was read of its folder.
    """
    measures: dict[EligibilityItem, Callable[[Bound], Any]] = {
        "presentation": lambda trial: _presented_bytes(plan, trial, slot),
        "review": lambda trial: reviewed_ms(trial, plan.task(slot.task)),
        "recovery": lambda trial: recovery_of(trial, plan.task(slot.task)),
        "interventions": _interventions,
    }
    found = {item: _measured(plan, slot, files, measures[item]) for item in ITEMS}
    kind: RecoveryKind | None = found["recovery"].value
    return Eligibility(
        tuple_id=slot.tuple_id,
        items=tuple(ItemResult(item=item, reason=found[item].reason) for item in ITEMS),
        presented_bytes=found["presentation"].value,
        active_ms=found["review"].value,
        recovery=kind,
        interventions=found["interventions"].value,
    )


def _measured(plan: PairedPlan, slot: Slot, files: TrialFiles, measure: Callable[[Bound], Any]) -> _Item:
    try:
        trial = bind(files)
        _check_identity(plan, slot, trial)
        return _Item(measure(trial), None)
    except Ineligible as reason:
        return _Item(None, str(reason))
    except _UNFORESEEN as error:
        return _Item(None, f"malformed: {type(error).__name__} while it was read")


def _check_identity(plan: PairedPlan, slot: Slot, trial: Bound) -> None:
    start = trial.read(_START, TrialStart)
    digest = plan.digest()
    for name, record in ((_START, start), ("record.json", trial.record)):
        if record.plan_sha256 != digest:
            raise Ineligible("substituted", f"{name} is of another plan")
        if record.tuple_id != slot.tuple_id or record.order != slot.order:
            raise Ineligible("substituted", f"{name} is of another tuple, {record.tuple_id}")
    if trial.record.started_utc != start.started_utc:
        raise Ineligible("disagrees", "record.json and start.json name different starts")
    if _ends_before(start, trial.record):
        raise Ineligible("out-of-order", "record.json ends before it starts")


def _ends_before(start: TrialStart, record: TrialRecord) -> bool:
    """Say whether a trial ended before its start: by the clock that nobody sets, where that was read."""
    began, ended = start.started_clock, record.ended_clock
    if began is not None and ended is not None and began.boot_id == ended.boot_id:
        return ended.to_us < began.from_us
    return record.ended_utc is not None and record.ended_utc < start.started_utc


def _presented_bytes(plan: PairedPlan, trial: Bound, slot: Slot) -> int:
    stands = trial.read(_PRESENTATION, Presentation)
    prompt, wire = trial.data(_PROMPT), trial.data(_WIRE)
    if prompt != _frozen_prompt(plan, trial, slot):
        raise Ineligible("substituted", f"{_PROMPT} is not the frozen prompt of its task and variant")
    if stands.tuple_id != slot.tuple_id:
        raise Ineligible("substituted", f"{_PRESENTATION} is of another tuple, {stands.tuple_id}")
    if stands.prompt_sha256 != digest_bytes(prompt):
        raise Ineligible("substituted", f"{_PROMPT} is not the prompt that was counted")
    if stands.wire_sha256 != digest_bytes(wire):
        raise Ineligible("substituted", f"{_WIRE} is not the wire that was counted")
    try:
        counted = presentation_of(slot.tuple_id, prompt, wire)
    except Refused as refused:
        raise Ineligible("malformed", refused.refusals[0].message) from refused
    if counted != stands:
        raise Ineligible(
            "disagrees",
            f"{_PRESENTATION} says {stands.total_bytes} bytes in {stands.responses} answers, the wire gives "
            f"{counted.total_bytes} in {counted.responses}",
        )
    checked_calls(trial)
    return counted.total_bytes


def _frozen_prompt(plan: PairedPlan, trial: Bound, slot: Slot) -> bytes:
    wanted = {FROZEN_PROMPT: plan.task(slot.task).prompt_sha256}
    if (guide := plan.variant(slot.variant).guide_sha256) is not None:
        wanted[FROZEN_GUIDE] = guide
    for name, sha256 in wanted.items():
        if digest_bytes(raw(trial.files, name)) != sha256:
            raise Ineligible("substituted", f"the {name} is not the one that the plan froze")
    return prompt_bytes(
        raw(trial.files, FROZEN_GUIDE) if guide is not None else None, raw(trial.files, FROZEN_PROMPT)
    )


def _interventions(trial: Bound) -> int:
    data, entry = raw(trial.files, LEDGER_NAME), trial.entry(LEDGER_NAME)
    if entry is not None and digest_bytes(data[: entry.size]) != entry.sha256:
        raise Ineligible(
            "substituted", f"{LEDGER_NAME} does not begin with what stood there at the trial's end"
        )
    try:
        found = read_interventions(data)
    except LinesProblem as problem:
        raise Ineligible("malformed", str(problem)) from problem
    start = parsed(raw(trial.files, _START), _START, TrialStart)
    if found and found[0].at_utc < start.started_utc:
        raise Ineligible("out-of-order", "an intervention is from before the trial")
    return len(found)
