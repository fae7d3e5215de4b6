"""Ports, tried before Dask is told of them: its own words would be about something else."""

from __future__ import annotations

import socket

from roundkit.core.errors import refuse


def check_worker_port(host: str | None, port: int) -> None:
    """Check that a worker can listen where it is going to.

    Args:
        host: The address; None for all of the machine's.
        port: The port; 0 has the system choose one.

    Raises:
        Refused: ``worker-port``.
    """
    try:
        _try(host or "", port)
    except OSError as error:
        raise refuse(
            "worker-port",
            f"a worker cannot listen at port {port}: {error.strerror or error}",
            place="--port",
            remedy="name a port that is free, a worker each its own",
        ) from error


def check_scheduler_port(host: str, port: int) -> None:
    """Check that a scheduler can listen where it is going to.

    Args:
        host: The address.
        port: The port; 0 has the system choose one.

    Raises:
        Refused: ``scheduler-port``.
    """
    try:
        _try(host, port)
    except OSError as error:
        raise refuse(
            "scheduler-port",
            f"a scheduler cannot listen at {host}, port {port}: {error.strerror or error}",
            place="--scheduler",
            remedy="name an address of this machine and a port that is free, or port 0 to have one chosen",
        ) from error


def _try(host: str, port: int) -> None:
    with socket.create_server((host, port)):
        pass
