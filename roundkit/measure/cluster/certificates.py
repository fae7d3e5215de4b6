"""The certificates of one cluster: an authority of its own, and one key that all its machines share."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from roundkit.core.clock import now_utc
from roundkit.core.errors import refuse
from roundkit.core.files import atomic_write, whole_folder
from roundkit.measure.cluster.security import AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE


def make_certificates(target: Path, *, days: int) -> datetime:
    """Make a folder with what every machine of a cluster needs to know the others.

    Whoever has the key belongs to the cluster: scheduler, workers and coordinators alike. The authority's own
    key is not kept, so that nobody can add another one later.

    Args:
        target: The folder; it must not exist yet.
        days: How long the certificates hold.

    Returns:
        When they end.

    Raises:
        Refused: ``certificates-exist``.
        OSError: the folder cannot be written.
    """
    if target.exists():
        raise refuse(
            "certificates-exist",
            f"{target} exists already",
            place=str(target),
            remedy="a cluster keeps its certificates; name another folder to make new ones",
        )
    start, end = now_utc() - timedelta(minutes=5), now_utc() + timedelta(days=days)
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer, subject = _name("roundkit cluster authority"), _name("roundkit cluster")
    authority = (
        _builder(issuer, issuer, authority_key, start, end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    both_ways = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    certificate = (
        _builder(subject, issuer, key, start, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(both_ways), critical=False)
        .add_extension(identifier, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with whole_folder(target) as folder:
        folder.chmod(0o700)
        atomic_write(folder / KEY_FILE, private, mode=0o600)
        for name, public in ((CERTIFICATE_FILE, certificate), (AUTHORITY_FILE, authority)):
            atomic_write(folder / name, public.public_bytes(serialization.Encoding.PEM), mode=0o600)
    return end


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, start: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )
