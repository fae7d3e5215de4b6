"""One gate's run of a wave, step by step; each step leaves a record, and a restart goes on after the last."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from roundkit.core.clock import now_utc
from roundkit.core.progress import Progress
from roundkit.evidence import wave_layout as names
from roundkit.measure.trees import remove_tree
from roundkit.models.base import Record
from roundkit.models.wave_gate import (
    CommitStep,
    GateStep,
    HarvestStep,
    OwnersStep,
    PickStep,
    PrefilterStep,
    RejectRows,
    RunEnd,
)
from roundkit.models.wave_records import Draft, Key, LedgerRow, Rejected, Target
from roundkit.rules.wave_pick import by_target, counts, shared_outputs, taken_before
from roundkit.rules.wave_steps import STEPS, Identity, Step, next_step
from roundkit.waves.banked import banked_keys
from roundkit.waves.calls import Calls
from roundkit.waves.commit import Committer
from roundkit.waves.gating import Gating
from roundkit.waves.harvest import harvest
from roundkit.waves.ledger import append_once, append_rejects, compose_row
from roundkit.waves.owners import collect_owned, collect_parked, reject_row
from roundkit.waves.parked import park, take_up
from roundkit.waves.prefilter import prefilter
from roundkit.waves.run_bank import RunBank
from roundkit.waves.run_folder import RunFolder, earlier_of, runs_of
from roundkit.waves.scoring import pick_best


@dataclass(frozen=True)
class RunOfGate:
    """Takes a run through its steps.

    Attributes:
        folder: The run.
        calls: Makes its calls.
        committer: Writes the tree.
        progress: Shows how it goes.
        stopping: Says whether to end after the current step.
        mark: Told each state that the run has come to.
    """

    folder: RunFolder
    calls: Calls
    committer: Committer
    progress: Progress
    stopping: Callable[[], bool]
    mark: Callable[[str], None]

    def go_on(self) -> LedgerRow | None:
        """Do what is left of the run and return its row; null where a stop was asked for first.

        Raises:
            Refused: ``tree-busy``, ``tree-not-committed``: the gate is refused, and the run stays as it is.
            CallBroke: a call ended through no doing of its command.
            ConfinementUnavailable: the host cannot confine a command.
            CommandFailed: git failed.
            OSError: something cannot be written; the run stays as it is.
        """
        step: Step | None
        while (step := next_step([each for each in STEPS if self.folder.has(each)])) is not None:
            if self.stopping():
                return None
            self.mark(step)
            record = self._do(step, time.monotonic())
            if record is None:
                return None
            self.folder.record(step, record)
            self.mark(f"{step} recorded")
        return self._finish()

    def _do(self, step: Step, began_s: float) -> Record | None:
        """Do one step and return its record; null where a stop was asked for within it."""
        match step:
            case "owners":
                return self._owners(began_s)
            case "prefilter":
                return self._prefilter(began_s)
            case "pick":
                return self._pick(began_s)
            case "gate":
                return self._gate(began_s)
            case "commit":
                return self._commit(began_s)
            case "harvest":
                return self._harvest(began_s)
            case "row":
                return compose_row(self.folder)

    def _owners(self, began_s: float) -> OwnersStep:
        campaign, tag, keep = self.folder.campaign, self._tag, self.folder.store.put
        banked = banked_keys(campaign.tree, campaign.plan.plan.campaign_id)
        if self._is_parked:
            owned = collect_parked(campaign, tag, banked, keep)
        else:
            owned = collect_owned(campaign, tag, banked, earlier_of(runs_of(campaign, tag)), keep)
        unresolved = sum(row.group is None for row in owned.refused)
        known = len(owned.refused) - unresolved
        self._say(f"{len(owned.drafts)} drafts; {unresolved} without one owner, {known} banked before")
        return OwnersStep(
            drafts=owned.drafts,
            targets=owned.targets,
            refused=owned.refused,
            unresolved=unresolved,
            took_s=_since(began_s),
        )

    def _prefilter(self, began_s: float) -> PrefilterStep:
        if self._is_parked:
            # They passed it before they were put aside.
            return PrefilterStep(results=(), failure=None, took_s=0.0)
        results, failure = prefilter(self.calls, self.folder)
        said = ", ".join(f"{count} {status}" for status, count in counts(results).items())
        self._say(f"prefilter: {said or 'nothing to do'}")
        if failure is not None:
            self._say(f"*** {failure}: nothing of this wave passes")
        return PrefilterStep(results=tuple(results), failure=failure, took_s=_since(began_s))

    def _pick(self, began_s: float) -> PickStep:
        refused: list[Rejected] = []
        passed = self._passed(refused)
        targets = self._targets()
        attempts = by_target(passed)
        contested = [(targets[key], drafts) for key, drafts in attempts.items() if len(drafts) > 1]
        taken = {key: drafts[0] for key, drafts in attempts.items()}
        taken |= {(draft.group, draft.name): draft for draft in pick_best(self.calls, self.folder, contested)}
        for draft in passed:
            best = taken[draft.group, draft.name]
            if draft != best:
                refused.append(reject_row(self._tag, "score", draft, taken_before(best)))
        apart = () if self._is_parked else self.folder.campaign.plan.plan.gate.parked_groups
        parked = [draft for draft in taken.values() if draft.group in apart]
        refused += [reject_row(self._tag, "parked", draft, "its group is gated apart") for draft in parked]
        going = self._fitting([draft for draft in taken.values() if draft.group not in apart], refused)
        placed = [(targets[draft.group, draft.name], draft) for draft in parked]
        park(self.folder.campaign, self._tag, placed, self.folder.store)
        return PickStep(
            chosen=tuple(going), parked=tuple(parked), refused=tuple(refused), took_s=_since(began_s)
        )

    def _passed(self, refused: list[Rejected]) -> list[Draft]:
        """Return the drafts that the prefilter agreed with; add the others to those refused."""
        if self._is_parked:
            return list(self.folder.owners.drafts)
        passed = []
        for draft, result in zip(self.folder.owners.drafts, self.folder.prefilter.results, strict=True):
            if result.status == "agree":
                passed.append(draft)
            else:
                said = f"{result.status}: {result.reason}" if result.reason else result.status
                refused.append(reject_row(self._tag, "prefilter", draft, said, result.detail))
        return passed

    def _fitting(self, drafts: Iterable[Draft], refused: list[Rejected]) -> list[Draft]:
        """Return the drafts that can become their targets' outputs; add the others to those refused."""
        targets, fitting = self._targets(), []
        wave = self.folder.campaign.read_wave(self._tag)
        shared = shared_outputs((*wave.targets, *self.folder.owners.targets))
        for draft in drafts:
            key = (draft.group, draft.name)
            problem = self.committer.misfit(targets[key].output)
            if key in shared:
                problem = f"another target has the same output {shared[key]}"
            if problem is None:
                fitting.append(draft)
            else:
                refused.append(reject_row(self._tag, "gate", draft, problem))
        return fitting

    def _gate(self, began_s: float) -> GateStep | None:
        found = self.committer.commit_found(self._tag, {})
        self.mark("tree as found is committed")
        gating = Gating(
            self.calls, self.folder, self.committer.head(), self.progress, self.stopping, self.mark
        )
        groups = gating.groups(self.folder.pick.chosen)
        if groups is None:
            return None
        return GateStep(
            groups=tuple(groups), found=found.commit, restored=found.restored, took_s=_since(began_s)
        )

    def _commit(self, began_s: float) -> CommitStep:
        targets = self._targets()
        right = [draft for group in self.folder.gate.groups for draft in group.banked]
        pending = {targets[draft.group, draft.name].output: draft.sha256 for draft in right}
        bank = RunBank(self.folder, self.committer, self.mark)
        known = bank.known()
        found = self.committer.commit_found(self._tag, pending)
        banked, refused = bank.left(right, known)
        commit = None if known is None else known.commit
        if banked and known is None:
            banked = self._fitting(banked, refused)
            if banked:
                commit = bank.make(banked, targets)
                self._say(f"{len(banked)} banked: {commit}")
        return CommitStep(
            commit=commit,
            found=found.commit,
            restored=found.restored,
            banked=tuple(banked),
            refused=tuple(refused),
            took_s=_since(began_s),
        )

    def _harvest(self, began_s: float) -> HarvestStep:
        state, failure = harvest(self.calls, self.folder)
        if failure is not None:
            self._say(f"no lessons: {failure}")
        return HarvestStep(state=state, failure=failure, took_s=_since(began_s))

    def _finish(self) -> LedgerRow:
        """Add the run's lines to the campaign's files, each once, and clear what was only staged."""
        campaign, folder = self.folder.campaign, self.folder
        if folder.rejects is None:
            folder.record_rejects(RejectRows(rows=tuple(self._rejects())))
        append_rejects(folder)
        self.mark("rejects written")
        append_once(campaign.at(names.LEDGER), [folder.row])
        self.mark("ledger written")
        if self._is_parked:
            take_up(campaign, self._closed())
        remove_tree(folder.staging)
        folder.end(RunEnd(ended_utc=now_utc()))
        self.mark("finished")
        return folder.row

    def _rejects(self) -> Iterable[Rejected]:
        yield from self.folder.owners.refused
        yield from self.folder.pick.refused
        yield from self.folder.commit.refused
        for group in self.folder.gate.groups:
            for reject in group.rejected:
                reason = reject.reason if reject.decided else f"no answer: {reject.reason}"
                yield reject_row(self._tag, "gate", reject.draft, reason)

    def _closed(self) -> Iterable[Identity]:
        """Yield the parked drafts that are decided, and those whose target was banked before."""
        for group in self.folder.gate.groups:
            decided = (reject.draft for reject in group.rejected if reject.decided)
            for draft in (*group.banked, *decided):
                yield draft.group, draft.name, draft.sha256
        for row in self.folder.owners.refused:
            if row.group is not None and row.name is not None and row.sha256 is not None:
                yield row.group, row.name, row.sha256

    def _targets(self) -> dict[Key, Target]:
        return {target.key: target for target in self.folder.owners.targets}

    @property
    def _tag(self) -> str:
        return self.folder.run.tag

    @property
    def _is_parked(self) -> bool:
        return self.folder.run.mode == "parked"

    def _say(self, what: str) -> None:
        self.progress.say(f"wave {self._tag}: {what}")


def _since(began_s: float) -> float:
    return round(time.monotonic() - began_s, 3)
