"""Killing a coordinator at a chosen moment, and looking at what it leaves behind."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.command_line import run_roundkit
from support.processes import ended_with_test
from support.synthetic import CampaignRepo, campaign_repo, knob, scripted_lane

import roundkit
from roundkit.core.git import Repository
from roundkit.host.lease import holders
from roundkit.models.ledger import RoundLedger
from roundkit.rounds.intake import Intake, take_in
from roundkit.rounds.layout import RoundFolder, read_plan
from roundkit.store import open_store

_TESTS = Path(__file__).parent.parent
_PACKAGES = Path(roundkit.__file__).parent.parent
_TRIES = 1500


def environment(lease_root: Path) -> dict[str, str]:
    """Return the environment of a coordinator whose leases are this test's own."""
    path = os.pathsep.join([str(_PACKAGES), str(_TESTS)])
    return {**os.environ, "PYTHONPATH": path, "ROUNDKIT_LEASE_ROOT": str(lease_root)}


def start(lease_root: Path, *words: str | Path, **options: Any) -> subprocess.Popen[str]:
    """Start a roundkit command as a process of its own; its output goes to a pipe."""
    return ended_with_test(subprocess.Popen(
        [sys.executable, "-m", "roundkit", *map(str, words)],
        env=environment(lease_root), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options,
    ))  # fmt: skip


def run_until_killed(where: int | str, lease_root: Path, *words: str | Path, **more: str) -> bool:
    """Run a roundkit command that is killed where support.killed_cli says; False when it ended before that.

    Args:
        where: A number of a transition, or a function's call.
        lease_root: Where it keeps leases.
        words: The command.
        more: Further variables of its environment.
    """
    done = subprocess.run(
        [sys.executable, "-m", "support.killed_cli", str(where), *map(str, words)],
        env={**environment(lease_root), **more}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode in {0, -signal.SIGKILL}, done.stdout + done.stderr
    return done.returncode != 0


def run_to_end(lease_root: Path, *words: str | Path, expect: int = 0) -> str:
    """Run a roundkit command to its end and return what it said."""
    done = run_roundkit(*words, env=environment(lease_root))
    said = done.stdout + done.stderr
    assert done.returncode == expect, said
    return said


def wait_for(condition: Any, what: str) -> Any:
    """Wait for a state, and return it; give up when it plainly does not come."""
    for _ in range(_TRIES):
        found = condition()
        if found:
            return found
        time.sleep(0.04)
    raise AssertionError(f"this never came: {what}")


def assert_nothing_runs(folder: RoundFolder) -> None:
    """Wait until no process has anything of a round mounted: all its confined commands are gone."""
    needle = f" {folder.root}/".encode()
    own = os.getpid()

    def mounted() -> list[str]:
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == own:
                continue
            try:
                mounts = (entry / "mountinfo").read_bytes()
            except OSError:
                continue
            # A confined process sees the round's folders as the sources of its mounts.
            if needle in mounts or str(folder.root).encode() + b"/checkouts" in mounts:
                found.append(entry.name)
        return found

    wait_for(lambda: not mounted(), f"the end of every process in {folder.root}")


def assert_no_leases(lease_root: Path) -> None:
    """Wait until no device has a holder.

    A child that a killed coordinator had forked, but that had not come to its program yet, has the lock for
    a moment more.
    """
    wait_for(lambda: not holders(lease_root), f"the end of every lease in {lease_root}")


def assert_one_verdict_each(folder: RoundFolder, lease_root: Path, tickets: Sequence[str]) -> None:
    """Check what must hold whenever a round is idle, whatever happened to its coordinators before."""
    with open_store(folder.database, read_only=True) as store:
        records = {ticket.ticket: ticket for ticket in store.tickets.all()}
        verdicts = Counter(
            str(event.fields["ticket"]) for event in store.events.all() if event.kind == "verdict"
        )
        assert set(records) == set(tickets)
        for name, ticket in records.items():
            assert ticket.state in {"measured", "rejected"}, name
            assert verdicts[name] == (ticket.state == "measured"), name
            complete = [one for one in store.experiments.records(name) if one.outcome == "complete"]
            assert len(complete) <= 1, name
    assert_no_leases(lease_root)
    assert_nothing_runs(folder)


@dataclass(frozen=True)
class Scene:
    """A round with submissions in a folder that can be put back to how it was.

    Attributes:
        root: Holds the program, the round and the leases.
        tickets: Name of every ticket that was submitted.
    """

    root: Path
    repo: CampaignRepo
    folder: RoundFolder
    tickets: tuple[str, ...]

    @property
    def leases(self) -> Path:
        return self.root / "leases"

    @property
    def _backup(self) -> Path:
        return self.root.with_name(f"{self.root.name}-before")

    def take_in(self) -> None:
        """Take in what was submitted, so that every later serve has the same tickets from the same moment."""
        plan = read_plan(self.folder)
        with open_store(self.folder.database) as store:
            take_in(Intake(self.folder, plan, plan.digest()), store)

    def keep(self) -> None:
        """Remember how everything is now."""
        shutil.rmtree(self._backup, ignore_errors=True)
        shutil.copytree(self.root, self._backup, symlinks=True)

    def put_back(self) -> None:
        """Make everything as it was when it was kept."""
        shutil.rmtree(self.root)
        shutil.copytree(self._backup, self.root, symlinks=True)


def plain_repo(root: Path, lanes: Sequence[str], **options: Any) -> CampaignRepo:
    """Build a campaign without noise and with as few confined commands as a round can have."""
    root.mkdir(mode=0o711, exist_ok=True)
    repo = campaign_repo(root, lanes, noise=0.0, **options)
    repo.edit_campaign(lambda plan: [plan.pop(key) for key in ("validator", "smoke", "target_package")])
    return repo


def scene(root: Path, values: dict[str, float | str], **options: Any) -> Scene:
    """Launch a round and submit one knob a lane; a text in place of a value is the knob's whole file."""
    repo = plain_repo(root, list(values), **options)
    folder, _ = repo.launched(root / "round")
    tickets = [
        scripted_lane(
            folder.clone(lane),
            {f"knobs/{lane}.json": value if isinstance(value, str) else knob(value)},
        )["ticket"]
        for lane, value in values.items()
    ]
    return Scene(root, repo, folder, tuple(tickets))


def decisions(ledger: RoundLedger) -> Any:
    """Return a ledger without what an interruption may change: times, and which try an experiment was."""
    document = ledger.to_json_value()
    text = re.sub(r'"closed_utc": *"[^"]*"', '"closed_utc":""', _canonical(document))
    text = re.sub(r'"measured_utc": *"[^"]*"', '"measured_utc":""', text)
    return re.sub(r'((?:step-\d+-L\d|rerun|fallback|alone-L\d))\.\d+"', r'\1"', text)


def chain(repo: CampaignRepo, branch: str) -> str:
    """Return trees and messages of a round's commits, without the digest of the evidence (it holds times)."""
    log = Repository(repo.root).git("log", "--format=%T %B", f"main..{branch}").text
    return re.sub(r"Roundkit-Evidence-Index: \w+", "", log)


def _canonical(document: Any) -> str:
    from roundkit.core.canonical import canonical_bytes

    return canonical_bytes(document).decode()
