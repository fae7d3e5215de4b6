"""What a worker does with a request: check it, measure under a lease, keep the record."""

from __future__ import annotations

import queue
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import roundkit
from roundkit.core.clock import Deadline, now_utc
from roundkit.core.errors import Refused
from roundkit.host.devices import lease_names, machine_identity, machine_sha256, platform_named
from roundkit.host.lease import holders, wait_in_line
from roundkit.measure.broke import DeviceBusy, MeasurementBroke, host_reason, is_full
from roundkit.measure.cluster.arrival import clock_difference, moved_in_time
from roundkit.measure.cluster.cache import TreeCache
from roundkit.measure.cluster.replies import answered, asks_for_same, refused, reply_of, running_reply
from roundkit.measure.cluster.sides import lay_sides
from roundkit.measure.cluster.spool import Spool
from roundkit.measure.experiment import run_experiment
from roundkit.measure.materialized import overlay_missing
from roundkit.measure.trees import remove_tree
from roundkit.models.cluster import OfferedSet, RemoteReply, RemoteRequest, TreeRef, TrialNote, WorkerState
from roundkit.models.measurement import MeasurementRequest
from roundkit.models.round_plan import DeviceSet
from roundkit.models.trial import Trial

_BUSY_POLL_S = 0.05
_TREES_A_RUN = 4

Tell = Callable[[TrialNote], None]


@dataclass
class _Run:
    """One run: waiting, measured or done. A run that is handed over twice is one run.

    Attributes:
        to_theirs: What is added to a time read here to have one by the coordinator's clock.
        until: How long it waits for devices that others have.
        waits: Whether it does.
    """

    remote: RemoteRequest
    candidate: bytes
    tell: Tell
    to_theirs: timedelta
    until: Deadline
    waits: bool = False
    reply: Future[RemoteReply] = field(default_factory=running_reply)
    stop: threading.Event = field(default_factory=threading.Event)


class Bench:
    """One thread for each device set of this machine, for as long as the process lives.

    A confined command dies with the *thread* that started it; and an experiment goes on, whatever becomes of
    the connection to the scheduler.

    Args:
        device_sets: What this machine offers.
        home: A folder of this worker alone.
        lease_root: Where this host keeps leases.
        keep_trees: How many incumbents stay for later experiments.
    """

    def __init__(
        self, device_sets: Sequence[DeviceSet], home: Path, *, lease_root: Path, keep_trees: int
    ) -> None:
        self.device_sets = tuple(device_sets)
        self._home = home
        self._lease_root = lease_root
        self._runs_folder = home / "runs"
        remove_tree(self._runs_folder)
        self._runs_folder.mkdir(parents=True)
        self._runs_folder.chmod(0o711)
        self.spool = Spool(home / "spool")
        self._as_layers = overlay_missing(self._runs_folder) is None
        # What is being measured must never be thrown away for what arrives meanwhile.
        in_use = _TREES_A_RUN * (len(self.device_sets) + 1)
        self._cache = TreeCache(home / "cache", keep=max(keep_trees, in_use))
        self._lock = threading.Lock()
        self._runs: dict[str, _Run] = {}
        self._at: dict[str, _Run] = {}
        self._never: set[str] = set()
        self._queues: dict[str, queue.SimpleQueue[_Run]] = {}
        for device_set in self.device_sets:
            self._queues[device_set.id] = queue.SimpleQueue()
            threading.Thread(
                target=self._serve, args=(device_set,), name=f"devices-{device_set.id}", daemon=True
            ).start()

    def state(self) -> WorkerState:
        """Return what this machine offers now."""
        held = {holder.device for holder in holders(self._lease_root)}
        full = f"no space is left on the disk of {self._home}" if is_full(self._home) else None
        offered = []
        for device_set in self.device_sets:
            platform = platform_named(device_set.platform)
            found = [platform.inspect(device).problem for device in device_set.devices]
            problems = [problem for problem in (full, *found) if problem is not None]
            names = lease_names(device_set.platform, device_set.devices)
            at = self._at.get(device_set.id)
            offered.append(
                OfferedSet(
                    device_set=device_set,
                    held=not held.isdisjoint(names),
                    run=None if at is None else at.remote.run,
                    waits=at is not None and at.waits,
                    problem="; ".join(problems) or None,
                )
            )
        with self._lock:
            unfinished = {run for run, one in self._runs.items() if not one.reply.done()}
        return WorkerState(
            format="roundkit-worker/1",
            version=roundkit.__version__,
            machine=machine_identity(),
            machine_sha256=machine_sha256(),
            sets=tuple(offered),
            finished=tuple(one for one in self.spool.all() if one.run not in unfinished),
        )

    def submit(self, remote: RemoteRequest, candidate: bytes, tell: Tell) -> Future[RemoteReply]:
        """Measure, or join the run of the same identity that is under way or done already.

        A run for the same store that is still on the device set was given up by its coordinator, which has
        at most one there: it ends at its next trial, and its record is kept.
        """
        device_set = remote.request.device_sets[0]
        offered = any(device_set.is_same_as(own) for own in self.device_sets)
        with self._lock:
            known = self._runs.get(remote.run)
            if known is not None and not known.reply.done():
                return known.reply
            # After that: a run that ends meanwhile has put its record there, and is not measured again.
            done = self.spool.get(remote.run)
            if done is not None:
                return answered(done)
            if not offered or len(remote.request.device_sets) != 1:
                detail = f"this worker offers no device set {device_set.id!r} as the plan has it"
                return answered(refused(remote, "device-set", detail))
            if remote.run in self._never:
                return answered(refused(remote, "interrupted", "it was stopped before it came"))
            for other in self._runs.values():
                same_set = other.remote.request.device_sets[0].id == device_set.id
                if same_set and asks_for_same(other.remote, remote):
                    other.stop.set()
            self._runs = {name: one for name, one in self._runs.items() if not one.reply.done()}
            to_theirs = clock_difference(remote, now_utc())
            # From now on: until then it stood in Dask's queue, and no clock but this one has a say.
            until = Deadline.after((remote.deadline_utc - remote.sent_utc).total_seconds())
            run = self._runs[remote.run] = _Run(remote, candidate, tell, to_theirs, until)
        self._queues[device_set.id].put(run)
        return run.reply

    def stop(self, run: str) -> bool:
        """End a run at its next trial, as interrupted; say whether it was here. Else it is never begun."""
        with self._lock:
            found = self._runs.get(run)
            if found is not None and not found.reply.done():
                found.stop.set()
            elif self.spool.get(run) is None:  # it is not here yet, or trees for it are on their way
                self._never.add(run)
                return False
        return True

    def wait_on(self, run: str, seconds: float) -> None:
        """Let a run wait for devices that others have for so many seconds from now."""
        with self._lock:
            found = self._runs.get(run)
        if found is not None:
            found.until = Deadline.after(seconds)

    def stop_all(self) -> tuple[str, ...]:
        """End every run at its next trial; return those that were not over."""
        with self._lock:
            unfinished = [run for run in self._runs.values() if not run.reply.done()]
            for run in unfinished:
                run.stop.set()
        return tuple(run.remote.run for run in unfinished)

    def running(self) -> int:
        """Return how many runs wait or are measured."""
        with self._lock:
            return sum(not run.reply.done() for run in self._runs.values())

    def take_piece(
        self, sender: str, tree: TreeRef, offset: int, piece: bytes, *, layer: bool, next_s: float
    ) -> None:
        """Take a piece of a tree that experiments will need.

        Args:
            sender: Who sends; two may send the same tree at once.
            tree: What is being sent.
            offset: Where the piece belongs.
            piece: Its bytes.
            layer: Whether the coordinator has it as a layer.
            next_s: Within how many seconds the next piece comes, or never.

        Raises:
            MeasurementBroke, OSError: as :meth:`TreeCache.take_piece`.
        """
        as_layer = layer and self._as_layers
        self._cache.take_piece(sender, tree, offset, piece, as_layer=as_layer, next_s=next_s)

    def tidy(self, keep_records: timedelta) -> tuple[str, ...]:
        """Remove what coordinators began to send, or never fetched; return a line about each.

        Args:
            keep_records: How long a record waits to be fetched.

        Raises:
            OSError: something cannot be read or removed.
        """
        abandoned = self._cache.drop_abandoned()
        lines = [f"{abandoned} bundles whose coordinator went away were removed"] if abandoned else []
        return (*lines, *self.spool.drop_older(keep_records))

    def _serve(self, device_set: DeviceSet) -> None:
        waiting = self._queues[device_set.id]
        while True:
            run = self._at[device_set.id] = waiting.get()
            try:
                reply = self._measure(run)
                if reply.kind == "record":
                    # One that cannot be kept leaves all the same; it is only not there to be asked for again.
                    with suppress(OSError):
                        self.spool.keep(run.remote, reply)
            except MeasurementBroke as error:
                reply = refused(run.remote, error.reason, error.detail)
            except Refused as error:
                reply = refused(run.remote, error.refusals[0].code, str(error))
            except OSError as error:
                reply = refused(run.remote, host_reason(error), str(error))
            except Exception as error:  # the thread outlives whatever one request does to it
                reply = refused(run.remote, "worker-error", f"{type(error).__name__}: {error}")
            del self._at[device_set.id]
            run.reply.set_result(reply)

    def _measure(self, run: _Run) -> RemoteReply:
        remote = run.remote
        missing = self._cache.missing(remote.kept)
        if missing:
            return reply_of(remote, "missing", missing=missing)
        work = self._runs_folder / secrets.token_hex(8)
        work.mkdir()
        work.chmod(0o711)
        try:
            request = lay_sides(self._cache, remote, run.candidate, work, as_layers=self._as_layers)
            return self._run_experiment(run, request)
        finally:
            remove_tree(work)

    def _run_experiment(self, run: _Run, request: MeasurementRequest) -> RemoteReply:
        def must_stop() -> bool:
            run.waits = False  # asked before each trial, and so with the devices leased
            return run.stop.is_set()

        def on_trial(done: int, planned: int, trial: Trial) -> None:
            text = trial.to_bytes().decode()
            _tell_if_heard(run.tell, TrialNote(run=run.remote.run, done=done, planned=planned, trial=text))

        device_set = request.device_sets[0]
        turn = wait_in_line(lease_names(device_set.platform, device_set.devices), root=self._lease_root)
        try:
            while True:
                try:
                    record = run_experiment(
                        request,
                        lease_root=self._lease_root,
                        progress=on_trial,
                        should_stop=must_stop,
                        turn=turn,
                    )
                    return reply_of(run.remote, "record", record=moved_in_time(record, run.to_theirs))
                except DeviceBusy as busy:
                    run.waits = True
                    if run.stop.is_set() or run.until.expired():
                        return reply_of(run.remote, "busy", detail=str(busy))
                    turn.renew()
                    time.sleep(_BUSY_POLL_S)
        finally:
            turn.leave()


def _tell_if_heard(tell: Tell, note: TrialNote) -> None:
    """Tell of a trial; that nobody can be told any more is no reason to end the experiment."""
    with suppress(Exception):
        tell(note)
