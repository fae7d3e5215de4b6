"""The gater: takes drafted waves to their ledger row, one after the other; it may be killed at any moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from roundkit.core.canonical import digest_bytes
from roundkit.core.errors import refuse
from roundkit.core.progress import SILENT, Progress
from roundkit.models.wave_gate import RunMode
from roundkit.models.wave_records import LedgerRow
from roundkit.rounds.locks import hold_lock
from roundkit.rules.wave_steps import waiting_waves
from roundkit.waves import locks, stop
from roundkit.waves.banked import banked_keys
from roundkit.waves.calls import Calls
from roundkit.waves.commit import Committer, git_folder
from roundkit.waves.drafter_state import is_finished
from roundkit.waves.folder import CampaignFolder, open_campaign
from roundkit.waves.freeze import check_tools
from roundkit.waves.ledger import restore_rows
from roundkit.waves.owners import collect_owned
from roundkit.waves.parked import parked as parked_drafts
from roundkit.waves.run_folder import RunFolder, begin_run, earlier_of, runs_of
from roundkit.waves.run_steps import RunOfGate

TREE_LOCK = "roundkit-gater.lock"
"""In the tree's git folder: campaigns that share a tree have one gater at a time."""

_LOOK_EVERY_S = 0.5


def run_gater(
    folder: Path,
    *,
    only: str | None = None,
    parked: bool = False,
    progress: Progress = SILENT,
    mark: Callable[[str], None] = lambda _: None,
) -> int:
    """Gate drafted waves in the order of their tags, until the drafter has ended or a stop is asked for.

    Whatever an earlier gater was killed in is finished first.

    Args:
        folder: The campaign's folder.
        only: Gate what this one wave has that is not decided yet, and end: drafts of stragglers, or those
            that a killed drafter left.
        parked: Gate the groups that were put aside, and end.
        progress: Shows how it goes.
        mark: Told each state that a run has come to, before it goes on.

    Returns:
        The exit code: 0, or 1 where ``only`` or ``parked`` ended with drafts that nothing gave an answer for.

    Raises:
        Refused: ``no-campaign``, ``tools-changed``, ``gater-running``, ``no-wave``, ``wave-drafting``,
            ``tree-busy`` or ``tree-not-committed``.
        ConfinementUnavailable: the host cannot confine a command.
        OSError: something cannot be written, as on a full disk; the next start goes on from there.
    """
    campaign = open_campaign(folder)
    check_tools(campaign)
    with _alone(campaign):
        committer = Committer(campaign.tree, campaign.plan.plan.commit, progress.say)
        committer.begin()
        gater = _Gater(campaign, Calls(campaign), committer, progress, mark)
        if not gater.finish_begun():
            return 0
        if only is not None:
            return gater.gate_only(only)
        if parked:
            return gater.gate_parked()
        gater.gate_waves()
        return 0


@contextmanager
def _alone(campaign: CampaignFolder) -> Iterator[None]:
    """Be the one gater of the campaign and of its tree."""
    tree_lock = git_folder(campaign.tree) / TREE_LOCK
    what = f"a gater of {campaign.tree}"
    with locks.hold(campaign, "gater"), hold_lock(tree_lock, code="gater-running", what=what):
        yield


@dataclass(frozen=True)
class _Gater:
    campaign: CampaignFolder
    calls: Calls
    committer: Committer
    progress: Progress
    mark: Callable[[str], None]

    def stopping(self) -> bool:
        """Say whether to end after the current step."""
        return stop.is_asked(self.campaign)

    def finish_begun(self) -> bool:
        """Finish every run that an earlier gater was killed in; False where a stop was asked for first.

        A row that is gone from the ledger comes back from its run's own record.
        """
        runs = [run for tag in self.campaign.tags() for run in runs_of(self.campaign, tag)]
        restore_rows(self.campaign, [run for run in runs if run.ended])
        for run in [run for run in runs if not run.ended]:
            self.progress.say(f"wave {run.run.tag}: a run of an earlier gater is finished first")
            if self._go_on(run) is None:
                return False
        return True

    def gate_waves(self) -> None:
        """Gate what is drafted, and wait for more for as long as there is a drafter to come."""
        alone = False
        while not self.stopping():
            # Asked first: a wave that is handed on just before the drafter ends is then listed below.
            finished = is_finished(self.campaign)
            drafted = [tag for tag in self.campaign.tags() if self.campaign.drafted(tag) is not None]
            waiting = waiting_waves(drafted, self.campaign.ledger())
            if waiting:
                self._go_on(begin_run(self.campaign, waiting[0], "wave"))
                continue
            if finished:
                self.progress.say("every drafted wave is gated, and the drafter has ended")
                return
            if alone != (alone := not locks.runs(self.campaign, "drafter")) and alone:
                self.progress.say("no drafter runs; waiting for one (`roundkit waves stop` ends this)")
            time.sleep(_LOOK_EVERY_S)

    def gate_only(self, tag: str) -> int:
        """Gate what a wave has that no earlier run decided."""
        campaign = self.campaign
        campaign.read_wave(tag)
        drafted = campaign.drafted(tag) is not None
        if not drafted and locks.runs(campaign, "drafter"):
            raise refuse(
                "wave-drafting",
                f"wave {tag} is still being drafted, or waits for it",
                remedy="wait until it is handed on, or stop the drafter",
            )
        mode: RunMode = "wave" if drafted and tag not in campaign.gated() else "gate-only"
        banked = banked_keys(campaign.tree, campaign.plan.plan.campaign_id)
        earlier = earlier_of(runs_of(campaign, tag))
        new = collect_owned(campaign, tag, banked, earlier, digest_bytes)
        if mode == "gate-only" and not new.drafts and not any(row.group is None for row in new.refused):
            self.progress.say(f"wave {tag}: no draft that is not decided")
            return 0
        return self._code(begin_run(campaign, tag, mode))

    def gate_parked(self) -> int:
        """Gate what lies aside, as one batch."""
        waiting = parked_drafts(self.campaign)
        if not waiting:
            self.progress.say("nothing is parked")
            return 0
        return self._code(begin_run(self.campaign, waiting[-1].tag, "parked"))

    def _code(self, run: RunFolder) -> int:
        if self._go_on(run) is None:
            return 0
        unanswered = any(not reject.decided for group in run.gate.groups for reject in group.rejected)
        return 1 if run.prefilter.failure is not None or unanswered else 0

    def _go_on(self, run: RunFolder) -> LedgerRow | None:
        row = RunOfGate(run, self.calls, self.committer, self.progress, self.stopping, self.mark).go_on()
        if row is not None:
            self.progress.say(
                f"wave {row.tag} ({row.mode}): {row.banked} banked of {row.gated} gated, {row.drafts} drafts"
            )
        return row
