"""Workers as Slurm jobs: dask-jobqueue writes and submits the scripts, each of which starts one worker."""

from __future__ import annotations

import logging
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pydantic
from dask_jobqueue.slurm import SLURMCluster, SLURMJob
from distributed.scheduler import Scheduler

from roundkit.core.errors import refuse
from roundkit.core.yamlfile import plain, read_yaml
from roundkit.measure.cluster.security import check_address, security_of
from roundkit.models.cluster import SlurmWorkers

_OURS = frozenset(
    {"scheduler", "name", "security", "protocol", "processes", "worker_command", "worker_extra_args", "nanny"}
)
"""Options of a job that follow from what roundkit starts."""


class _WorkerJob(SLURMJob):
    """A job whose command is ``roundkit worker`` in place of Dask's own."""

    def __init__(self, scheduler: str | None = None, name: str | None = None, **options: Any) -> None:
        workers: SlurmWorkers = options.pop("workers")
        tls: Path | None = options.pop("tls")
        # The script names the folder of certificates; jobqueue would name each of its files.
        options = {"job_name": "roundkit", **options, "security": None, "protocol": None}
        super().__init__(scheduler, name, processes=1, **options)  # type: ignore[no-untyped-call]
        self._command_template = worker_command(workers, str(scheduler), str(name), tls)


class _WorkerCluster(SLURMCluster):
    job_cls: type[SLURMJob] = _WorkerJob


def read_workers(path: Path) -> SlurmWorkers:
    """Read how workers are submitted.

    Raises:
        Refused: ``missing-file``, ``malformed-yaml``, ``malformed``: the file does not fit; ``slurm-option``:
            an option that roundkit sets by itself.
    """
    _, content = read_yaml(path)
    try:
        workers = SlurmWorkers.model_validate(plain(content))
    except pydantic.ValidationError as error:
        raise refuse(
            "malformed", f"it does not say how to submit workers: {error}", place=path.name
        ) from error
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
    start = [workers.roundkit] if workers.roundkit else [sys.executable, "-m", "roundkit"]
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
        job = _WorkerJob(scheduler, "roundkit-0", workers=workers, tls=tls, **workers.options)
    except (TypeError, ValueError) as error:
        raise _option_refusal(error) from error
    return str(job.job_script())  # type: ignore[no-untyped-call]


@contextmanager
def slurm_workers(workers: SlurmWorkers, scheduler: str, tls: Path | None) -> Iterator[str]:
    """Run a scheduler here and workers as jobs, for as long as the caller is in it.

    Jobs that end (their time is over, their node is lost) are submitted anew.

    Args:
        workers: How workers are submitted.
        scheduler: Address to listen on; port 0 has the system choose one.
        tls: Folder of certificates; None without TLS, which only loopback may do.

    Yields:
        The scheduler's address.

    Raises:
        Refused: as :func:`job_script`.
    """
    check_address(scheduler, tls, place="--scheduler")
    parts = urlsplit(scheduler)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        cluster = _WorkerCluster(
            name="roundkit",
            security=None if tls is None else security_of(tls),
            protocol=None if tls is None else "tls://",
            scheduler_cls=Scheduler,
            scheduler_options={
                "host": parts.hostname,
                "port": parts.port or 0,
                "dashboard": False,
                "dashboard_address": ":0",
            },
            workers=workers,
            tls=tls,
            **workers.options,
        )
    except (TypeError, ValueError) as error:
        raise _option_refusal(error) from error
    with cluster:
        cluster.adapt(minimum_jobs=workers.jobs, maximum_jobs=workers.jobs)
        yield str(cluster.scheduler_address)


def _option_refusal(error: Exception) -> Exception:
    return refuse(
        "slurm-option",
        f"dask-jobqueue refuses the options: {error}",
        place="options",
        remedy="they are those of dask_jobqueue.SLURMCluster; `cores` and `memory` are needed",
    )
