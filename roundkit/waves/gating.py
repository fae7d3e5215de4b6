"""The gate's step: groups in parallel, one writer a group, every call in a staging folder of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from filelock import FileLock, Timeout

from roundkit.core.progress import Progress
from roundkit.measure.trees import remove_tree
from roundkit.models.wave_calls import GateAnswer, GateRequest
from roundkit.models.wave_gate import GateReject, GroupResult
from roundkit.models.wave_records import Draft, Key, Target
from roundkit.rules.wave_batches import Answer, Batch, Outcome, batches
from roundkit.waves.calls import Calls
from roundkit.waves.commit import git_folder
from roundkit.waves.folder import read_record, write_once
from roundkit.waves.run_folder import RunFolder
from roundkit.waves.staging import lay_out, new_folder

_LOCKS = "roundkit-groups"
_POLL_S = 0.05


@dataclass(frozen=True)
class Gating:
    """Gates the groups of one run.

    Attributes:
        calls: Makes the calls.
        run: The run, with what goes to the gate recorded.
        head: HEAD of the tree that everything is gated on.
        progress: Shows how it goes.
        stopping: Says whether no further group is to be begun.
        mark: Told when a group's result is recorded.
    """

    calls: Calls
    run: RunFolder
    head: str
    progress: Progress
    stopping: Callable[[], bool]
    mark: Callable[[str], None]

    def groups(self, chosen: Sequence[Draft]) -> list[GroupResult] | None:
        """Gate every group that has no answer for this HEAD yet; null where a stop was asked for first.

        Raises:
            What :meth:`Calls.ask` raises.
            OSError: a result cannot be written.
        """
        wanted: dict[str, list[Draft]] = {}
        for draft in chosen:
            wanted.setdefault(draft.group, []).append(draft)
        results = {group: known for group in wanted if (known := self._known(group)) is not None}
        left = [group for group in wanted if group not in results]
        jobs = self.calls.campaign.plan.plan.gate.jobs
        with (
            self.progress.task(f"wave {self.run.run.tag}, gate", len(wanted), "groups") as task,
            ThreadPoolExecutor(jobs, thread_name_prefix="wave-gate") as pool,
        ):
            task.set(len(results))
            waiting = [pool.submit(self._group, group, wanted[group]) for group in left]
            try:
                for done in as_completed(waiting):
                    result = done.result()
                    if result is not None:
                        results[result.group] = result
                        task.advance()
                        self._tell(result)
                        self.mark("group recorded")
            except BaseException:
                # Nothing of what runs is an answer: its groups are gated anew by the next start.
                self.calls.end_all()
                pool.shutdown(cancel_futures=True)
                raise
        return [results[group] for group in wanted] if len(results) == len(wanted) else None

    @cached_property
    def _targets(self) -> dict[Key, Target]:
        return {target.key: target for target in self.run.owners.targets}

    def _known(self, group: str) -> GroupResult | None:
        """Return what this run found before it was killed, if the tree has not moved since."""
        known = read_record(self._record(group), GroupResult)
        if known is None or known.head == self.head:
            return known
        self._record(group).unlink()
        return None

    def _record(self, group: str) -> Path:
        return self.run.path / "groups" / f"g-{group}.json"

    def _group(self, group: str, drafts: Sequence[Draft]) -> GroupResult | None:
        """Gate one group, record what came of it and return it; null where it was not begun."""
        if self.stopping():
            return None
        plan = self.calls.campaign.plan.plan.gate
        began_s = time.monotonic()
        named = {draft.name: draft for draft in drafts}
        with self._only_writer(group, plan.command.timeout_s) as alone:
            if alone:
                chunk = plan.chunk if group in plan.expensive_groups else None
                outcome = self._batches(group, named, chunk)
            else:
                locked = dict.fromkeys(named, "somebody else holds the group's lock")
                outcome = Outcome((), {}, locked, 0)
        reasons = [(name, reason, True) for name, reason in outcome.rejected.items()]
        reasons += [(name, reason, False) for name, reason in outcome.failed.items()]
        result = GroupResult(
            group=group,
            head=self.head,
            banked=tuple(named[name] for name in outcome.banked),
            rejected=tuple(
                GateReject(draft=named[name], reason=reason, decided=decided)
                for name, reason, decided in reasons
            ),
            calls=outcome.calls,
            took_s=round(time.monotonic() - began_s, 3),
        )
        self._record(group).parent.mkdir(exist_ok=True)
        write_once(self._record(group), result)
        return result

    def _batches(self, group: str, named: Mapping[str, Draft], chunk: int | None) -> Outcome:
        asking = batches(tuple(named), chunk)
        try:
            batch = next(asking)
            while True:
                batch = asking.send(self._ask(group, batch, named))
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome

    def _ask(self, group: str, batch: Batch, named: Mapping[str, Draft]) -> Answer:
        """Make one call of the group's gate, in a folder that no other call has ever seen."""
        staged = [named[name] for name in (*batch.settled, *batch.names)]
        files = [
            (self._targets[draft.group, draft.name].output, self.run.store.get(draft.sha256))
            for draft in staged
        ]
        folder = new_folder(self.run.staging, f"g-{group}")
        request = GateRequest(
            tag=self.run.run.tag,
            group=group,
            targets=tuple(self._targets[group, name] for name in batch.names),
        )
        called = self.calls.ask(
            f"gate of {group}", self.calls.campaign.plan.plan.gate.command, request, GateAnswer,
            folder=folder / "call", log=self.run.log(f"g-{group}"),
            staging=lay_out(folder / "staging", files),
        )  # fmt: skip
        remove_tree(folder / "staging")
        if called.answer is None:
            return Answer(failure=called.failure)
        return Answer(frozenset(called.answer.banked), called.answer.rejected)

    @contextmanager
    def _only_writer(self, group: str, wait_s: float) -> Iterator[bool]:
        """Hold the group's lock, which its holder's death frees; False where it did not come in time."""
        folder = git_folder(self.calls.campaign.tree) / _LOCKS
        folder.mkdir(exist_ok=True)
        lock = FileLock(folder / f"g-{group}.lock")
        try:
            lock.acquire(timeout=wait_s, poll_interval=_POLL_S)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()

    def _tell(self, result: GroupResult) -> None:
        failed = sum(not reject.decided for reject in result.rejected)
        unanswered = f", {failed} without an answer" if failed else ""
        self.progress.say(
            f"wave {self.run.run.tag}: {result.group}: {len(result.banked)} right, "
            f"{len(result.rejected) - failed} refused{unanswered}, in {result.calls} calls"
        )
