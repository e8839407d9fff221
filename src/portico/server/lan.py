"""TLS on the local network: a certificate authority that is created once, and a certificate for this machine's address.

The attack: somebody in the same network reads a token, or a stolen key signs certificates for other sites. So the host
never serves the network without TLS; the authority may sign only for private addresses (name constraints), and its key
is readable by the owner only.
"""

import datetime
import ipaddress
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from portico.kernel.errors import BadRequest, Unreachable
from portico.server.home import write_private

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

LAN_AUTHORITY = "lan-authority.crt"
_AUTHORITY_KEY = "lan-authority.key"
_CERTIFICATE, _KEY = "lan.crt", "lan.key"
_AUTHORITY_DAYS = 3650
_DAYS = 397
"""Phones refuse certificates that are valid for longer."""
_RENEW = datetime.timedelta(days=30)
_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16", "127.0.0.0/8")
_SOMEWHERE = ("192.0.2.1", 9)
"""An address of documentation. Connecting a UDP socket sends nothing; it only selects the local address."""


def private_address() -> str:
    """Return the address of this machine in its local network."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(_SOMEWHERE)
            found = str(probe.getsockname()[0])
    except OSError as error:
        raise Unreachable(f"This machine is in no network: {error.strerror or error}.") from error
    address = ipaddress.ip_address(found)
    if not any(address in ipaddress.ip_network(each) for each in _PRIVATE):
        raise BadRequest(
            f"The address of this machine, {found}, is public: --lan is for private networks. Use a proxy with TLS.",
            field="lan",
        )
    return found


def certificate(home: Path, address: str) -> tuple[Path, Path]:
    """Return the certificate and the key for the address. They are created again when the address has changed or the
    certificate expires soon; the authority stays, so devices trust the new one."""
    try:
        from cryptography import x509
    except ImportError:
        raise Unreachable("--lan needs the package cryptography: pip install 'portico[push]'") from None
    paths = home / _CERTIFICATE, home / _KEY
    if all(path.is_file() for path in paths):
        known = x509.load_pem_x509_certificate(paths[0].read_bytes())
        if _addresses(known) == [address] and known.not_valid_after_utc - _now() > _RENEW:
            return paths
    authority, signing = _authority(home)
    made, key = _issue(address, authority, signing)
    write_private(paths[1], _key_bytes(key))
    write_private(paths[0], _pem(made) + _pem(authority))
    return paths


def _authority(home: Path) -> "tuple[x509.Certificate, EllipticCurvePrivateKey]":
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    path, key_path = home / LAN_AUTHORITY, home / _AUTHORITY_KEY
    if path.is_file() and key_path.is_file():
        key = serialization.load_pem_private_key(key_path.read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return x509.load_pem_x509_certificate(path.read_bytes()), key
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"Portico on {socket.gethostname()[:40]}")])
    permitted = [x509.IPAddress(ipaddress.IPv4Network(each)) for each in _PRIVATE]
    made = (
        _builder(name, name, key, _AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.NameConstraints(permitted, None), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    write_private(key_path, _key_bytes(key))
    write_private(path, _pem(made))
    return made, key


def _issue(
    address: str, authority: "x509.Certificate", signing: "EllipticCurvePrivateKey"
) -> "tuple[x509.Certificate, EllipticCurvePrivateKey]":
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, address)])
    made = (
        _builder(name, authority.subject, key, _DAYS)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(signing, hashes.SHA256())
    )
    return made, key


def _builder(
    subject: "x509.Name", issuer: "x509.Name", key: "EllipticCurvePrivateKey", days: int
) -> "x509.CertificateBuilder":
    from cryptography import x509

    start = _now() - datetime.timedelta(hours=1)  # clocks differ
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
    return builder.not_valid_before(start).not_valid_after(start + datetime.timedelta(days=days))


def _usage(*, signs: bool) -> "x509.KeyUsage":
    from cryptography import x509

    return x509.KeyUsage(not signs, False, False, False, False, signs, signs, False, False)


def _addresses(known: "x509.Certificate") -> list[str]:
    from cryptography import x509

    names = known.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(each) for each in names.get_values_for_type(x509.IPAddress)]


def _pem(made: "x509.Certificate") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return made.public_bytes(Encoding.PEM)


def _key_bytes(key: "EllipticCurvePrivateKey") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
