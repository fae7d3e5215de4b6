"""Workers as batch jobs: dask-jobqueue writes and submits the scripts, each of which starts one worker."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pydantic
from distributed.core import Status
from distributed.scheduler import Scheduler

from roundkit.core.errors import Refused, refuse
from roundkit.core.yamlfile import plain, read_yaml, schema_refusals
from roundkit.measure.cluster.ports import check_scheduler_port
from roundkit.measure.cluster.reaching import silence
from roundkit.measure.cluster.security import HTTP_ADDRESS, check_address, security_of
from roundkit.models.cluster import BatchSystem, SlurmWorkers


@contextmanager
def _ctrl_c_kept() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


with _ctrl_c_kept():  # dask_jobqueue makes Ctrl-C its own as soon as it is imported
    from dask_jobqueue.lsf import LSFCluster, LSFJob
    from dask_jobqueue.pbs import PBSCluster, PBSJob
    from dask_jobqueue.sge import SGECluster, SGEJob
    from dask_jobqueue.slurm import SLURMCluster, SLURMJob

_OURS = frozenset(
    {"scheduler", "name", "security", "protocol", "processes", "worker_command", "worker_extra_args", "nanny"}
)
"""Options of a job that follow from what roundkit starts."""

_AGAIN_S = 15.0


@dataclass
class Submissions:
    """What comes of handing jobs to the batch system.

    Attributes:
        address: Of the scheduler that the jobs' workers connect to.
        refused: Why a job was not taken when it was last submitted, by its name.
    """

    address: str
    refused: dict[str, str] = field(default_factory=dict)

    def trouble(self) -> str | None:
        """Say why a job is missing; None where each was taken."""
        return next(iter(self.refused.values()), None)


class _StartsWorker:
    """A job whose command is ``roundkit worker`` in place of Dask's own, submitted until it is taken."""

    name: str
    submit_command: str
    status: Status

    def __init__(self, scheduler: str | None = None, name: str | None = None, **options: Any) -> None:
        workers: SlurmWorkers = options.pop("workers")
        tls: Path | None = options.pop("tls")
        self._refused: dict[str, str] = options.pop("refused", {})
        self._cluster: Callable[[], Any] = lambda: None  # Dask says whose it is, once it was submitted
        # The script names the folder of certificates; jobqueue would name each of its files.
        options = {"job_name": "roundkit", **options, "security": None, "protocol": None}
        super().__init__(scheduler, name, processes=1, **options)  # type: ignore[call-arg]
        self._command_template = worker_command(workers, str(scheduler), str(name), tls)

    async def start(self) -> None:
        """Submit the job; where it is not taken, say why, and have it submitted again."""
        try:
            await super().start()  # type: ignore[misc]
        except (
            RuntimeError,
            OSError,
            ValueError,
        ) as error:  # it refuses, cannot be run, or says nothing clear
            self._refused[self.name] = _not_taken(self.submit_command, error)
            self.status = Status.running
            self._try_again()
        else:
            self._refused.pop(self.name, None)

    async def close(self) -> None:
        """Cancel the job."""
        await super().close()  # type: ignore[misc]
        self.status = Status.closed

    def _try_again(self) -> None:
        asyncio.get_running_loop().call_later(_AGAIN_S, self._make_place)

    def _make_place(self) -> None:
        """Have the cluster miss this job, so that it submits it anew."""
        cluster = self._cluster()
        if self.status == Status.closed:
            return
        if cluster is None:  # other jobs are still being submitted
            self._try_again()
            return
        self.status = Status.closed
        cluster.workers.pop(self.name, None)


def _not_taken(command: str, error: Exception) -> str:
    """Return what a batch system says of a job that it does not take, without Dask's words around it."""
    said = " ".join(str(error).rpartition("stderr:\n")[2].split()) or " ".join(str(error).split())
    return f"{command} does not take a job: {said}; it is asked again every {_AGAIN_S:.0f} s"


def _systems() -> dict[BatchSystem, tuple[Any, Any]]:
    """Return each batch system's kind of job, and of cluster."""
    kinds: dict[BatchSystem, tuple[Any, Any]] = {
        "slurm": (SLURMJob, SLURMCluster),
        "pbs": (PBSJob, PBSCluster),
        "lsf": (LSFJob, LSFCluster),
        "sge": (SGEJob, SGECluster),
    }
    found: dict[BatchSystem, tuple[Any, Any]] = {}
    for system, (job, cluster) in kinds.items():
        ours = type(f"{job.__name__}OfWorkers", (_StartsWorker, job), {})
        found[system] = ours, type(f"{cluster.__name__}OfWorkers", (cluster,), {"job_cls": ours})
    return found


_SYSTEMS = _systems()


def read_workers(path: Path) -> SlurmWorkers:
    """Read how workers are submitted.

    Raises:
        Refused: ``missing-file``, ``malformed-yaml``; ``unknown-key``, ``missing-key``, ``wrong-value``: the
            file does not fit; ``slurm-option``: an option that roundkit sets by itself.
    """
    _, content = read_yaml(path)
    try:
        workers = SlurmWorkers.model_validate(plain(content))
    except pydantic.ValidationError as error:
        raise Refused(schema_refusals(error.errors(), content, path.name)) from error
    if taken := sorted(_OURS & workers.options.keys()):
        raise refuse(
            "slurm-option",
            f"{', '.join(taken)} cannot be chosen: it follows from what is started",
            place=f"{path.name}: options",
            remedy="leave it out",
        )
    return workers


def worker_command(workers: SlurmWorkers, scheduler: str, name: str, tls: Path | None) -> str:
    """Return the shell command that a job runs.

    Args:
        workers: How workers are submitted.
        scheduler: Address of the scheduler.
        name: The worker's name.
        tls: Folder of certificates, as the nodes see it too.
    """
    start = [workers.roundkit] if workers.roundkit else [sys.executable, "-P", "-m", "roundkit"]
    words = [*start, "worker", "--scheduler", scheduler, "--name", name, "--until-lost"]
    words += ["--device-sets", workers.device_sets]
    words += [] if tls is None else ["--tls", str(tls.absolute())]
    # In double quotes: the node's shell fills in its own scratch folder.
    return f'{shlex.join(words)} --home "{workers.home}/{name}"'


def job_script(workers: SlurmWorkers, scheduler: str, tls: Path | None) -> str:
    """Return the script of one job as it would be submitted.

    Raises:
        Refused: ``slurm-option``: dask-jobqueue does not take an option, or needs another one.
        Refused: ``scheduler-address``, ``tls-needed``, ``tls-files``.
    """
    check_address(scheduler, tls, place="--scheduler")
    try:
        kind, _ = _SYSTEMS[workers.system]
        job = kind(scheduler, "roundkit-0", workers=workers, tls=tls, **workers.options)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise _option_refusal(error) from error
    return str(job.job_script())


@contextmanager
def slurm_workers(workers: SlurmWorkers, scheduler: str, tls: Path | None) -> Iterator[Submissions]:
    """Run a scheduler here and workers as jobs, for as long as the caller is in it.

    Jobs whose workers are lost (their time is over, their node is gone) are submitted anew, and so are those
    that the batch system does not take.

    Args:
        workers: How workers are submitted.
        scheduler: Address to listen on; port 0 has the system choose one.
        tls: Folder of certificates; None without TLS, which only loopback may do.

    Yields:
        What comes of it, with the scheduler's address.

    Raises:
        Refused: as :func:`job_script`; ``scheduler-port``: this machine cannot listen there;
            ``no-batch-system``: jobs cannot be submitted from it.
    """
    check_address(scheduler, tls, place="--scheduler")
    parts = urlsplit(scheduler)
    check_scheduler_port(parts.hostname or "", parts.port or 0)
    job, kind = _SYSTEMS[workers.system]
    _check_command(job.submit_command, workers.system)
    silence("distributed")
    refused: dict[str, str] = {}
    try:
        cluster = kind(
            name="roundkit",
            security=None if tls is None else security_of(tls),
            protocol=None if tls is None else "tls://",
            scheduler_cls=Scheduler,
            scheduler_options={
                "host": parts.hostname,
                "port": parts.port or 0,
                "dashboard": False,
                "dashboard_address": HTTP_ADDRESS,
            },
            workers=workers,
            tls=tls,
            refused=refused,
            **workers.options,
        )
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise _option_refusal(error) from error
    with cluster:
        cluster.adapt(minimum_jobs=workers.jobs, maximum_jobs=workers.jobs)
        yield Submissions(str(cluster.scheduler_address), refused)


def _check_command(command: str, system: BatchSystem) -> None:
    """Check that jobs can be submitted from this machine.

    Raises:
        Refused: ``no-batch-system``.
    """
    if shutil.which(command) is None:
        raise refuse(
            "no-batch-system",
            f"this machine has no {command}, by which jobs of {system} are submitted",
            place="--slurm",
            remedy="serve on one from which they can be, or set `system` to the one that is here",
        )


def _option_refusal(error: Exception) -> Exception:
    return refuse(
        "slurm-option",
        f"dask-jobqueue refuses the options: {error}",
        place="options",
        remedy="they are those of the system's cluster in dask_jobqueue; `cores` and `memory` are needed",
    )
