"""Every expected tuple of a pilot is accounted for exactly once, whatever came of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from roundkit.models.pilot_plan import PairedPlan, Slot
from roundkit.models.pilot_trial import TrialRecord, TrialStart
from roundkit.rules.pilot_chain import Chain, Link, chain_of


@dataclass(frozen=True)
class Attempt:
    """One folder of attempts, as it was found.

    Attributes:
        name: The folder's name.
        start: What its ``start.json`` says; null where there is none that can be read.
        record: What its ``record.json`` says; null where there is none that can be read.
    """

    name: str
    start: TrialStart | None
    record: TrialRecord | None


@dataclass(frozen=True)
class MatrixFinding:
    """One way in which attempts are not the matrix.

    Attributes:
        code: ``missing``: an expected tuple has no attempt; ``unfinished``: its attempt has no record;
            ``duplicate``: it has several; ``extra``: an attempt is at no expected tuple; ``renamed``: a
            folder, its start and its record do not name the same slot of this plan.
        tuple_id: The tuple; of an extra attempt what it says it is.
        attempts: Names of the folders that it is about.
        detail: What was found, in a sentence.
    """

    code: Literal["missing", "unfinished", "duplicate", "extra", "renamed"]
    tuple_id: str
    attempts: tuple[str, ...]
    detail: str


def attempt_name(slot: Slot) -> str:
    """Return the name of the folder in which an attempt at a slot lies."""
    return f"{slot.order:03d}-{slot.tuple_id}"


def matrix_findings(
    plan: PairedPlan, attempts: Sequence[Attempt], *, plan_sha256: str
) -> list[MatrixFinding]:
    """Return how a pilot's attempts differ from its matrix; none where every tuple is there exactly once.

    Args:
        plan: The frozen plan.
        attempts: Every folder of attempts within the matrix; setup attempts are none of them.
        plan_sha256: Digest of the plan.
    """
    expected = {slot.tuple_id: slot for slot in plan.schedule}
    claims: dict[str, list[Attempt]] = defaultdict(list)
    findings = []
    for attempt in attempts:
        claimed = _claimed(attempt)
        if claimed not in expected:
            findings.append(_extra(attempt, claimed))
            continue
        claims[claimed].append(attempt)
        findings += _renamed(attempt, expected[claimed], plan_sha256)
    for tuple_id, slot in expected.items():
        findings += _counted(tuple_id, slot, claims[tuple_id])
    return findings


def open_slots(plan: PairedPlan, attempts: Sequence[Attempt]) -> list[Slot]:
    """Return the slots that nothing was started in, in the frozen order."""
    used = {attempt.name for attempt in attempts}
    used_ids = {_claimed(attempt) for attempt in attempts}
    return [
        slot for slot in plan.schedule if attempt_name(slot) not in used and slot.tuple_id not in used_ids
    ]


def attempts_chain(attempts: Sequence[Attempt]) -> Chain:
    """Return the chain of a pilot's attempts, setup attempts included."""
    return chain_of(
        [
            Link(
                name=attempt.name,
                started=attempt.start is not None,
                previous=None if attempt.start is None else attempt.start.previous_sha256,
                record=None if attempt.record is None else attempt.record.digest(),
            )
            for attempt in attempts
        ]
    )


def order_notes(attempts: Sequence[Attempt], made: Sequence[str]) -> list[str]:
    """Return the tuples that were started after one that comes later in the frozen order.

    Args:
        attempts: Attempts at the matrix.
        made: Names of attempts in the order in which they were made, which no clock tells for sure.
    """
    starts = {each.name: each.start for each in attempts if each.start is not None}
    orders = [(start.order, start) for name in made if (start := starts.get(name)) is not None]
    late, furthest = [], 0
    for order, start in orders:
        if order is None:
            continue
        if order < furthest:
            late.append((order, start.tuple_id or start.attempt))
        furthest = max(furthest, order)
    return [name for _, name in sorted(late)]


def _claimed(attempt: Attempt) -> str:
    """Return the tuple that an attempt is at, by the best word that is left of it."""
    for said in (attempt.start, attempt.record):
        if said is not None and said.tuple_id is not None:
            return said.tuple_id
    return attempt.name.partition("-")[2]


def _extra(attempt: Attempt, claimed: str) -> MatrixFinding:
    return MatrixFinding(
        "extra", claimed, (attempt.name,), f"{attempt.name} is at {claimed!r}, which the plan does not expect"
    )


def _renamed(attempt: Attempt, slot: Slot, plan_sha256: str) -> Iterator[MatrixFinding]:
    wanted = attempt_name(slot)
    names = {"its folder": attempt.name}
    for what, said in (("its start", attempt.start), ("its record", attempt.record)):
        if said is not None:
            names[what] = said.attempt
            if (said.tuple_id, said.order) != (slot.tuple_id, slot.order):
                names[what] = f"{said.order}-{said.tuple_id}"
            if said.plan_sha256 != plan_sha256:
                names[what] = f"another plan, {said.plan_sha256}"
    wrong = [f"{what} names {name}" for what, name in names.items() if name != wanted]
    if wrong:
        detail = f"{attempt.name} should be {wanted}: {', '.join(wrong)}"
        yield MatrixFinding("renamed", slot.tuple_id, (attempt.name,), detail)


def _counted(tuple_id: str, slot: Slot, found: list[Attempt]) -> Iterator[MatrixFinding]:
    names = tuple(attempt.name for attempt in found)
    if not found:
        yield MatrixFinding("missing", tuple_id, (), f"{tuple_id}, number {slot.order}, has no attempt")
    if len(found) > 1:
        yield MatrixFinding("duplicate", tuple_id, names, f"{tuple_id} has {len(found)}: {', '.join(names)}")
    for attempt in found:
        if attempt.record is None:
            detail = f"{attempt.name} has no record"
            yield MatrixFinding("unfinished", tuple_id, (attempt.name,), detail)
