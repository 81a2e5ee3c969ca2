"""TLS: the certificate that the server shows, given or made."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lakestream_localkinesis.errors import SettingsError

CERTIFICATE = "tls.crt"
KEY = "tls.key"
"""The names that a Secret of type kubernetes.io/tls has for them."""
VALID = timedelta(days=3650)
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


def server_context(folder: Path, host: str) -> ssl.SSLContext:
    """What to serve with: the certificate and key in this folder, which are made if neither is there.

    Clients choose HTTP/2 or HTTP/1.1 by ALPN.
    """
    certificate, key = folder / CERTIFICATE, folder / KEY
    if certificate.exists() != key.exists():
        raise SettingsError(
            f"tls: {folder} has only one of {CERTIFICATE} and {KEY}: put the other beside it, or remove it"
        )
    try:
        if not certificate.exists():
            _make(certificate, key, dict.fromkeys((host, *LOCAL_NAMES)))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
    except OSError as error:
        raise SettingsError(f"tls: {CERTIFICATE} and {KEY} in {folder} cannot be used: {error}") from error
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


def _make(certificate: Path, key: Path, names: dict[str, None]) -> None:
    """Write a certificate for these names that signs itself: clients are given the file as the authority to trust."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import NameOID
    except ImportError as error:
        raise SettingsError(
            f"tls: put {CERTIFICATE} and {KEY} into {certificate.parent}, or install lakestream-localkinesis[tls], "
            "which makes them"
        ) from error
    private = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "LakeStream's local Kinesis")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(subject, subject, private.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + VALID)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.SubjectAlternativeName(
                [
                    x509.IPAddress(ipaddress.ip_address(name)) if _is_address(name) else x509.DNSName(name)
                    for name in names
                ]
            ),
            critical=False,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(private.public_key()), critical=False)
        .sign(private, hashes.SHA256())
    )
    certificate.parent.mkdir(parents=True, exist_ok=True)
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    # Neither has its name before both are whole: one alone is refused at the next start.
    unfinished = [path.with_name(f"{path.name}.new") for path in (key, certificate)]
    unfinished[0].touch(mode=0o600)
    for path, content in zip(unfinished, (pem, made.public_bytes(serialization.Encoding.PEM)), strict=True):
        path.write_bytes(content)
    for path, named in zip(unfinished, (key, certificate), strict=True):
        path.rename(named)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
