"""From a ticket to a built candidate, or to what keeps it from being one."""

from __future__ import annotations

from roundkit.measure.broke import is_full
from roundkit.models.ledger import TicketRecord
from roundkit.rounds.building import Built, build_side
from roundkit.rounds.candidate import CannotLay, Laid, lay_candidate
from roundkit.rounds.disk_space import DiskFull, full_sentence
from roundkit.rounds.requests import Bench


def build_ticket(bench: Bench, ticket: TicketRecord) -> tuple[Laid | None, Built]:
    """Lay a ticket's files on the incumbent, and build, probe and smoke them.

    Raises:
        DiskFull: a step failed on a disk without space; that says nothing about the candidate.
        RoundkitError, OSError: the host failed.
    """
    try:
        laid = lay_candidate(bench.folder, bench.plan, ticket, bench.plan.incumbent)
    except CannotLay as error:
        _refuse_full(bench)
        return None, Built(None, (), "malformed", str(error))
    built = build_side(
        bench.folder,
        bench.plan,
        bench.spec,
        commit=laid.commit,
        tree=laid.tree,
        target=bench.checkout_folder(ticket.ticket),
        provision=bench.provision,
    )
    if built.cause is not None:
        _refuse_full(bench)
    return laid, built


def _refuse_full(bench: Bench) -> None:
    if is_full(bench.folder.root):
        raise DiskFull(full_sentence(bench.folder.root, "resume"))
