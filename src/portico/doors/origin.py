"""Where does it come from? Host and origin.

The attack: a web page on another site, open in the user's own browser, calls us on loopback (by a form, a script, an
EventSource, a WebSocket) or rebinds its own host name to 127.0.0.1. So the `Host` must be one of ours, and a request
that a browser made for another site is refused.
"""

import ipaddress
import re
from urllib.parse import urlsplit

from portico.errors import Forbidden, Misdirected

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


_HOST = re.compile(r"(?:\[([^\[\]]+)\]|([^:\[\]]+))(?::\d*)?")


def host_name(header: str) -> str:
    """The name in a Host header, without its port; empty when it is no such header."""
    found = _HOST.fullmatch(header)
    return (found[1] or found[2]).lower() if found else ""


def check_host(header: str | None, allowed: frozenset[str]) -> None:
    if header is None or host_name(header) not in allowed:
        raise Misdirected(
            f"This host does not answer to {header!r}. Add the name to security.allow_hosts if it is yours."
        )


def check_origin(host: str, secure: bool, origin: str | None, site: str | None, extra: frozenset[str]) -> None:
    """Refuses what a browser sends on behalf of another site. Programs send neither header and pass."""
    if origin is not None:
        own = f"{'https' if secure else 'http'}://{host}"
        if origin.lower() != own.lower() and origin not in extra:
            raise Forbidden(f"The origin {origin!r} may not do this. Add it to security.allow_origins if it is yours.")
        return
    if site not in (None, "same-origin", "none"):
        raise Forbidden("A page of another site may not do this.")


def is_loopback(host: str) -> bool:
    if host.lower() in LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_origin(text: str) -> bool:
    """Just scheme, host and port, as browsers send it."""
    parts = urlsplit(text)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and text == f"{parts.scheme}://{parts.netloc}"
