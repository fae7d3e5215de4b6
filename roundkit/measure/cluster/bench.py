"""What a worker does with a request: check it, lay both sides, measure under a lease, keep the record."""

from __future__ import annotations

import queue
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pydantic

import roundkit
from roundkit.core.clock import is_expired, now_utc
from roundkit.core.errors import Refused
from roundkit.host.devices import lease_names, machine_identity, machine_sha256, platform_named
from roundkit.host.lease import holders, wait_in_line
from roundkit.measure.broke import DeviceBusy, MeasurementBroke
from roundkit.measure.cluster.cache import TreeCache, check_bundle
from roundkit.measure.cluster.spool import Spool
from roundkit.measure.experiment import run_experiment
from roundkit.measure.materialized import overlay_missing
from roundkit.measure.trees import remove_tree
from roundkit.models.cluster import OfferedSet, RemoteReply, RemoteRequest, TreeRef, TrialNote, WorkerState
from roundkit.models.measurement import MeasurementRequest, ProvisionRef, SideRef
from roundkit.models.round_plan import DeviceSet
from roundkit.models.trial import Trial

_BUSY_POLL_S = 0.05
_TREES_A_RUN = 4

Tell = Callable[[TrialNote], None]


@dataclass
class _Run:
    """One run: waiting, measured or done. A run that is handed over twice is one run."""

    remote: RemoteRequest
    candidate: bytes
    tell: Tell
    reply: Future[RemoteReply] = field(default_factory=lambda: _running())
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
        self._queues: dict[str, queue.SimpleQueue[_Run]] = {}
        for device_set in self.device_sets:
            self._queues[device_set.id] = queue.SimpleQueue()
            threading.Thread(
                target=self._serve, args=(device_set,), name=f"devices-{device_set.id}", daemon=True
            ).start()

    def state(self) -> WorkerState:
        """Return what this machine offers now."""
        held = {holder.device for holder in holders(self._lease_root)}
        offered = []
        for device_set in self.device_sets:
            platform = platform_named(device_set.platform)
            found = [platform.inspect(device).problem for device in device_set.devices]
            problems = [problem for problem in found if problem is not None]
            names = lease_names(device_set.platform, device_set.devices)
            offered.append(
                OfferedSet(
                    device_set=device_set,
                    held=not held.isdisjoint(names),
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

        A run of the same round that is still on the device set was given up by its coordinator, which has at
        most one there: it ends at its next trial, and its record is kept.
        """
        done = self.spool.get(remote.run)
        if done is not None:
            return _answered(done)
        device_set = remote.request.device_sets[0]
        offered = any(device_set.is_same_as(own) for own in self.device_sets)
        if not offered or len(remote.request.device_sets) != 1:
            detail = f"this worker offers no device set {device_set.id!r} as the plan has it"
            return _answered(_refused(remote, "device-set", detail))
        with self._lock:
            known = self._runs.get(remote.run)
            if known is not None and not known.reply.done():
                return known.reply
            for other in self._runs.values():
                same_set = other.remote.request.device_sets[0].id == device_set.id
                if same_set and other.remote.plan_digest == remote.plan_digest:
                    other.stop.set()
            self._runs = {name: one for name, one in self._runs.items() if not one.reply.done()}
            run = self._runs[remote.run] = _Run(remote, candidate, tell)
        self._queues[device_set.id].put(run)
        return run.reply

    def stop(self, run: str) -> None:
        """End a run at its next trial, as interrupted."""
        with self._lock:
            found = self._runs.get(run)
        if found is not None:
            found.stop.set()

    def stop_all(self) -> None:
        """End every run at its next trial."""
        with self._lock:
            for run in self._runs.values():
                run.stop.set()

    def running(self) -> int:
        """Return how many runs wait or are measured."""
        with self._lock:
            return sum(not run.reply.done() for run in self._runs.values())

    def take_piece(self, sender: str, tree: TreeRef, offset: int, piece: bytes, *, layer: bool) -> None:
        """Take a piece of a tree that experiments will need.

        Args:
            sender: Who sends; two may send the same tree at once.
            tree: What is being sent.
            offset: Where the piece belongs.
            piece: Its bytes.
            layer: Whether the coordinator has it as a layer.

        Raises:
            MeasurementBroke, OSError: as :meth:`TreeCache.take_piece`.
        """
        self._cache.take_piece(sender, tree, offset, piece, as_layer=layer and self._as_layers)

    def _serve(self, device_set: DeviceSet) -> None:
        waiting = self._queues[device_set.id]
        while True:
            run = waiting.get()
            try:
                reply = self._measure(run)
                if reply.kind == "record":
                    self.spool.keep(run.remote, reply)
            except MeasurementBroke as error:
                reply = _refused(run.remote, error.reason, error.detail)
            except Refused as error:
                reply = _refused(run.remote, error.refusals[0].code, str(error))
            except OSError as error:
                reply = _refused(run.remote, "host-error", str(error))
            except Exception as error:  # the thread outlives whatever one request does to it
                reply = _refused(run.remote, "worker-error", f"{type(error).__name__}: {error}")
            run.reply.set_result(reply)

    def _measure(self, run: _Run) -> RemoteReply:
        remote = run.remote
        missing = self._cache.missing(remote.kept)
        if missing:
            return _reply(remote, "missing", missing=missing)
        work = self._runs_folder / secrets.token_hex(8)
        work.mkdir()
        work.chmod(0o711)
        try:
            request = self._lay_sides(remote, run.candidate, work)
            return self._run_experiment(run, request)
        finally:
            remove_tree(work)

    def _lay_sides(self, remote: RemoteRequest, candidate: bytes, work: Path) -> MeasurementRequest:
        """Check every tree against its digest and return the request with this machine's places in it."""
        bundle = work / "candidate.tar"
        bundle.write_bytes(candidate)
        check_bundle(remote.candidate, bundle)
        _refuse_missing(remote)
        layers = remote.base is not None and self._as_layers
        base = self._cache.folder(remote.base) if layers and remote.base is not None else None
        self._cache.check(remote.incumbent)
        if remote.base is not None:
            self._cache.check(remote.base)
        if remote.provision is not None:
            self._cache.check(remote.provision, skip=frozenset())
        self._cache.check(remote.baseline, base=base)
        self._cache.lay(remote.candidate, bundle, work / "candidate", as_layer=layers)
        bundle.unlink()
        request = remote.request

        def side(given: SideRef, folder: Path) -> SideRef:
            return given.model_copy(
                update={"built": str(folder), "base": None if base is None else str(base)}
            )

        provision = remote.provision
        return request.model_copy(
            update={
                "baseline": side(request.baseline, self._cache.folder(remote.baseline)),
                "candidate": side(request.candidate, work / "candidate"),
                "incumbent_built": str(self._cache.folder(remote.incumbent)),
                "provision": None
                if provision is None
                else ProvisionRef(path=str(self._cache.folder(provision)), sha256=provision.sha256),
                "work_folder": str(work / "work"),
            }
        )

    def _run_experiment(self, run: _Run, request: MeasurementRequest) -> RemoteReply:
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
                        should_stop=run.stop.is_set,
                        turn=turn,
                    )
                    return _reply(run.remote, "record", record=record)
                except DeviceBusy as busy:
                    if run.stop.is_set() or is_expired(run.remote.deadline_utc, now_utc()):
                        return _reply(run.remote, "busy", detail=str(busy))
                    turn.renew()
                    time.sleep(_BUSY_POLL_S)
        finally:
            turn.leave()


def _refuse_missing(remote: RemoteRequest) -> None:
    """Refuse a plan whose interpreter or folders this machine lacks: no fault of either side."""
    runtime = remote.request.run_spec.runtime
    missing = [path for path in (runtime.python, *runtime.readable) if not Path(path).exists()]
    if missing:
        raise MeasurementBroke("runtime-missing", f"this worker has no {', '.join(missing)}")


def _reply(remote: RemoteRequest, kind: str, **fields: object) -> RemoteReply:
    answer = {"format": "roundkit-cluster-reply/1", "run": remote.run, "kind": kind, **fields}
    return RemoteReply.model_validate(answer)


def _tell_if_heard(tell: Tell, note: TrialNote) -> None:
    """Tell of a trial; that nobody can be told any more is no reason to end the experiment."""
    with suppress(Exception):
        tell(note)


def _refused(remote: RemoteRequest, reason: str, detail: str) -> RemoteReply:
    return _reply(remote, "refused", reason=reason, detail=detail)


def _running() -> Future[RemoteReply]:
    """Return a future that whoever waits for it cannot cancel: the run goes on without them."""
    future: Future[RemoteReply] = Future()
    future.set_running_or_notify_cancel()
    return future


def _answered(reply: RemoteReply) -> Future[RemoteReply]:
    future: Future[RemoteReply] = Future()
    future.set_result(reply)
    return future


def read_request(data: bytes) -> RemoteRequest:
    """Read a request from a coordinator.

    Raises:
        MeasurementBroke: ``request-malformed``.
    """
    try:
        return RemoteRequest.from_bytes(data, place="request")
    except (Refused, pydantic.ValidationError) as error:
        raise MeasurementBroke("request-malformed", str(error)) from error
