"""Reverse proxies: forwarded headers from trusted proxies, and the base path.

The attack: a client sends its own `X-Forwarded-For` or `X-Forwarded-Proto`, to choose its address in the audit record
or to pretend that it uses TLS. So these headers are accepted only from an address in `server.trusted_proxies` (or from
the Unix socket, if that list contains `unix`), the last address that is not a trusted proxy is used, and these headers
are dropped from all other requests.
"""

import hmac
import ipaddress
import re
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from portico.kernel.errors import BadRequest

ROOT = "portico.root"
"""Scope key: the base path of a request, for example `/portico`, or empty."""
PROXY_LOGIN = "portico.proxy_login"
"""Scope key: the person whom a trusted proxy has logged in."""
SCHEME_KNOWN = "portico.scheme_known"
"""Scope key: a trusted proxy has named the scheme that the client used."""
_SECRET = "x-portico-proxy-secret"
_UNIX = "unix"
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)+")
_FORWARDED = (b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host", b"x-forwarded-prefix", b"forwarded")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Proxies:
    """The trusted proxies."""

    def __init__(self, entries: Sequence[str]) -> None:
        self.unix = _UNIX in entries
        self._networks: list[Network] = []
        for entry in entries:
            if entry == _UNIX:
                continue
            try:
                self._networks.append(ipaddress.ip_network(entry))
            except ValueError:
                raise BadRequest(
                    f"{entry!r} is neither an address nor a network such as '10.0.0.0/8', nor 'unix'.",
                    field="server.trusted_proxies",
                ) from None

    @property
    def empty(self) -> bool:
        return not self.unix and not self._networks

    @property
    def loopback(self) -> bool:
        """Whether programs on this machine count as trusted proxies."""
        return any(each in self for each in ("127.0.0.1", "::1"))

    def __contains__(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        mapped = getattr(found, "ipv4_mapped", None)
        return any(each in network for network in self._networks for each in (found, mapped) if each is not None)

    def trusts(self, scope: Scope) -> bool:
        """Return whether the peer of this connection is a trusted proxy."""
        client = scope.get("client")
        return client[0] in self if client else self.unix


def check_root_path(path: str) -> str:
    """Return the normalized base path: with a leading slash and no trailing slash, or empty."""
    wanted = f"/{path.strip('/')}" if path.strip("/") else ""
    if wanted and (not _PREFIX.fullmatch(wanted) or ".." in wanted.split("/")):
        raise BadRequest(f"{path!r} is not a base path such as '/portico'.", field="server.root_path")
    return wanted


class ProxyLogin:
    """The header in which a trusted proxy names a person. If 127.0.0.1 is a trusted proxy, any local program could send
    it, so the proxy must also send a secret."""

    def __init__(self, header: str, secret: str, proxies: Proxies) -> None:
        self.header = header.lower()
        self._secret = secret
        if not re.fullmatch(r"[a-z0-9-]{1,64}", self.header):
            raise BadRequest(f"{header!r} is not the name of a header.", field="login.proxy.header")
        if proxies.empty:
            words = "name the proxy in server.trusted_proxies, or nobody can log in by it"
            raise BadRequest(f"login.proxy.header = {header!r}: {words}.", field="login.proxy.header")
        if proxies.loopback and not secret:
            words = "every program on this machine could send it: set login.proxy.secret, or use a Unix socket"
            raise BadRequest(f"login.proxy.header = {header!r}: {words}.", field="login.proxy.secret")

    def person(self, headers: Headers) -> str | None:
        given = headers.getlist(self.header)
        known = headers.getlist(_SECRET)
        if self._secret and (len(known) != 1 or not _same(known[0], self._secret)):
            return None
        return given[0] if len(given) == 1 and given[0].strip() else None

    def strip(self, scope: Scope) -> None:
        """Remove the header and the secret from every request, so that neither reaches the gate or the doors."""
        hidden = (self.header.encode(), _SECRET.encode())
        scope["headers"] = [each for each in scope["headers"] if each[0] not in hidden]


def _same(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), right.encode("utf-8", "surrogatepass"))


class BehindProxy:
    """Wraps the gate if trusted proxies or a base path are configured: the gate sees the request as the proxy did."""

    def __init__(self, app: ASGIApp, proxies: Proxies, root: str, login: ProxyLogin | None = None) -> None:
        self._app = app
        self.proxies = proxies
        self.root = root
        self.login = login

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        forwarded = Headers(scope=scope)
        trusted = self.proxies.trusts(scope)
        scope["headers"] = [each for each in scope["headers"] if each[0] not in _FORWARDED]
        root = self.root
        if self.login is not None:
            self.login.strip(scope)
            if trusted and (person := self.login.person(forwarded)) is not None:
                scope[PROXY_LOGIN] = person
        if trusted:
            _believe(scope, forwarded, self.proxies)
            root = _prefix(forwarded) or root
        if root and scope["path"] == root and scope["type"] == "http":
            await _redirect(scope, f"{root}/", send)
            return
        _strip(scope, root)
        await self._app(scope, receive, send)


def _believe(scope: Scope, headers: Headers, proxies: Proxies) -> None:
    if address := _client(headers.getlist("x-forwarded-for"), proxies):
        scope["client"] = (address, 0)
    proto = headers.get("x-forwarded-proto", "").rpartition(",")[2].strip().lower()
    if proto in ("http", "https"):
        scope[SCHEME_KNOWN] = True
        secure = proto == "https"
        scope["scheme"] = ("wss" if secure else "ws") if scope["type"] == "websocket" else proto
    host = headers.get("x-forwarded-host", "").rpartition(",")[2].strip()
    if host:
        others = [each for each in scope["headers"] if each[0] != b"host"]
        scope["headers"] = [(b"host", host.encode("latin-1")), *others]


def _client(lines: Sequence[str], proxies: Proxies) -> str:
    """Return the last address that is not a trusted proxy. A client can forge all addresses before it."""
    addresses = [each.strip() for line in lines for each in line.split(",")]
    for address in reversed(addresses):
        bare = address.strip("[]")
        try:
            ipaddress.ip_address(bare)
        except ValueError:
            return ""
        if bare not in proxies:
            return bare
    return ""


def _prefix(headers: Headers) -> str:
    given = headers.get("x-forwarded-prefix", "").rstrip("/")
    return given if _PREFIX.fullmatch(given) and ".." not in given.split("/") else ""


def _strip(scope: Scope, root: str) -> None:
    """Remove the base path. Proxies that already removed it are supported, too."""
    scope[ROOT] = root
    if root and scope["path"].startswith(f"{root}/"):
        scope["path"] = scope["path"][len(root) :]
        scope["raw_path"] = scope["raw_path"].removeprefix(root.encode())


async def _redirect(scope: Scope, path: str, send: Send) -> None:
    query = scope["query_string"]
    location = path.encode() + (b"?" + query if query else b"")
    await send({"type": "http.response.start", "status": 308, "headers": [(b"location", location)]})
    await send({"type": "http.response.body", "body": b""})
