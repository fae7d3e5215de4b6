"""Who may talk to a cluster: TLS wherever it is not on loopback."""

from __future__ import annotations

import ipaddress
import ssl
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from roundkit.core.clock import format_utc, now_utc
from roundkit.core.errors import refuse

if TYPE_CHECKING:
    from distributed.security import Security

AUTHORITY_FILE = "authority.pem"
CERTIFICATE_FILE = "cluster.pem"
KEY_FILE = "cluster.key"
HTTP_ADDRESS = "127.0.0.1:0"
"""Where Dask's own HTTP server listens, which asks nobody for a certificate: for no other machine."""
_REMEDY = "make them with `roundkit cluster cert` and copy the folder to each machine"


def check_address(address: str, tls: Path | None, *, place: str) -> None:
    """Check that nobody else on the network can speak for a cluster at an address.

    Args:
        address: Of the scheduler, e.g. ``tls://10.0.0.1:8786``.
        tls: Folder with the cluster's certificates; None without TLS.
        place: What to call the address in an error.

    Raises:
        Refused: ``scheduler-address``: it is none; ``tls-needed``: it is not on loopback and has no TLS;
            ``tls-files``: a certificate is missing, or is none; ``tls-expired``: it does not hold now.
    """
    parts = _parts_of(address)
    if parts is None:
        raise refuse(
            "scheduler-address",
            f"{address!r} is no address of a scheduler",
            place=place,
            remedy="write it as tls://HOST:PORT, or on one machine tcp://127.0.0.1:PORT",
        )
    if tls is not None:
        _check_certificates(tls)
    if tls is None and parts.scheme == "tls":
        raise refuse(
            "tls-needed", f"{address} needs certificates", place=place, remedy="name them with --tls"
        )
    if tls is not None and parts.scheme != "tls":
        raise refuse(
            "tls-needed", f"{address} is not encrypted", place=place, remedy="write it as tls://HOST:PORT"
        )
    if tls is None and not _on_loopback(parts.hostname or ""):
        raise refuse(
            "tls-needed",
            f"{address} is not on this machine's loopback: whoever reaches it could run code here",
            place=place,
            remedy="make certificates with `roundkit cluster cert`, start the scheduler with them, and "
            "name their folder with --tls",
        )


def _check_certificates(tls: Path) -> None:
    missing = [name for name in (AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE) if not (tls / name).is_file()]
    if missing:
        raise refuse("tls-files", f"{tls} has no {', '.join(missing)}", place="--tls", remedy=_REMEDY)
    from cryptography import x509

    try:
        context_of(tls)
        certificate = x509.load_pem_x509_certificate((tls / CERTIFICATE_FILE).read_bytes())
    except (OSError, ValueError) as error:  # what TLS says is an OSError
        raise refuse(
            "tls-files", f"the certificates in {tls} cannot be used: {error}", place="--tls", remedy=_REMEDY
        ) from error
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if not begin <= now_utc() <= end:
        raise refuse(
            "tls-expired",
            f"the certificates in {tls} hold from {format_utc(begin)} to {format_utc(end)}, and it is now "
            f"{format_utc(now_utc())}",
            place="--tls",
            remedy=f"{_REMEDY}, or set this machine's clock",
        )


def context_of(tls: Path) -> ssl.SSLContext:
    """Return how a machine of a cluster opens an encrypted connection.

    Raises:
        OSError: the certificates cannot be used.
    """
    context: ssl.SSLContext = security_of(tls).get_connection_args("client")["ssl_context"]
    return context


def _parts_of(address: str) -> SplitResult | None:
    """Return the parts of an address, None where it is none of a scheduler."""
    try:
        parts = urlsplit(address)
        complete = parts.scheme in {"tcp", "tls"} and parts.hostname and parts.port is not None
    except ValueError:  # brackets without an address of IPv6, a port that is no number
        return None
    return parts if complete else None


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
