"""Candidates as commits: a ticket's files laid on a parent, without any checkout."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from roundkit.core.clock import format_utc
from roundkit.core.git import Repository, identity_environment
from roundkit.core.process import CommandFailed
from roundkit.models.ledger import TicketRecord
from roundkit.models.round_plan import RoundPlan
from roundkit.rounds.layout import RoundFolder

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
        CannotLay: git refuses the combination of paths.
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
    removed, written = [], []
    for entry in ticket.manifest.entries:
        if entry.sha256 is None:
            removed.append(f"0 {'0' * 40}\t{entry.path}\0")
        else:
            blob = repository.git("hash-object", "-w", "--no-filters", "--", folder.blobs / entry.sha256).text
            written.append(f"{entry.mode} {blob}\t{entry.path}\0")
    with tempfile.TemporaryDirectory(dir=folder.store) as scratch:
        index = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        repository.git("read-tree", parent, env=index)
        try:
            # Deletions first, so that a folder may become a file and a file a folder.
            for rows in (removed, written):
                repository.git("update-index", "-z", "--index-info", env=index, stdin="".join(rows).encode())
            return repository.git("write-tree", env=index).text
        except CommandFailed as error:
            raise CannotLay(error.completed.error_tail) from error


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200]
