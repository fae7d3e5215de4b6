"""A round as it stands: its evidence once it has some, else one consistent snapshot beside whoever writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from roundkit.core.canonical import digest_file
from roundkit.core.errors import refuse
from roundkit.evidence import Event, EvidenceProblem, RoundEvidence, open_evidence
from roundkit.models.attempts import AttemptRecord
from roundkit.models.evidence import EvidencePointer
from roundkit.models.experiment import ExperimentRecord
from roundkit.models.ledger import AaCheck, CompositionStep, RejectedSubmission, RerunRecord, TicketRecord
from roundkit.models.round_plan import RoundPlan
from roundkit.models.run_spec import RunSpec
from roundkit.rounds.layout import RoundFolder, evidence_folder, read_plan
from roundkit.rules.outcome import STATEMENT, OpenLane, open_lanes
from roundkit.rules.run_spec import run_spec_of
from roundkit.store import RoundStore, open_snapshot, store_exists

_STEP = re.compile(r"step-[0-9]+")


@dataclass(frozen=True)
class OpenLedger:
    """What is on record of an open round, named like the ledger that close writes.

    Attributes:
        composition: The steps that close has finished so far.
        rerun: The reruns that close has finished so far.
    """

    round_id: str
    campaign_id: str
    incumbent: str
    head: None
    advanced: None
    opened_utc: datetime
    closed_utc: None
    lanes: tuple[OpenLane, ...]
    attempts: tuple[AttemptRecord, ...]
    tickets: tuple[TicketRecord, ...]
    rejected_submissions: tuple[RejectedSubmission, ...]
    aa_checks: tuple[AaCheck, ...]
    order: tuple[str, ...]
    composition: tuple[CompositionStep, ...]
    rerun: tuple[RerunRecord, ...]
    gain: None
    statement: str


@dataclass(frozen=True)
class OpenRound:
    """A round without evidence, at one moment. It answers like ``RoundEvidence``; its digest is None.

    Attributes:
        path: The round directory.
        plan: The frozen plan.
        round_digest: Its digest.
        run_spec: How trials run.
        ledger: What is on record so far.
        records: Every finished experiment, oldest first.
        events: What happened, in order.
        state: ``open``, or ``closing`` once close has begun.
        paused: Why the queue is paused; None when it is not.
        as_of: Time of the last thing that happened.
    """

    path: Path
    plan: RoundPlan
    round_digest: str
    run_spec: RunSpec
    ledger: OpenLedger
    records: tuple[ExperimentRecord, ...]
    events: tuple[Event, ...]
    state: Literal["open", "closing"]
    paused: str | None
    as_of: datetime

    @property
    def digest(self) -> None:
        """There is no evidence, and so no digest of it."""
        return

    @property
    def experiment_ids(self) -> tuple[str, ...]:
        """The id of every finished experiment, sorted."""
        return tuple(sorted(record.experiment_id for record in self.records))

    def experiments(self) -> Iterator[ExperimentRecord]:
        """Yield every finished experiment's record."""
        return iter(self.records)


RoundSource = RoundEvidence | OpenRound
"""A round that can be shown: closed, from its evidence, or open, from its directory."""


def is_round_directory(path: Path) -> bool:
    """Say whether a folder is the directory of a round, pruned ones included."""
    folder = RoundFolder(path)
    return folder.pointer_file.is_file() or (folder.store / "plan-digest").is_file()


def open_source(path: Path) -> RoundSource:
    """Open a round by its directory or its evidence folder.

    A round directory whose evidence was exported gives that evidence; an open one a snapshot of its
    database, consistent in itself, taken without a lock that anybody waits for.

    Raises:
        EvidenceProblem: the folder is no evidence, or damaged evidence.
        Refused: ``plan-changed``, ``evidence-missing``.
    """
    if not is_round_directory(path):
        return open_evidence(path)
    folder = RoundFolder(path)
    if folder.pointer_file.is_file():
        return _pointed_at(folder)
    plan = read_plan(folder)
    if not store_exists(folder.database):
        return _untouched(folder, plan)
    with open_snapshot(folder.database) as store:
        return _exported(plan, store) or _open(folder, plan, store)


def _pointed_at(folder: RoundFolder) -> RoundEvidence:
    try:
        pointer = EvidencePointer.from_bytes(folder.pointer_file.read_bytes(), place=str(folder.pointer_file))
        return open_evidence(Path(pointer.evidence))
    except EvidenceProblem as error:
        raise refuse(
            "evidence-missing",
            f"{folder.root.name} was pruned, and its evidence cannot be read: {error.refusals[0].message}",
            place=str(folder.pointer_file),
            remedy="put the evidence back where the pointer says, or name the evidence folder itself",
        ) from error
    except ValueError as error:
        raise refuse(
            "malformed", f"no pointer to evidence: {error}", place=str(folder.pointer_file)
        ) from error


def _exported(plan: RoundPlan, store: RoundStore) -> RoundEvidence | None:
    """Return the evidence that close exported, as long as it lies where close put it."""
    digest = store.steps.get("evidence")
    target = evidence_folder(plan)
    if digest is None or not (target / "index.json").is_file():
        return None
    return open_evidence(target) if digest_file(target / "index.json") == digest.decode() else None


def _open(folder: RoundFolder, plan: RoundPlan, store: RoundStore) -> OpenRound:
    events = tuple(
        Event.model_validate({"time": event.time, "kind": event.kind, "fields": event.fields}, strict=False)
        for event in store.events.all()
    )
    return OpenRound(
        path=folder.root,
        plan=plan,
        round_digest=plan.digest(),
        run_spec=run_spec_of(plan),
        ledger=_ledger(plan, store),
        records=tuple(store.experiments.records()),
        events=events,
        state="closing" if store.steps.names() else "open",
        paused=store.control.get("paused"),
        as_of=events[-1].time if events else plan.frozen_utc,
    )


def _untouched(folder: RoundFolder, plan: RoundPlan) -> OpenRound:
    """Return a round that was frozen, perhaps launched, and never served."""
    return OpenRound(
        path=folder.root,
        plan=plan,
        round_digest=plan.digest(),
        run_spec=run_spec_of(plan),
        ledger=_open_ledger(plan, tickets=(), attempts=()),
        records=(),
        events=(),
        state="open",
        paused=None,
        as_of=plan.frozen_utc,
    )


def _ledger(plan: RoundPlan, store: RoundStore) -> OpenLedger:
    steps = {name: store.steps.get(name) or b"" for name in store.steps.names()}
    return _open_ledger(
        plan,
        tickets=store.tickets.all(),
        attempts=store.attempts.all(),
        rejected=store.tickets.rejected_submissions(),
        aa_checks=store.aa_checks.all(),
        composition=[
            CompositionStep.from_bytes(body, place=name)
            for name, body in steps.items()
            if _STEP.fullmatch(name)
        ],
        rerun=[
            RerunRecord.from_bytes(steps[kind], place=kind) for kind in ("rerun", "fallback") if kind in steps
        ],
    )


def _open_ledger(
    plan: RoundPlan,
    *,
    tickets: Sequence[TicketRecord],
    attempts: Sequence[AttemptRecord],
    rejected: Sequence[RejectedSubmission] = (),
    aa_checks: Sequence[AaCheck] = (),
    composition: Sequence[CompositionStep] = (),
    rerun: Sequence[RerunRecord] = (),
) -> OpenLedger:
    return OpenLedger(
        round_id=plan.round_id,
        campaign_id=plan.campaign.campaign_id,
        incumbent=plan.incumbent,
        head=None,
        advanced=None,
        opened_utc=plan.frozen_utc,
        closed_utc=None,
        lanes=open_lanes(plan, tickets, composition, attempts),
        attempts=tuple(attempts),
        tickets=tuple(tickets),
        rejected_submissions=tuple(rejected),
        aa_checks=tuple(aa_checks),
        order=tuple(step.lane for step in composition),
        composition=tuple(composition),
        rerun=tuple(rerun),
        gain=None,
        statement=STATEMENT,
    )
