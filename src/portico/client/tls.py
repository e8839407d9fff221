"""Which certificates a client trusts, and which hosts it reaches without a proxy.

The certificate of a host on the same machine names the outside and not 127.0.0.1.
"""

import ipaddress
import os
import ssl
from urllib.parse import urlsplit

from portico.kernel.errors import Unreachable


def trusting(path: str) -> ssl.SSLContext:
    """Return a TLS context for a client on the same machine: it trusts only this certificate, with any host name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(path)
    except OSError as error:  # ssl.SSLError too
        words = f"The host's certificate {path!r} cannot be read: {error}. Put the file right, or use --url."
        raise Unreachable(words) from error
    return context


def authorities(cacert: str = "") -> ssl.SSLContext | bool:
    """Return whom to trust: the authorities in a file (`--cacert`), those that `SSL_CERT_FILE` or `SSL_CERT_DIR` names,
    or the usual ones."""
    file = cacert or os.environ.get("SSL_CERT_FILE", "")
    folder = "" if cacert else os.environ.get("SSL_CERT_DIR", "")
    if not file and not folder:
        return True
    try:
        return ssl.create_default_context(cafile=file or None, capath=folder or None)
    except OSError as error:  # ssl.SSLError too
        named = "--cacert" if cacert else "SSL_CERT_FILE"
        raise Unreachable(
            f"The certificates of {named} ({file!r}) cannot be read: {error}. Name a PEM file."
        ) from error


def is_near(url: str) -> bool:
    """Return whether an address is on this machine: no proxy can reach it."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
