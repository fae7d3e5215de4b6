"""What a killed coordinator left behind, put right from the store alone."""

from __future__ import annotations

import shutil

from roundkit.host.confine import sweep
from roundkit.measure.materialized import TRIED_PREFIX
from roundkit.measure.trees import remove_tree
from roundkit.rounds.layout import RoundFolder
from roundkit.rounds.recording import record_unmeasured
from roundkit.rounds.requests import Bench
from roundkit.rounds.status_mirror import mirror_ticket
from roundkit.store import RoundStore
from roundkit.store.events import INTERRUPTED


def recover(bench: Bench, store: RoundStore) -> None:
    """Take up what a killed serve or close left; whoever calls holds the round's serve lock.

    Processes of its trials are ended. Experiments that it had started stay on record, as interrupted;
    tickets that were being measured go back to the queue; its folders are removed.

    Raises:
        OSError: something cannot be removed.
    """
    sweep()
    unfinished = store.experiments.unfinished()
    noted = {event.fields.get("experiment") for event in store.events.all(INTERRUPTED)}
    with store.transaction():
        for experiment_id, subject in unfinished:
            if experiment_id not in noted:
                store.events.add(INTERRUPTED, experiment=experiment_id, subject=subject)
        for ticket in store.tickets.all("measuring"):
            store.tickets.requeue(ticket.key)
    for experiment_id, _ in unfinished:
        remove_tree(bench.work_folder(experiment_id))
    _remove_leftovers(bench.folder)
    for ticket in store.tickets.all():
        remove_tree(bench.checkout_folder(ticket.ticket))
        mirror_ticket(bench.folder, ticket)


def expire_queue(bench: Bench, store: RoundStore) -> list[str]:
    """Record what the round's deadline left unmeasured; return a line about each."""
    lines = []
    for ticket in [*store.tickets.all("queued"), *store.tickets.all("measuring")]:
        record_unmeasured(bench, store, ticket, "deadline")
        mirror_ticket(bench.folder, store.tickets.get(ticket.key))
        lines.append(f"{ticket.ticket} not measured: deadline")
    return lines


def _remove_leftovers(folder: RoundFolder) -> None:
    """Remove half-written files and git's locks: nobody else writes here while the serve lock is held."""
    for scratch in folder.store.glob("tmp*"):
        shutil.rmtree(scratch, ignore_errors=True)
    for tried in folder.checkouts.glob(f"{TRIED_PREFIX}*"):
        remove_tree(tried)
    for half in folder.blobs.glob(".*.tmp"):
        half.unlink(missing_ok=True)
    for lock in folder.repository.rglob("*.lock"):
        lock.unlink(missing_ok=True)
