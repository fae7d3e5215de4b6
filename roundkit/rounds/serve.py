"""Serve: one process owns the queue. Intake, build, lease, measure, record, ticket after ticket."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Literal

from roundkit.core.clock import is_expired, now_utc
from roundkit.core.errors import RoundkitError, refuse
from roundkit.core.git import Repository
from roundkit.host.lease import default_lease_root
from roundkit.measure.broke import DeviceBusy
from roundkit.measure.pool import DevicePool, LocalPool
from roundkit.models.ledger import TicketRecord
from roundkit.models.measurement import ExperimentRecord, SideRef
from roundkit.rounds import control
from roundkit.rounds.building import Built, build_side
from roundkit.rounds.candidate import CannotLay, Laid, lay_candidate
from roundkit.rounds.intake import Intake, take_in
from roundkit.rounds.layout import RoundFolder, read_plan
from roundkit.rounds.locks import hold_lock
from roundkit.rounds.mirror import mirror_ticket
from roundkit.rounds.recording import record_aa, record_ticket, record_unmeasured
from roundkit.rounds.requests import Bench, open_experiment
from roundkit.rules.run_spec import run_spec_of
from roundkit.rules.turns import aa_due, next_ticket
from roundkit.store import RoundStore, open_store

Until = Literal["idle", "deadline"]
Report = Callable[[str], None]
_POLL_S = 0.2
_BUILDERS = 1


@dataclass(frozen=True)
class ServeOutcome:
    """How serve ended: ``idle``, ``deadline``, ``drained`` or ``paused``, and what was measured."""

    ended: Literal["idle", "deadline", "drained", "paused"]
    paused: str | None
    measured: int
    rejected: int


@dataclass
class _Job:
    """One experiment in flight: a ticket's, or an A/A check (no ticket)."""

    ticket: TicketRecord | None
    experiment_id: str


@dataclass
class _State:
    building: dict[Future[tuple[Laid | None, Built]], TicketRecord] = field(default_factory=dict)
    built: dict[str, SideRef] = field(default_factory=dict)
    measuring: dict[Future[ExperimentRecord], _Job] = field(default_factory=dict)
    last_lane: str | None = None


def open_bench(folder: RoundFolder) -> Bench:
    """Read and check the frozen plan and the secret of a round.

    Raises:
        Refused: the plan or the secret is not what was frozen.
    """
    plan = read_plan(folder)
    return Bench(folder, plan, run_spec_of(plan), folder.secret_file.read_bytes())


def serve(
    folder: RoundFolder, *, until: Until, report: Report, pool: DevicePool | None = None
) -> ServeOutcome:
    """Serve a round until its queue is idle, or until its deadline.

    Args:
        folder: The round.
        until: ``idle`` ends when nothing waits any more; ``deadline`` waits for more until the deadline.
        report: Takes one line for each thing that happens.
        pool: Who measures; the local devices by default.

    Raises:
        Refused: ``serve-running``, or the plan was changed.
    """
    bench = open_bench(folder)
    with (
        hold_lock(folder.serve_lock, code="serve-running", what="serve"),
        open_store(folder.database) as store,
        ThreadPoolExecutor(_BUILDERS, thread_name_prefix="build") as builders,
    ):
        server = Server(
            bench,
            store,
            pool or LocalPool(bench.plan.device_sets, lease_root=default_lease_root()),
            builders,
            report,
        )
        try:
            with server.drain_on_signal():
                return server.run(until)
        finally:
            server.pool.close()


class Server:
    """The loop of serve. Only its thread touches the store; builders and the pool hand results back."""

    def __init__(
        self, bench: Bench, store: RoundStore, pool: DevicePool, builders: ThreadPoolExecutor, report: Report
    ) -> None:
        self.bench = bench
        self.store = store
        self.pool = pool
        self._builders = builders
        self._report = report
        self._state = _State()
        self._draining = threading.Event()
        repository = Repository(bench.folder.repository)
        entries = repository.tree(bench.plan.incumbent)
        submodules = frozenset(entry.path for entry in entries if entry.mode == "160000")
        self._intake = Intake(bench.folder, bench.plan, bench.spec.round_digest, submodules)
        self._baseline, self._second_baseline = self._build_incumbent()

    def run(self, until: Until) -> ServeOutcome:
        """Go through intake, build, measure and record until there is nothing left to do."""
        self._recover()
        while True:
            self._take_in()
            self._start_builds()
            self._start_measurements()
            ended = self._ended(until)
            if ended is not None:
                break
            self._collect()
        if ended == "deadline":
            self._expire()
        return ServeOutcome(
            ended=ended,
            paused=self.store.control.get("paused"),
            measured=self.store.tickets.count(state="measured"),
            rejected=self.store.tickets.count(state="rejected"),
        )

    @contextmanager
    def drain_on_signal(self) -> Iterator[None]:
        """Let SIGTERM and Ctrl-C end serve after the running trial, with nothing half-written."""

        def drain(_number: int, _frame: FrameType | None) -> None:
            self._draining.set()

        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, drain) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    # -- the six calls, in the order in which a ticket meets them

    def _take_in(self) -> None:
        for ticket in take_in(self._intake, self.store):
            mirror_ticket(self.bench.folder, ticket)
            end = f": {ticket.reject_cause}, {ticket.reject_detail}" if ticket.reject_cause else ""
            self._report(f"{ticket.ticket} {ticket.state}{end}")

    def _start_builds(self) -> None:
        if self._stopping() or self.store.control.get("paused") is not None:
            return
        lanes = [lane.id for lane in self.bench.plan.lanes]
        while len(self._state.building) < _BUILDERS:
            begun = [*(ticket.key for ticket in self._state.building.values()), *self._state.built]
            waiting = self.store.tickets.oldest_queued(lanes, but_not=begun)
            ticket = next_ticket(waiting, lanes, self._state.last_lane)
            if ticket is None:
                return
            self._state.building[self._builders.submit(_build_ticket, self.bench, ticket)] = ticket

    def _start_measurements(self) -> None:
        while not self._stopping() and self.pool.free_sets():
            if self._aa_is_due():
                if self._aa_in_flight():
                    return
                self._start(None, self._second_baseline, f"aa-{self.store.aa_checks.count() + 1}")
                continue
            if self.store.control.get("paused") is not None:
                return
            measuring = [job.ticket.key for job in self._state.measuring.values() if job.ticket]
            lanes = [lane.id for lane in self.bench.plan.lanes]
            ready = self.store.tickets.oldest_queued(lanes, among=self._state.built, but_not=measuring)
            ticket = next_ticket(ready, lanes, self._state.last_lane)
            if ticket is None:
                return
            self._state.last_lane = ticket.lane
            self._start(ticket, self._state.built[ticket.key], ticket.ticket)

    def _start(self, ticket: TicketRecord | None, candidate: SideRef, subject: str) -> None:
        request = open_experiment(
            self.bench,
            self.store,
            purpose="ticket" if ticket else "aa",
            subject=subject,
            lane=ticket.lane if ticket else None,
            baseline=self._baseline,
            candidate=candidate,
        )
        if ticket is not None:
            with self.store.transaction():
                self.store.tickets.set_measuring(ticket.key)
            mirror_ticket(self.bench.folder, self.store.tickets.get(ticket.key))
        self._report(f"{subject} measuring")
        self._state.measuring[self.pool.submit(request)] = _Job(ticket, request.experiment_id)

    def _collect(self) -> None:
        if self._draining.is_set():
            self._report("draining: the running trial ends, everything else stays queued")
            self.pool.close()
        pending: list[Future[object]] = [*self._state.building, *self._state.measuring]  # type: ignore[list-item]
        done, _ = wait(pending, timeout=_POLL_S, return_when=FIRST_COMPLETED) if pending else (set(), set())
        if not pending:
            self._draining.wait(_POLL_S)
        for future in list(self._state.building):
            if future in done:
                self._finish_build(self._state.building.pop(future), future)
        for experiment in list(self._state.measuring):
            if experiment in done:
                self._finish_experiment(self._state.measuring.pop(experiment), experiment)

    def _finish_build(self, ticket: TicketRecord, future: Future[tuple[Laid | None, Built]]) -> None:
        try:
            laid, built = future.result()
        except (RoundkitError, OSError) as error:
            # The host failed, not the candidate: the ticket stays queued until the owner resumes.
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

    def _finish_experiment(self, job: _Job, experiment: Future[ExperimentRecord]) -> None:
        try:
            record = experiment.result()
        except DeviceBusy:
            # Somebody outside this round was faster; the ticket simply waits on.
            with self.store.transaction():
                self.store.experiments.cancel(job.experiment_id)
                if job.ticket is not None:
                    self.store.tickets.requeue(job.ticket.key)
            return
        if job.ticket is None:
            line = record_aa(self.bench, self.store, record)
        else:
            line = record_ticket(self.bench, self.store, job.ticket, record)
            now = self.store.tickets.get(job.ticket.key)
            if now.state == "measured":
                self._state.built.pop(now.key, None)
            mirror_ticket(self.bench.folder, now)
        self._report(line)

    # -- states

    def _build_incumbent(self) -> tuple[SideRef, SideRef]:
        plan = self.bench.plan
        sides = []
        for name in ("incumbent", "incumbent-again"):
            built = build_side(
                self.bench.folder,
                plan,
                self.bench.spec,
                commit=plan.incumbent,
                tree=plan.incumbent_tree,
                name=name,
            )
            if built.side is None:
                raise refuse(
                    "incumbent-broken",
                    f"the incumbent's own {built.cause} fails: {built.detail}",
                    place=str(self.bench.folder.plan_file),
                    remedy="mend the command in campaign.yaml, or the incumbent, and prepare a new round",
                )
            sides.append(built.side)
        return sides[0], sides[1]

    def _recover(self) -> None:
        """Take up what a killed serve left: tickets that were being measured go back to the queue."""
        with self.store.transaction():
            self.store.control.clear("drain")
            for experiment_id, subject in self.store.experiments.unfinished():
                self.store.events.add("experiment-interrupted", experiment=experiment_id, subject=subject)
            for ticket in self.store.tickets.all("measuring"):
                self.store.tickets.requeue(ticket.key)
        for ticket in self.store.tickets.all():
            mirror_ticket(self.bench.folder, ticket)

    def _stopping(self) -> bool:
        expired = is_expired(self.bench.plan.deadline_utc, now_utc())
        return self._draining.is_set() or self.store.control.get("drain") is not None or expired

    def _aa_is_due(self) -> bool:
        if self.store.control.get("resume-needs-aa") is not None:
            return True
        if self.store.control.get("paused") is not None or not self.store.tickets.count(state="queued"):
            return False
        measured = self.store.tickets.count(state="measured")
        return aa_due(measured, self.store.aa_checks.last_after_tickets(), self.bench.plan.aa_interval)

    def _aa_in_flight(self) -> bool:
        return any(job.ticket is None for job in self._state.measuring.values())

    def _ended(self, until: Until) -> Literal["idle", "deadline", "drained", "paused"] | None:
        if self._state.measuring or self._state.building:
            return None
        if self._draining.is_set() or self.store.control.get("drain") is not None:
            return "drained"
        if is_expired(self.bench.plan.deadline_utc, now_utc()):
            return "deadline"
        if until == "deadline":
            return None
        if self.store.control.get("paused") is not None and self.store.control.get("resume-needs-aa") is None:
            return "paused"
        return None if self.store.tickets.count(state="queued") else "idle"

    def _expire(self) -> None:
        """Record what the round's deadline left unmeasured."""
        for ticket in self.store.tickets.all("queued"):
            record_unmeasured(self.bench, self.store, ticket, "deadline")
            mirror_ticket(self.bench.folder, self.store.tickets.get(ticket.key))
            self._report(f"{ticket.ticket} not measured: deadline")


def _build_ticket(bench: Bench, ticket: TicketRecord) -> tuple[Laid | None, Built]:
    try:
        laid = lay_candidate(bench.folder, bench.plan, ticket, bench.plan.incumbent)
    except CannotLay as error:
        return None, Built(None, (), "malformed", str(error))
    return laid, build_side(
        bench.folder, bench.plan, bench.spec, commit=laid.commit, tree=laid.tree, name=ticket.ticket
    )


def round_folder(path: Path) -> RoundFolder:
    """Return the round at a path, absolute."""
    return RoundFolder(path.absolute())
