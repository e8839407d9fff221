"""mTLS between hosts: each presents a certificate of the cluster's own authority, and trusts no other.

The attack: an attacker on the network between hosts reads prompts or impersonates a host. So both ends authenticate;
the key of the database is still required.
"""

import ssl
from pathlib import Path
from typing import NamedTuple

from portico.kernel.errors import BadRequest
from portico.server.settings import ClusterSettings

_FIELDS = ("tls_cert", "tls_key", "tls_ca")


class LinkTls(NamedTuple):
    server: ssl.SSLContext
    client: ssl.SSLContext


def link_tls(settings: ClusterSettings) -> LinkTls | None:
    """Return the TLS contexts of the settings; None if no certificates are set."""
    given = [Path(getattr(settings, field)).expanduser() if getattr(settings, field) else None for field in _FIELDS]
    if not any(given):
        return None
    for field, path in zip(_FIELDS, given, strict=True):
        if path is None:
            raise BadRequest("TLS between hosts needs tls_cert, tls_key and tls_ca.", field=f"cluster.{field}")
        if not path.is_file():
            raise BadRequest(f"There is no file {str(path)!r}.", field=f"cluster.{field}")
    cert, key, authority = map(str, given)
    made = LinkTls(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    for context in made:
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_mode = ssl.CERT_REQUIRED
        _load(context, cert, key, authority)
    return made


def _load(context: ssl.SSLContext, cert: str, key: str, authority: str) -> None:
    try:
        context.load_verify_locations(authority)
    except OSError as error:
        raise BadRequest(f"{authority!r} is no certificate in PEM: {error}.", field="cluster.tls_ca") from error
    try:
        context.load_cert_chain(cert, key)
    except OSError as error:
        words = f"The certificate {cert!r} with the key {key!r} cannot be used: {error}."
        raise BadRequest(words, field="cluster.tls_cert") from error
