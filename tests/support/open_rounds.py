"""The directory of an open round, its database filled from a sample round by the store's own tables."""

from __future__ import annotations

from pathlib import Path

from support.sample_evidence import SampleRound

from roundkit.models.attempts import AttemptRecord
from roundkit.models.ledger import TicketRecord
from roundkit.rounds.layout import RoundFolder
from roundkit.store import RoundStore, open_store


def open_round_directory(
    root: Path, sample: SampleRound, *, measured: int | None = None, paused: str | None = None
) -> RoundFolder:
    """Make a round directory in which serve has come so far.

    Args:
        root: The folder to make.
        sample: The round; nothing of what close did is used.
        measured: How many of its measured tickets have their verdict; the others wait. All when None.
        paused: Why the queue is paused.
    """
    folder = RoundFolder(root)
    folder.store.mkdir(parents=True)
    folder.plan_file.write_bytes(sample.plan.to_bytes())
    (folder.store / "plan-digest").write_text(sample.plan.digest())
    with open_store(folder.database) as store, store.transaction():
        for record in sample.ledger.attempts:
            _attempt(store, record)
        left = measured
        for ticket in sample.ledger.tickets:
            done = ticket.state == "measured" and (left is None or left > 0)
            left = left - 1 if left is not None and done else left
            _ticket(store, sample, ticket, done=done)
        for number, check in enumerate(sample.ledger.aa_checks):
            _experiments(store, sample, f"aa-{number + 1}")
            store.aa_checks.add(check, number)
        for rejected in sample.ledger.rejected_submissions:
            store.tickets.add_rejected_submission(rejected)
        if paused is not None:
            store.control.put("paused", paused)
        store.events.add("serve-started")
    return folder


def _ticket(store: RoundStore, sample: SampleRound, ticket: TicketRecord, *, done: bool) -> None:
    store.tickets.add(
        key=ticket.key, ticket=ticket.ticket, manifest=ticket.manifest, intake_utc=ticket.intake_utc,
        provenance=ticket.provenance, reject_cause=ticket.reject_cause, reject_detail=ticket.reject_detail,
    )  # fmt: skip
    store.tickets.replace_commands(ticket.key, ticket.commands)
    if done and ticket.verdict is not None and ticket.measured_utc is not None:
        _experiments(store, sample, ticket.ticket)
        store.tickets.set_verdict(ticket.key, ticket.verdict, ticket.measured_utc)


def _experiments(store: RoundStore, sample: SampleRound, subject: str) -> None:
    for record in sample.experiments:
        if record.subject == subject:
            store.experiments.begin(record.experiment_id, record.purpose, record.subject, record.attempt)
            store.experiments.finish(record)


def _attempt(store: RoundStore, record: AttemptRecord) -> None:
    digest = record.binding.plan_digest
    store.attempts.reserve(record.binding, record.provenance, record.reserved_utc)
    if record.claimed_utc is not None:
        store.attempts.claim(digest, record.claimed_utc)
    if record.actual is not None and record.ended_utc is not None:
        store.attempts.settle(digest, record.actual, record.ended_utc)
