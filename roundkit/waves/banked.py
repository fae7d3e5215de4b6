"""What is banked: the git history of the tree says it, and nothing else does."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from roundkit.core.git import Repository
from roundkit.models.wave_records import Draft, Key

_CAMPAIGN = "Roundkit-Campaign"
_PLAN = "Roundkit-Plan"
_WAVE = "Roundkit-Wave"
_RUN = "Roundkit-Run"
_BANKED = "Roundkit-Banked"
_REVERTS = "This reverts commit "
_REVERTED = re.compile(rf"^{_REVERTS}([0-9a-f]{{40,64}})", re.MULTILINE)


@dataclass(frozen=True)
class BankCommit:
    """A commit that banked drafts, as its trailers tell.

    Attributes:
        plan_sha256: The frozen plan's digest; campaigns frozen one after the other may share their id.
        run: Number of the gate's run of that wave.
        banked: Group, name and digest of each draft.
    """

    commit: str
    campaign: str
    plan_sha256: str
    tag: str
    run: int
    banked: tuple[tuple[str, str, str], ...]


def bank_message(campaign: str, plan_sha256: str, tag: str, run: int, drafts: Iterable[Draft]) -> str:
    """Return the message of a commit that banks drafts; :func:`bank_commits` reads it back."""
    rows = [f"{_BANKED}: {draft.group} {draft.name} {draft.sha256}" for draft in drafts]
    count = f"{len(rows)} target{'' if len(rows) == 1 else 's'}"
    trailers = [f"{_CAMPAIGN}: {campaign}", f"{_PLAN}: {plan_sha256}", f"{_WAVE}: {tag}", f"{_RUN}: {run}"]
    return f"Bank {count} of wave {tag}\n\n" + "\n".join([*trailers, *rows]) + "\n"


@dataclass(frozen=True)
class _History:
    """What was read of a history.

    Attributes:
        head: Its newest commit.
        banks: Commits that banked drafts, newest first.
        reverts: Commit by the one that it reverts.
    """

    head: str
    banks: tuple[BankCommit, ...] = ()
    reverts: tuple[tuple[str, str], ...] = ()


_cache: dict[tuple[str, str], _History] = {}
_lock = threading.Lock()


def bank_commits(tree: Path, campaign: str) -> tuple[BankCommit, ...]:
    """Return every commit of HEAD's history that banked drafts of a campaign, newest first.

    One that ``git revert`` took back is none. What was read for one HEAD is kept, so that a later one costs
    only what is new since then.

    Raises:
        CommandFailed: the tree is no working tree of git.
    """
    repository = Repository(tree)
    head = repository.resolve("HEAD")
    if head is None:
        return ()
    with _lock:
        known = _cache.get((str(tree), campaign))
    if known is None or known.head != head:
        since = known if known is not None and _is_ancestor(repository, known.head, head) else None
        known = _read(repository, campaign, head, since)
        with _lock:
            _cache[str(tree), campaign] = known
    reverts = dict(known.reverts)
    return tuple(commit for commit in known.banks if not _is_reverted(commit.commit, reverts))


def banked_keys(tree: Path, campaign: str) -> frozenset[Key]:
    """Return the (group, name) of every target that HEAD's history holds a bank of.

    Raises:
        CommandFailed: the tree is no working tree of git.
    """
    return frozenset(
        (group, name) for commit in bank_commits(tree, campaign) for group, name, _ in commit.banked
    )


def _is_ancestor(repository: Repository, old: str, new: str) -> bool:
    return repository.git("merge-base", "--is-ancestor", old, new, check=False).exit_code == 0


def _is_reverted(commit: str, reverts: Mapping[str, str]) -> bool:
    """Say whether a revert of a commit stands, and was not reverted itself."""
    return any(of == commit and not _is_reverted(revert, reverts) for revert, of in reverts.items())


def _read(repository: Repository, campaign: str, head: str, since: _History | None) -> _History:
    wanted = (f"{_CAMPAIGN}: {campaign}", _REVERTS)
    log = repository.git(
        "log", "-z", "--format=%H%n%B", "--fixed-strings", *(f"--grep={words}" for words in wanted),
        head, *(() if since is None else (f"^{since.head}",)), "--",
    ).stdout  # fmt: skip
    before = since or _History(head)
    entries = [entry for entry in log.decode("utf-8", "replace").split("\0") if entry.strip()]
    found = [commit for entry in entries if (commit := _parsed(entry)) is not None]
    reverts = [
        (entry.partition("\n")[0].strip(), reverted.group(1))
        for entry in entries
        if (reverted := _REVERTED.search(entry)) is not None
    ]
    return _History(
        head,
        (*(commit for commit in found if commit.campaign == campaign), *before.banks),
        (*reverts, *before.reverts),
    )


def _parsed(entry: str) -> BankCommit | None:
    commit, _, message = entry.partition("\n")
    # Trailers are the last paragraph; the same words in the prose of another message are none.
    last = message.strip().rpartition("\n\n")[2]
    rows = [row.partition(": ") for row in last.splitlines()]
    fields: dict[str, list[str]] = {}
    for name, _, value in rows:
        fields.setdefault(name, []).append(value.strip())
    banked = [tuple(value.split(" ")) for value in fields.get(_BANKED, ())]
    try:
        return BankCommit(
            commit=commit.strip(),
            campaign=fields[_CAMPAIGN][0],
            plan_sha256=fields[_PLAN][0],
            tag=fields[_WAVE][0],
            run=int(fields[_RUN][0]),
            banked=tuple((group, name, digest) for group, name, digest in banked),
        )
    except (KeyError, ValueError):
        return None
