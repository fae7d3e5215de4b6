"""Commits: the evidence against the campaign repository, whose object store is never written to."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from roundkit.audit.findings import Check, Disagreement, conclude, differs
from roundkit.audit.material import Material
from roundkit.core.canonical import digest_bytes
from roundkit.core.git import Repository
from roundkit.core.globs import GlobSet
from roundkit.core.process import CommandFailed
from roundkit.models.ledger import TicketRecord
from roundkit.rules.outcome import ending_of


def check_repository(material: Material, path: Path) -> list[Check]:
    """Check incumbent, candidates, composition and the new chain of commits against a repository."""
    repository = Repository(path)
    if repository.resolve(material.plan.incumbent) is None:
        missing = Disagreement(material.plan.incumbent, "the repository does not have the incumbent")
        return conclude("repository", [missing], "")
    with tempfile.TemporaryDirectory(prefix="roundkit-audit-") as scratch:
        trees = _Trees(material, repository, Path(scratch))
        return [
            *conclude("incumbent", _incumbent_problems(material, repository), "tree and protected files"),
            *conclude(
                "candidate trees", _tree_problems(material, trees), "laid anew from the submitted files"
            ),
            *conclude(
                "commits", _chain_problems(material, repository), "the chain that the ledger describes"
            ),
        ]


def _incumbent_problems(material: Material, repository: Repository) -> Iterator[Disagreement]:
    plan = material.plan
    tree = repository.tree_id(plan.incumbent)
    if tree != plan.incumbent_tree:
        yield differs("round-plan.json", "incumbent_tree", plan.incumbent_tree, tree)
    protected = GlobSet(plan.protected_paths).select(repository.paths(plan.incumbent))
    if sorted(protected) != sorted(plan.protected_files):
        yield differs("round-plan.json", "protected files", sorted(plan.protected_files), sorted(protected))
        return
    for name in protected:
        digest = digest_bytes(repository.read_blob(plan.incumbent, name))
        if digest != plan.protected_files[name]:
            yield differs("round-plan.json", f"digest of {name}", plan.protected_files[name], digest)


def _tree_problems(material: Material, trees: _Trees) -> Iterator[Disagreement]:
    incumbent = material.plan.incumbent_tree
    for ticket in material.ledger.tickets:
        if ticket.candidate_tree is not None:
            yield from trees.compare(ticket.ticket, ticket, incumbent, ticket.candidate_tree)
    head = incumbent
    for step in material.ledger.composition:
        composed = material.ticket(step.ticket)
        if composed is not None and step.tree is not None:
            yield from trees.compare(f"composition step {step.step}", composed, head, step.tree)
        if step.kept and step.tree is not None:
            head = step.tree


def _chain_problems(material: Material, repository: Repository) -> Iterator[Disagreement]:
    ledger, plan = material.ledger, material.plan
    branch = f"refs/heads/roundkit/{plan.round_id}"
    tip = repository.resolve(branch)
    if not ledger.advanced:
        if tip is not None:
            yield Disagreement(branch, "exists, though the round kept its incumbent")
        return
    if tip is None:
        yield Disagreement(branch, "the repository has no such branch")
        return
    accepted = ending_of(ledger.rerun).lanes
    steps = [step for step in ledger.composition if step.kept and step.lane in accepted]
    commit = tip
    for step in reversed(steps):
        parents = repository.git("rev-list", "--parents", "-n", "1", commit).text.split()[1:]
        if repository.tree_id(commit) != step.tree or len(parents) != 1:
            yield differs(commit, "tree", repository.tree_id(commit), step.tree)
            return
        yield from _trailer_problems(material, repository, commit, step.ticket)
        commit = parents[0]
    if commit != plan.incumbent:
        yield differs(branch, "first parent", commit, plan.incumbent)


def _trailer_problems(
    material: Material, repository: Repository, commit: str, ticket: str
) -> Iterator[Disagreement]:
    body = repository.git("log", "-1", "--format=%(trailers:only,unfold)", commit).text
    trailers = dict(line.split(": ", 1) for line in body.splitlines() if ": " in line)
    for name, wanted in (
        ("Roundkit-Ticket", ticket),
        ("Roundkit-Evidence-Index", material.evidence.digest),
    ):
        if trailers.get(name) != wanted:
            yield differs(commit, f"trailer {name}", trailers.get(name), wanted)


class _Trees:
    """Lays submitted files on a tree in a scratch object store that borrows the repository's objects."""

    def __init__(self, material: Material, repository: Repository, scratch: Path) -> None:
        self._material = material
        self._repository = repository
        self._scratch = scratch
        objects = repository.git("rev-parse", "--git-path", "objects").text
        (scratch / "objects").mkdir()
        self._env: Mapping[str, str] = {
            "GIT_INDEX_FILE": str(scratch / "index"),
            "GIT_OBJECT_DIRECTORY": str(scratch / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str((repository.path / objects).resolve()),
        }

    def compare(self, where: str, ticket: TicketRecord, parent: str, stands: str) -> Iterator[Disagreement]:
        """Yield a disagreement when the ticket's files on a tree do not give the recorded one."""
        computed = self.lay(ticket, parent)
        if computed != stands:
            yield differs(where, "tree", stands, computed)

    def lay(self, ticket: TicketRecord, parent: str) -> str | None:
        """Return the tree that a ticket's files on a tree give, or None when they do not fit."""
        removed, written = [], []
        for entry in ticket.manifest.entries:
            if entry.sha256 is None:
                removed.append(entry.path)
                continue
            data = self._material.evidence.blob(entry.sha256)
            blob = self._git("hash-object", "-w", "--stdin", "--no-filters", stdin=data)
            written.append((str(entry.mode), blob, entry.path))
        try:
            return self._repository.lay_tree(parent, removed=removed, written=written, env=self._env)
        except CommandFailed:
            return None

    def _git(self, *arguments: str, stdin: bytes = b"") -> str:
        return self._repository.git(*arguments, env=self._env, stdin=stdin).text
