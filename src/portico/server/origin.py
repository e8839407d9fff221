"""Checks of the Host and Origin headers.

The attack: a web page on another site, open in the user's own browser, calls us on loopback (by a form, a script, an
EventSource, a WebSocket) or rebinds its own host name to 127.0.0.1. So the `Host` must be one of ours, and a request
that a browser made for another site is refused.

Desktop editors are browsers too (Electron), with origins of their own that no web page can have. They pass where they
prove that the user sent them: with a token at the upgrade of a WebSocket. A cookie is no proof: browsers add it.
"""

import ipaddress
import re
from urllib.parse import urlsplit

from portico.kernel.errors import Forbidden, Misdirected

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

_HOST = re.compile(r"(?:\[([^\[\]]+)\]|([^:\[\]]+))(?::\d*)?")

_EDITOR = re.compile(r"vscode-file://vscode-app|vscode-webview://[0-9a-z-]+")
"""Origins that windows and webviews of VS Code, and of editors based on it, send."""

_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://[^\s/?#@\\,*]+")


def host_name(header: str) -> str:
    """Return the name in a Host header, without the port; empty if the header is invalid."""
    found = _HOST.fullmatch(header)
    return (found[1] or found[2]).lower() if found else ""


def check_host(header: str | None, allowed: frozenset[str]) -> None:
    if header is None:
        raise Misdirected("The request has no Host header.")
    if host_name(header) not in allowed:
        raise Misdirected(
            f"This host does not answer to {header!r}. Add the name to security.allow_hosts if it is yours."
        )


def check_origin(host: str, secure: bool, origin: str | None, site: str | None, extra: frozenset[str]) -> None:
    """Refuse requests that a browser sends for another site. Programs send neither header and are accepted."""
    if origin is not None:
        own = f"{'https' if secure else 'http'}://{host}"
        if origin.lower() != own.lower() and origin not in extra:
            raise Forbidden(_refusal(origin))
        return
    if site not in (None, "same-origin", "none"):
        raise Forbidden("A page of another site may not do this.")


def check_sent_by_us(origin: str | None, site: str | None) -> None:
    """Refuse a GET that changes state if no header tells who sent it. A proxy adds the login of a person to every
    request, so an old browser, or one on plain HTTP, could send it for an image on another site. An origin that is
    present was already checked."""
    if origin is None and site is None:
        words = "it has neither Origin nor Sec-Fetch-Site, so another site may have sent it"
        raise Forbidden(f"A GET may not change anything here: {words}. Use POST, or a token in Authorization.")


def _refusal(origin: str) -> str:
    if is_editor_origin(origin):
        return f"The editor {origin!r} may open a WebSocket, with a token: put '?tkn=TOKEN' into its address."
    return f"The origin {origin!r} may not do this. Add it to security.allow_origins if it is yours."


def origin_of(url: str) -> str:
    """Return the origin of an address as browsers send it; empty if there is none."""
    parts = urlsplit(url)
    if not parts.hostname:
        return ""
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = "" if parts.port in (None, {"http": 80, "https": 443}.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme.lower()}://{name}{port}"


def is_editor_origin(origin: str | None) -> bool:
    return origin is not None and _EDITOR.fullmatch(origin) is not None


def is_loopback(host: str) -> bool:
    if host.lower() in LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_origin(text: str) -> bool:
    """Return whether this is an origin: only scheme, host and port. `file` is refused: all local files share it."""
    found = _ORIGIN.fullmatch(text)
    return found is not None and found[1] != "file" and bool(urlsplit(text).hostname)
