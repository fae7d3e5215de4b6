"""Kills coordinators and wrappers at random while eight lanes submit, then counts what was lost.

``python -m support.chaos --kills 200 --seed 1`` plays as many whole rounds as that takes, each with its own
campaign: three fixture device sets, seven scripted lanes and one that is replayed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from support.killing import assert_no_leases, assert_nothing_runs, environment, plain_repo
from support.synthetic import CampaignRepo, knob, reachable_folder, write_files

from roundkit.audit import audit_round
from roundkit.host.devices.fixture import FIXTURE_VARIABLE
from roundkit.measure.trees import remove_tree
from roundkit.models.experiment import ExperimentRecord
from roundkit.rounds.control import read_status
from roundkit.store import open_store

SCRIPTED = tuple(f"L{number}" for number in range(1, 8))
REPLAYED = "L8"
KILLS_A_ROUND = 50
_PATCH = """\
--- a/knobs/L8.json
+++ b/knobs/L8.json
@@ -1 +1 @@
-{"value": 0.0, "mode": null}
\\ No newline at end of file
+{"value": 0.45, "mode": null}
\\ No newline at end of file
"""


@dataclass
class Counts:
    """What was done, and what must be zero."""

    rounds: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    tickets: int = 0
    lost_tickets: int = 0
    double_verdicts: int = 0
    overlapping_leases: int = 0
    audit_failures: int = 0
    failed_commands: int = 0

    @property
    def killed(self) -> int:
        return sum(self.kills.values())

    @property
    def clean(self) -> bool:
        bad = self.lost_tickets + self.double_verdicts + self.overlapping_leases + self.audit_failures
        return bad + self.failed_commands == 0

    def lines(self) -> list[str]:
        kills = ", ".join(f"{count} {what}" for what, count in sorted(self.kills.items()))
        return [
            f"{self.killed} kills ({kills}) over {self.rounds} rounds, {self.tickets} tickets accepted",
            f"lost tickets: {self.lost_tickets}",
            f"double verdicts: {self.double_verdicts}",
            f"overlapping leases: {self.overlapping_leases}",
            f"audit failures: {self.audit_failures}",
            f"commands that failed without being killed: {self.failed_commands}",
        ]


class Round:
    """One round under fire."""

    def __init__(self, root: Path, chance: random.Random, counts: Counts) -> None:
        self._root, self._chance, self._counts = root, chance, counts
        self._repo = _campaign(root)
        self._folder, _ = self._repo.launched(root / "round")
        self._leases = root / "leases"
        self._env = {**environment(self._leases), FIXTURE_VARIABLE: str(root / "devices")}
        self._submitted: set[str] = set()

    def play(self, kills: int) -> None:
        """Fill the lanes, serve and close, killing whatever runs now and then."""
        for_close = kills // 4
        left, values = kills - for_close, {lane: [0.2, 0.3] for lane in SCRIPTED}
        while left > 0 or values:
            serve = self._start("serve", "--until-deadline")
            until = time.monotonic() + self._chance.uniform(0.3, 8.0)
            while time.monotonic() < until and serve.poll() is None:
                left -= self._lane_turn(values, left)
            left -= self._kill(serve, "serve")
        left = for_close
        self._finish_serve()
        while left > 0:
            close = self._start("close")
            try:
                close.wait(self._chance.uniform(0.3, 7.0))
            except subprocess.TimeoutExpired:
                left -= self._kill(close, "close")
            else:
                self._counts.failed_commands += close.returncode != 0
                break
        self._run("close")
        self._count()

    def _lane_turn(self, values: dict[str, list[float]], left: int) -> int:
        """Let a lane submit, perhaps killing its wrapper first; return how many kills that took."""
        lane = self._chance.choice([*values, REPLAYED])
        kills = 0
        if lane == REPLAYED:
            if left <= 0 or self._chance.random() < 0.7:
                time.sleep(0.1)
                return 0
            drive = self._start("launch", "--drive", "replay")
            time.sleep(self._chance.uniform(0.2, 2.5))
            return self._kill(drive, "launch")
        value = values[lane].pop()
        if not values[lane]:
            del values[lane]
        clone = self._folder.clone(lane)
        write_files(clone, {f"knobs/{lane}.json": knob(value + SCRIPTED.index(lane) / 100)})
        if left > 0 and self._chance.random() < 0.5:
            wrapper = self._wrapper(clone)
            time.sleep(self._chance.uniform(0.0, 0.25))
            kills = self._kill(wrapper, "wrapper")
        said, _ = self._wrapper(clone).communicate(timeout=120)
        self._submitted.add(json.loads(said)["ticket"])
        return kills

    def _finish_serve(self) -> None:
        """Serve what waits, and make sure that the replayed lane has handed over too."""
        said, _ = self._wrapper(self._folder.clone(REPLAYED)).communicate(timeout=120)
        ticket = json.loads(said).get("ticket")
        if ticket is not None:
            self._submitted.add(ticket)
        self._run("serve", "--until-idle")

    def _count(self) -> None:
        assert_nothing_runs(self._folder)
        assert_no_leases(self._leases)
        status = read_status(self._folder)
        ended = {one.ticket for _, one in status.tickets if one.state == "measured"}
        self._counts.tickets += len(status.tickets)
        self._counts.lost_tickets += len(
            (self._submitted | {one.ticket for _, one in status.tickets}) - ended
        )
        with open_store(self._folder.database, read_only=True) as store:
            verdicts = Counter(
                event.fields["ticket"] for event in store.events.all() if event.kind == "verdict"
            )
            records = store.experiments.records()
        complete = Counter(record.subject for record in records if record.outcome == "complete")
        again = {name for name, count in verdicts.items() if count > 1} | {
            name for name, count in complete.items() if count > 1
        }
        self._counts.double_verdicts += len(again)
        self._counts.overlapping_leases += _overlaps(records)
        evidence = self._repo.root / "evidence/knobs/rounds/r01"
        report = audit_round(evidence, repository=self._repo.root)
        self._counts.audit_failures += sum(not check.passed for check in report.checks)
        for check in report.checks:
            if not check.passed:
                print(check, file=sys.stderr)

    def _start(self, command: str, *words: str) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", "roundkit", command, str(self._folder.root), *words]
        log = (self._root / f"{command}.log").open("ab")
        with log:
            return subprocess.Popen(argv, env=self._env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _wrapper(self, clone: Path) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-I", clone / ".roundkit" / "round", "submit"]
        return subprocess.Popen(argv, cwd=clone, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def _kill(self, process: subprocess.Popen[bytes], what: str) -> int:
        if process.poll() is not None:
            return 0
        process.kill()
        process.communicate()
        self._counts.kills[what] += 1
        return 1

    def _run(self, command: str, *words: str) -> None:
        process = self._start(command, *words)
        process.wait(900)
        if process.returncode != 0:
            self._counts.failed_commands += 1
            print((self._root / f"{command}.log").read_text()[-3000:], file=sys.stderr)


def _campaign(root: Path) -> CampaignRepo:
    (root / "devices").mkdir(parents=True)
    sets = []
    for name in "abc":
        (root / "devices" / f"{name}.json").write_text("{}")
        sets.append({"id": f"set-{name}", "platform": "fixture", "devices": [name]})
    os.environ[FIXTURE_VARIABLE] = str(root / "devices")
    repo = plain_repo(root / "campaign", (*SCRIPTED, REPLAYED), device_sets=sets)
    (root / "replayed.patch").write_text(_PATCH)

    def replayed(draft: dict[str, list[dict[str, object]]]) -> None:
        draft["lanes"][-1].update(harness="replay", replay=[str(root / "replayed.patch")])

    repo.edit_round(replayed)
    return repo


def _overlaps(records: list[ExperimentRecord]) -> int:
    held = [record.lease for record in records if record.lease is not None]
    return sum(
        one.acquired_utc < other.released_utc
        and other.acquired_utc < one.released_utc
        and not set(one.devices).isdisjoint(other.devices)
        for one, other in itertools.combinations(held, 2)
    )


def run_chaos(kills: int, seed: int) -> Counts:
    """Play rounds until so many processes were killed."""
    counts, chance = Counts(), random.Random(seed)
    while counts.killed < kills:
        with reachable_folder() as root:
            Round(root / "r", chance, counts).play(min(KILLS_A_ROUND, kills - counts.killed))
            counts.rounds += 1
            remove_tree(root / "r")
        print(f"{counts.killed} of {kills} kills", file=sys.stderr, flush=True)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    counts = run_chaos(chosen.kills, chosen.seed)
    print("\n".join(counts.lines()))
    sys.exit(0 if counts.clean else 1)


if __name__ == "__main__":
    main()
