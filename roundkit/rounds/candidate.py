"""Candidates as commits: a ticket's files laid on a parent, without any checkout."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from roundkit.core.clock import format_utc
from roundkit.core.git import Repository, identity_environment
from roundkit.models.ledger import TicketRecord
from roundkit.models.round_plan import RoundPlan
from roundkit.rounds.layout import RoundFolder
from roundkit.rules.layering import misfit

COMMITTER = "roundkit"
COMMITTER_EMAIL = "roundkit@localhost"


@dataclass(frozen=True)
class Laid:
    """A commit and its tree."""

    commit: str
    tree: str


class CannotLay(Exception):
    """The files do not fit on the parent, e.g. a file where the parent has a folder."""


def lay_candidate(folder: RoundFolder, plan: RoundPlan, ticket: TicketRecord, parent: str) -> Laid:
    """Commit a ticket's files on a parent in the coordinator's repository.

    The same ticket on the same parent gives the same commit.

    Args:
        folder: The round.
        plan: Its frozen plan.
        ticket: The candidate.
        parent: The incumbent, or the head of the composition so far.

    Raises:
        CannotLay: a path would be a file and a folder at once.
        CommandFailed: git broke, which is not the candidate's doing.
    """
    repository = Repository(folder.repository)
    tree = _lay_tree(folder, repository, ticket, parent)
    lane = plan.lane(ticket.lane)
    message = (
        f"{lane.id}: {_one_line(lane.hypothesis)}\n\n"
        f"Roundkit-Round: {plan.round_id}\nRoundkit-Ticket: {ticket.ticket}\n"
        f"Roundkit-Lane: {lane.id}\nRoundkit-Plane: {lane.plane}\n"
    )
    identity = identity_environment(COMMITTER, COMMITTER_EMAIL, format_utc(ticket.intake_utc))
    commit = repository.git(
        "commit-tree", tree, "-p", parent, "-F", "-", env=identity, stdin=message.encode()
    ).text
    # A ref keeps the commit from being collected.
    repository.git("update-ref", f"refs/roundkit/candidates/{commit}", commit)
    return Laid(commit, tree)


def _lay_tree(folder: RoundFolder, repository: Repository, ticket: TicketRecord, parent: str) -> str:
    entries = ticket.manifest.entries
    blocked = misfit(
        repository.paths(parent),
        {entry.path for entry in entries if entry.deleted},
        {entry.path for entry in entries if not entry.deleted},
    )
    if blocked is not None:
        raise CannotLay(f"{blocked!r} would be a file and a folder")
    written = [
        (str(entry.mode), _store_blob(repository, folder.blobs / entry.sha256), entry.path)
        for entry in entries
        if entry.sha256 is not None
    ]
    removed = [entry.path for entry in entries if entry.deleted]
    with tempfile.TemporaryDirectory(dir=folder.store) as scratch:
        index = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        return repository.lay_tree(parent, removed=removed, written=written, env=index)


def _store_blob(repository: Repository, blob: Path) -> str:
    return repository.git("hash-object", "-w", "--no-filters", "--", blob).text


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200]
