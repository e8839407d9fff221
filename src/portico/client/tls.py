"""TLS to a host on the same machine, whose certificate names the outside and not 127.0.0.1."""

import ssl

from portico.errors import Unreachable


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
