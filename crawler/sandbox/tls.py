"""Creates self-signed certificates for loopback, with which the sandbox serves ``https``."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from twisted.internet.ssl import CertificateOptions, PrivateCertificate

VALID_DAYS = 30


def loopback_certificate(address: str) -> CertificateOptions:
    """Return the options of a TLS server with a new certificate for ``address`` and ``localhost``."""
    options: CertificateOptions = PrivateCertificate.loadPEM(loopback_pem(address)).options()
    return options


def loopback_pem(address: str) -> bytes:
    """Return a new certificate for ``address`` and ``localhost``, with its private key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sandbox")])
    now = datetime.now(UTC)
    names = [x509.IPAddress(ipaddress.ip_address(address)), x509.DNSName("localhost")]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
