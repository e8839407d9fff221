"""Web push: a subscription of a browser, the encrypted body (RFC 8291) and the host's signature (RFC 8292).

A push contains that something waits or has ended, and where, but no content. It is encrypted for the browser: the push
service of its vendor sees only the time and the size, which is the same for all.
"""

import base64
import binascii
import hashlib
import os
from typing import TYPE_CHECKING, Any

import msgspec

from portico.features.notices.notice import Delivery, Notice
from portico.kernel.errors import BadRequest, Conflict
from portico.server.settings import NoticeTarget

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey as PrivateKey

PREFIX = "push-"
SIZE = 512
"""Bytes of every message before encryption, so that the length reveals nothing. Push services take 4,096."""
_RECORD = 4096
_TOKEN_SECONDS = 12 * 3600
"""How long a signature is valid; at most a day (RFC 8292)."""
_URGENT = ("approval", "question", "budget")
_KEPT_SECONDS = 86_400
"""How long the push service keeps it for a phone that is off: as long as our own retries."""


class PushTarget(NoticeTarget, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A browser that is to be told."""

    endpoint: str
    p256dh: str
    auth: str
    device: str = ""
    by: str
    """Who subscribed, as events name them."""
    caller: str = ""
    """The id of their token."""
    created: int


def installed() -> bool:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        return False
    return True


def check_installed() -> None:
    if not installed():
        raise Conflict("Web push needs a library on the host: pip install 'portico[push]', then restart it.")


def name_of(endpoint: str) -> str:
    return PREFIX + hashlib.sha256(endpoint.encode()).hexdigest()[:12]


def decode(text: str) -> bytes:
    """base64url, as browsers write it: with or without padding."""
    try:
        return base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (binascii.Error, UnicodeEncodeError, ValueError):
        return b""


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def check_keys(p256dh: str, auth: str) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decode(p256dh))
    except ValueError:
        words = "p256dh is the browser's public key: 65 bytes of the curve P-256, in base64url."
        raise BadRequest(words, field="p256dh") from None
    if len(decode(auth)) != 16:
        raise BadRequest("auth is 16 bytes in base64url.", field="auth")


# -- what is sent ----------------------------------------------------------------------------------------------


def payload(notice: Notice, base: str) -> bytes:
    """Always of one size. `path` is the link target on the host, below its base path."""
    words = "Something waits for you." if notice.kind in _URGENT else "Something has ended."
    if notice.kind == "test":
        words = "This browser is told from now on."
    path = notice.link.removeprefix(base) if base and notice.link.startswith(base) else "/app"
    data = msgspec.json.encode({"text": words, "path": path[:300], "tag": notice.about})
    return data[:SIZE].ljust(SIZE)


def headers(delivery: Delivery, target: PushTarget, key: "PrivateKey", contact: str, now: int) -> dict[str, str]:
    about = hashlib.sha256(delivery.notice.about.encode()).digest()[:24]
    urgent = delivery.notice.kind in _URGENT
    return {
        "Authorization": authorization(target.endpoint, key, contact, now),
        "Content-Encoding": "aes128gcm",
        "Content-Type": "application/octet-stream",
        "TTL": str(_KEPT_SECONDS),
        "Urgency": "high" if urgent else "normal",
        "Topic": encode(about),  # a later push replaces one that was not shown yet
    }


def encrypt(target: PushTarget, plain: bytes, salt: bytes = b"", own: "PrivateKey | None" = None) -> bytes:
    """One record of `aes128gcm` (RFC 8188), with a key for this message alone. `salt`, `own`: for tests."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    salt, own = salt or os.urandom(16), own or ec.generate_private_key(ec.SECP256R1())
    public, receiver = public_of(own), decode(target.p256dh)
    shared = own.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), receiver))
    secret = _hkdf(decode(target.auth), shared, b"WebPush: info\0" + receiver + public, 32)
    key = _hkdf(salt, secret, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _hkdf(salt, secret, b"Content-Encoding: nonce\0", 12)
    head = salt + _RECORD.to_bytes(4, "big") + bytes([len(public)]) + public
    return head + AESGCM(key).encrypt(nonce, plain + b"\x02", None)


def _hkdf(salt: bytes, secret: bytes, info: bytes, size: int) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), size, salt, info).derive(secret)


# -- who sends it ----------------------------------------------------------------------------------------------


def new_key() -> bytes:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value.to_bytes(32, "big")


def key_from(data: bytes) -> "PrivateKey":
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.derive_private_key(int.from_bytes(data, "big"), ec.SECP256R1())


def public_of(key: "PrivateKey") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def authorization(endpoint: str, key: "PrivateKey", contact: str, now: int) -> str:
    """VAPID: a token for this push service, signed with the key that the browser subscribed with."""
    from urllib.parse import urlsplit

    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
    from cryptography.hazmat.primitives.hashes import SHA256

    parts = urlsplit(endpoint)
    claims: dict[str, Any] = {"aud": f"{parts.scheme}://{parts.netloc}", "exp": now // 1000 + _TOKEN_SECONDS}
    if contact:
        claims["sub"] = contact
    signed = ".".join(encode(msgspec.json.encode(each)) for each in ({"typ": "JWT", "alg": "ES256"}, claims))
    r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(SHA256())))
    token = f"{signed}.{encode(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"
    return f"vapid t={token}, k={encode(public_of(key))}"
