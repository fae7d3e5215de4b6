"""Who may talk to a cluster: TLS wherever it is not on loopback."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from roundkit.core.errors import refuse

if TYPE_CHECKING:
    from distributed.security import Security

AUTHORITY_FILE = "authority.pem"
CERTIFICATE_FILE = "cluster.pem"
KEY_FILE = "cluster.key"


def check_address(address: str, tls: Path | None, *, place: str) -> None:
    """Check that nobody else on the network can speak for a cluster at an address.

    Args:
        address: Of the scheduler, e.g. ``tls://10.0.0.1:8786``.
        tls: Folder with the cluster's certificates; None without TLS.
        place: What to call the address in an error.

    Raises:
        Refused: ``scheduler-address``: it is none; ``tls-needed``: it is not on loopback and has no TLS;
            ``tls-files``: a certificate is missing.
    """
    parts = urlsplit(address)
    if parts.scheme not in {"tcp", "tls"} or not parts.hostname:
        raise refuse(
            "scheduler-address",
            f"{address!r} is no address of a scheduler",
            place=place,
            remedy="write it as tls://HOST:PORT, or on one machine tcp://127.0.0.1:PORT",
        )
    if tls is not None:
        missing = [
            name for name in (AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE) if not (tls / name).is_file()
        ]
        if missing:
            raise refuse(
                "tls-files",
                f"{tls} has no {', '.join(missing)}",
                place="--tls",
                remedy="make them once with `roundkit cluster cert` and copy the folder to each machine",
            )
    if tls is None and parts.scheme == "tls":
        raise refuse(
            "tls-needed", f"{address} needs certificates", place=place, remedy="name them with --tls"
        )
    if tls is not None and parts.scheme != "tls":
        raise refuse(
            "tls-needed", f"{address} is not encrypted", place=place, remedy="write it as tls://HOST:PORT"
        )
    if tls is None and not _on_loopback(parts.hostname):
        raise refuse(
            "tls-needed",
            f"{address} is not on this machine's loopback: whoever reaches it could run code here",
            place=place,
            remedy="make certificates with `roundkit cluster cert`, start the scheduler with them, and "
            "name their folder with --tls",
        )


def security_of(tls: Path | None) -> Security:
    """Return Dask's security settings for a folder of certificates; without one, none."""
    from distributed.security import Security

    if tls is None:
        return Security()
    certificate, key = str(tls / CERTIFICATE_FILE), str(tls / KEY_FILE)
    return Security(
        require_encryption=True,
        tls_ca_file=str(tls / AUTHORITY_FILE),
        tls_client_cert=certificate,
        tls_client_key=key,
        tls_worker_cert=certificate,
        tls_worker_key=key,
        tls_scheduler_cert=certificate,
        tls_scheduler_key=key,
    )


def _on_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
