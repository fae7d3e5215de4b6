"""Why a scheduler cannot be reached, in words, in place of Dask's own."""

from __future__ import annotations

import errno
import logging
import socket
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from roundkit.core.errors import refuse
from roundkit.measure.cluster.security import context_of

_CONNECT_S = 3.0
_MOST_CHARACTERS = 200


def silence(*loggers: str) -> None:
    """Keep what Dask logs out of the terminal: what matters of it is said in roundkit's words."""
    for name in loggers:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def unreachable_because(address: str, tls: Path | None, error: Exception) -> str:
    """Say in words why a scheduler cannot be reached, by trying to.

    Args:
        address: The scheduler's.
        tls: Folder with certificates; None without TLS.
        error: What Dask made of it, which is told where nothing is found.
    """
    parts = urlsplit(address)
    try:
        with socket.create_connection((parts.hostname, parts.port), timeout=_CONNECT_S) as plain:
            if tls is None:
                return _told(error)
            with context_of(tls).wrap_socket(plain) as encrypted:
                # A certificate that the other side does not take is told with the first answer.
                encrypted.recv(1)
    except ssl.SSLCertVerificationError as refused:
        return f"its certificate is not of the cluster that {tls} is of: {refused.verify_message}"
    except ssl.SSLError as refused:
        return f"it does not take the certificates in {tls}: {refused.reason}"
    except OSError as refused:
        return refused.strerror or str(refused)
    return _told(error)


def not_connected(
    error: Exception, scheduler: str, tls: Path | None, *, name: str | None, known: bool
) -> str:
    """Say why a worker could not connect, and tries again.

    Where the network was cut, the scheduler may not have noticed: the name that is taken is then this very
    worker's.

    Args:
        error: What Dask made of it.
        scheduler: Address of the scheduler.
        tls: Folder with certificates; None without TLS.
        name: The worker's own name; None where Dask made it.
        known: Whether the scheduler had this worker before.

    Raises:
        Refused: ``name-taken``, where it never had, so that the name is another worker's.
    """
    cause = _cause_of(error)
    if isinstance(cause, OSError) and cause.errno == errno.EADDRINUSE:
        why = "another program took the port of this worker (--port)"
    elif name is None or "name taken" not in str(cause):
        because = unreachable_because(scheduler, tls, error)
        why = f"the scheduler at {scheduler} does not answer: {because}"
    elif known:
        why = f"the scheduler still has a worker called {name}"
    else:
        raise refuse(
            "name-taken",
            f"another worker of this cluster is called {name}",
            place="--name",
            remedy="stop that one, or give this one another name",
        )
    return f"{why}; it is tried again and again"


def _told(error: Exception) -> str:
    cause = _cause_of(error)
    words = " ".join(str(cause).split())[:_MOST_CHARACTERS]
    if isinstance(cause, TimeoutError):
        return words or "it takes connections, but does not answer"
    if isinstance(cause, OSError):
        return words or type(cause).__name__
    # A connection that breaks is an OSError; everything else comes of an answer that Dask cannot read.
    found = words or type(cause).__name__
    return f"what answers there is no Dask scheduler that this version of Dask can speak to ({found})"


def _cause_of(error: Exception) -> Exception:
    while isinstance(error.__cause__, Exception):  # below a time that ran out lies only a cancellation
        error = error.__cause__
    return error
