"""The loop of serve: intake, build, lease, measure, record, ticket after ticket."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress

from roundkit.core.errors import RoundkitError
from roundkit.measure.broke import DeviceBusy
from roundkit.measure.pool import DevicePool
from roundkit.measure.trees import remove_tree
from roundkit.models.ledger import TicketRecord
from roundkit.models.measurement import SideRef
from roundkit.rounds import control
from roundkit.rounds.building import Built
from roundkit.rounds.candidate import Laid
from roundkit.rounds.candidate_build import build_ticket
from roundkit.rounds.disk_space import Reserve, full_sentence, means_full
from roundkit.rounds.incumbent import build_incumbent
from roundkit.rounds.intake import open_intake, take_in
from roundkit.rounds.recording import record_aa, record_late, record_ticket
from roundkit.rounds.recovery import expire_queue, recover
from roundkit.rounds.requests import Bench, open_experiment
from roundkit.rounds.serve_state import Ended, Job, Report, ServeOutcome, State, Until
from roundkit.rounds.standing import Standing
from roundkit.rounds.status_mirror import mirror_ticket
from roundkit.rounds.stopping import StopRequest
from roundkit.rounds.waiting_submissions import Outboxes
from roundkit.rules.turns import next_ticket
from roundkit.store import RoundStore

_POLL_S = 0.2
# For each device set: one ticket measured, one built and ready, one being built.
_TICKETS_A_SET = 3


class Server:
    """The loop of serve. Only its thread touches the store; builders and the pool hand results back.

    Its steps stand below :meth:`run` in the order in which a ticket meets them.
    """

    def __init__(
        self,
        bench: Bench,
        store: RoundStore,
        pool: DevicePool,
        builders: ThreadPoolExecutor,
        report: Report,
        stop: StopRequest,
    ) -> None:
        self.bench = bench
        self.store = store
        self.pool = pool
        self._builders = builders
        self._say = report
        self._stop = stop
        self._state = State()
        self._lanes = [lane.id for lane in bench.plan.lanes]
        self._reserve = Reserve(bench.folder.store / "reserve")
        self._reserve.hold()
        recover(bench, store)
        self._outboxes = Outboxes(bench.folder, bench.plan, store)
        self._standing = Standing(bench.plan, store, self._state, self._outboxes, stop)
        self._baseline, self._second_baseline = build_incumbent(bench)
        self._intake = open_intake(bench.folder, bench.plan, bench.spec.round_digest)

    def run(self, until: Until) -> ServeOutcome:
        """Go through intake, build, measure and record until there is nothing left to do."""
        ended: Ended | None = None
        while ended is None:
            with self._pausing_on_full_disk():
                self._take_in()
                self._start_builds()
                self._start_measurements()
                self.pool.stand_in_line(wanted=self._standing.something_waits())
                self._say_trouble()
            ended = self._standing.ended(until)
            if ended is None:
                with self._pausing_on_full_disk():
                    self._collect()
                    self._record()
        if ended == "deadline":
            for line in expire_queue(self.bench, self.store):
                self._report(line)
        return ServeOutcome(
            ended=ended,
            paused=self.store.control.get("paused"),
            measured=self.store.tickets.count(state="measured"),
            rejected=self.store.tickets.count(state="rejected"),
        )

    def _take_in(self) -> None:
        for ticket in take_in(self._intake, self.store, self._outboxes):
            mirror_ticket(self.bench.folder, ticket)
            end = f": {ticket.reject_cause}, {ticket.reject_detail}" if ticket.reject_cause else ""
            self._report(f"{ticket.ticket} {ticket.state}{end}")

    def _start_builds(self) -> None:
        if self._standing.stopping() or self._standing.paused():
            return
        room = _TICKETS_A_SET * len(self.bench.plan.device_sets)
        taken = {ticket.key for ticket in self._state.building.values()} | self._state.built.keys()
        waiting = [ticket for ticket in self.store.tickets.queue() if ticket.key not in taken]
        while len(self._state.building) + len(self._state.built) < room:
            chosen = next_ticket(waiting, self._lanes, self._state.last_built_lane)
            if chosen is None:
                return
            self._reserve.hold()
            waiting.remove(chosen)
            self._state.last_built_lane = chosen.lane
            ticket = self.store.tickets.get(chosen.key)
            self._state.building[self._builders.submit(build_ticket, self.bench, ticket)] = ticket

    def _start_measurements(self) -> None:
        while not self._standing.stopping() and self.pool.free_sets():
            check_due = self._standing.aa_is_due()
            if check_due and not self._standing.aa_in_flight():
                if not self._start(None, self._second_baseline, f"aa-{self.store.aa_checks.count() + 1}"):
                    return
                continue
            if self._standing.paused() or (check_due and not self.store.aa_checks.count()):
                return
            ready = [ticket for ticket in self.store.tickets.queue() if ticket.key in self._state.built]
            chosen = next_ticket(ready, self._lanes, self._standing.last_measured_lane())
            if chosen is None:
                return
            ticket = self.store.tickets.get(chosen.key)
            if not self._start(ticket, self._state.built[ticket.key], ticket.ticket):
                return

    def _start(self, ticket: TicketRecord | None, candidate: SideRef, subject: str) -> bool:
        self._reserve.hold()
        request = open_experiment(
            self.bench,
            self.store,
            purpose="ticket" if ticket else "aa",
            subject=subject,
            lane=ticket.lane if ticket else None,
            baseline=self._baseline,
            candidate=candidate,
            ticket_key=ticket.key if ticket else None,
        )
        job = Job(ticket, request.experiment_id)
        try:
            self._state.measuring[self.pool.submit(request)] = job
        except DeviceBusy:
            self._state.taken_back.append(job)
            return False
        if ticket is not None:
            mirror_ticket(self.bench.folder, self.store.tickets.get(ticket.key))
        self._report(f"{subject} measuring")
        return True

    def _say_trouble(self) -> None:
        """Show what keeps the pool from measuring; unlike a pause, it ends without its owner."""
        trouble = self.pool.trouble()
        if trouble == self._state.trouble:
            return
        self._state.trouble = trouble
        with self.store.transaction():
            if trouble is None:
                self.store.control.clear("waiting")
            else:
                self.store.control.put("waiting", trouble)
            self.store.events.add("pool-waits" if trouble else "pool-goes-on", reason=trouble)
        self._report(f"nothing can be measured now: {trouble}" if trouble else "measuring goes on")

    def _collect(self) -> None:
        if self._standing.stopping():
            # Builds that have not begun never do; their tickets stay queued.
            for unbegun in [build for build in self._state.building if build.cancel()]:
                del self._state.building[unbegun]
        if self._stop.is_set:
            if not self._state.said_draining:
                self._report("draining: the running trials end, everything else stays queued")
            self._state.said_draining = True
            self.pool.close()
        pending: list[Future[object]] = [*self._state.building, *self._state.measuring]  # type: ignore[list-item]
        done, _ = wait(pending, timeout=_POLL_S, return_when=FIRST_COMPLETED) if pending else (set(), set())
        if not pending:
            time.sleep(_POLL_S)
        for future in list(self._state.building):
            if future in done:
                self._finish_build(self._state.building.pop(future), future)
        for experiment in list(self._state.measuring):
            if experiment in done:
                job = self._state.measuring.pop(experiment)
                try:
                    self._state.unrecorded.append((job, experiment.result()))
                except DeviceBusy:
                    self._state.taken_back.append(job)

    def _record(self) -> None:
        self._state.late += self.pool.late_records()
        while self._state.late:
            late = self._state.late[0]
            self._report(record_late(self.store, late, self.bench.spec, self.bench.plan.round_id))
            self._state.late.pop(0)
        while self._state.taken_back:
            self._take_back(self._state.taken_back[0])
            self._state.taken_back.pop(0)
        while self._state.unrecorded:
            job, record = self._state.unrecorded[0]
            if job.ticket is None:
                line = record_aa(self.bench, self.store, record)
            else:
                line = record_ticket(self.bench, self.store, job.ticket, record)
                self._after_record(job.ticket.key)
            self._state.unrecorded.pop(0)
            self._report(line)

    def _after_record(self, key: str) -> None:
        ticket = self.store.tickets.get(key)
        mirror_ticket(self.bench.folder, ticket)
        if ticket.state != "queued" and self._state.built.pop(key, None) is not None:
            self._builders.submit(remove_tree, self.bench.checkout_folder(ticket.ticket))

    def _finish_build(self, ticket: TicketRecord, future: Future[tuple[Laid | None, Built]]) -> None:
        try:
            laid, built = future.result()
        except (RoundkitError, OSError) as error:
            # The host failed, not the candidate: the ticket stays queued until the owner resumes.
            if means_full(error, self.bench.folder.root):
                raise
            control.pause_store(self.store, f"building {ticket.ticket} broke: {error}")
            self._report(f"{ticket.ticket} stays queued, the queue is paused: {error}")
            return
        with self.store.transaction():
            if laid is not None:
                self.store.tickets.set_candidate(ticket.key, laid.commit, laid.tree)
            self.store.tickets.replace_commands(ticket.key, built.logs)
            if built.cause is not None:
                self.store.tickets.reject(ticket.key, built.cause, built.detail or "")
                self.store.events.add("build-rejected", ticket=ticket.ticket, cause=built.cause)
        if built.side is not None:
            self._state.built[ticket.key] = built.side
            return
        mirror_ticket(self.bench.folder, self.store.tickets.get(ticket.key))
        self._report(f"{ticket.ticket} rejected: {built.cause}")

    def _take_back(self, job: Job) -> None:
        """Somebody outside this round was faster with the device; the ticket simply waits on."""
        with self.store.transaction():
            self.store.experiments.cancel(job.experiment_id)
            self.store.events.add("experiment-cancelled", experiment=job.experiment_id)
            if job.ticket is not None:
                self.store.tickets.requeue(job.ticket.key)

    @contextmanager
    def _pausing_on_full_disk(self) -> Iterator[None]:
        """Pause the queue where the disk is full; what could not be written stays for the next turn."""
        try:
            yield
        except (RoundkitError, OSError, sqlite3.Error) as error:
            if not means_full(error, self.bench.folder.root):
                raise
            if not self._standing.paused() or self._standing.resuming():
                self._reserve.release()
                reason = full_sentence(self.bench.folder.root, "resume").splitlines()[0]
                control.pause_store(self.store, reason)
                self._report(f"the queue is paused: {reason}")
            time.sleep(_POLL_S)

    def _report(self, line: str) -> None:
        with suppress(OSError):  # a log on a full disk must not end serve
            self._say(line)
