"""The pages: built files from the package, the login, and the security headers.

The attack: agent text or a link injects a script into a page that can control agents. So inline scripts cannot run,
foreign content cannot be loaded, other sites cannot frame the pages or keep a reference to them, and any other file is
sent as a download.
"""

import functools
import hashlib
import mimetypes
import os
import time
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from portico.kernel.cache import Cache
from portico.kernel.errors import BadRequest, NotFound
from portico.server.app import App
from portico.server.door import Door
from portico.server.feature_pages import FeaturePages, served_pages
from portico.server.gate import VISITOR
from portico.server.home import stamp
from portico.server.lan import LAN_AUTHORITY
from portico.server.login import login_routes, record_logout
from portico.server.login_redirect import UNKEPT, WORKBENCH, landing, log_in, root
from portico.server.origin import host_name, is_loopback
from portico.server.request_head import HEAD, RequestHead
from portico.server.route import Caller, Media, Param, Table, caller
from portico.server.routes import Routes

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; worker-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".gif": "image/gif",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}
_NO_SITE: dict[int, Media] = {303: None, 503: "text/plain"}
"""Redirect to or from the login; or this host was installed without pages."""
_NO_PAGE: dict[int, Media] = {**_NO_SITE, 404: ("text/plain", "text/html")}
"""As above; or the file does not exist."""
_LOGIN: dict[str, str | Param] = {
    "tkn": "a token: log in with it",
    "code": "the code of a link that works once, for `portico serve --open`",
}
_ENCODINGS = (("br", ".br"), ("gzip", ".gz"))
_PAGES = 500
"""Cache size: there are about 200 files, 2 MB in total."""
_LOOK_SECONDS = 1.0
"""Minimum interval between two checks whether a page was rebuilt: fast enough for its author."""
_HASHED = "assets/"
"""Vite puts files with a hash in their name here: they never change."""


INBOX = "/app/inbox"
"""Where a paired device starts: at what needs the user."""
NO_PAGES = (
    "This host was installed without its web pages. Everything else works: the command line, the APIs and editors. "
    "To get the pages, install a released wheel or sdist of Portico, or in a checkout run `make run` (it needs Node)."
)


def pages_folder() -> Path:
    return Path(str(resources.files("portico.doors"))) / "pages"


def pages_missing() -> bool:
    return not (pages_folder() / "index.html").is_file()


class StaticPage(NamedTuple):
    """A cached file, ready to send."""

    until: float
    """When the file is checked again."""
    stamp: object
    answers: dict[str, "PageResponse"]
    """By encoding; "" is uncompressed."""


class PageResponse(NamedTuple):
    body: bytes
    etag: str
    headers: list[tuple[bytes, bytes]]

    def response(self, wanted: str | None) -> Response:
        """Build the response. `wanted` is the If-None-Match header: what the browser has cached."""
        same = wanted is not None and (wanted == "*" or self.etag in wanted)
        response = _RawResponse(b"" if same else self.body, 304 if same else 200)
        length = [] if same else [(b"content-length", b"%d" % len(self.body))]
        response.raw_headers = [*self.headers, *length]
        return response


class _RawResponse(Response):
    """A response with prebuilt headers."""

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        pass


class Pages:
    """Cache of the built files. A rebuilt file is read again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self.empty = not (self._folder / "index.html").is_file()
        self._known = Cache[tuple[str, str | None], StaticPage](_PAGES)

    def find(self, name: str) -> Path:
        """Return a file inside the folder; any other path is not found."""
        path = (self._folder / name).resolve() if "\0" not in name else self._folder
        if not path.is_relative_to(self._folder) or not os.path.isfile(path):  # also for names that the disk refuses
            raise NotFound("page", f"/{name}")
        return path

    def answer(self, name: str, accepted: str, wanted: str | None = None, base: str | None = None) -> Response:
        """Return the response for a file. A `base` path is inserted into its relative links."""
        now = time.monotonic()
        page = self._known.get((name, base))
        if page is None or now > page.until:
            page = self._known[name, base] = self._look(name, base, page, now + _LOOK_SECONDS)
        encoding = next((each for each, _ in _ENCODINGS if each in accepted and each in page.answers), "")
        return page.answers[encoding].response(wanted)

    def _look(self, name: str, base: str | None, known: StaticPage | None, until: float) -> StaticPage:
        path = self.find(name)
        now = stamp(path)
        same = known is not None and known.stamp == now
        return StaticPage(until, now, known.answers if known is not None and same else _read(name, path, base))


def _read(name: str, path: Path, base: str | None) -> dict[str, PageResponse]:
    if base is not None:
        return {"": _made(name, path, path.read_bytes().replace(b'="./', f'="{base}/'.encode()))}
    found = {"": _made(name, path, path.read_bytes())}
    for encoding, suffix in _ENCODINGS:
        packed = path.with_name(path.name + suffix)
        if packed.is_file():
            found[encoding] = _made(name, path, packed.read_bytes(), encoding)
    return found


def _made(name: str, path: Path, body: bytes, encoding: str = "") -> PageResponse:
    etag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
    headers = {
        "content-type": _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream",
        "content-security-policy": CSP,
        "cache-control": "public, max-age=31536000, immutable" if name.startswith(_HASHED) else "no-cache",
        "vary": "Accept-Encoding",
        "etag": etag,
        **({"content-encoding": encoding} if encoding else {}),
    }
    return PageResponse(body, etag, [(key.encode(), value.encode()) for key, value in headers.items()])


@functools.lru_cache(100)
def _is_local(host: str) -> bool:
    return is_loopback(host_name(host))


class WebDoor(Door):
    def __init__(self, app: App) -> None:
        super().__init__(app)
        self.routes = [*login_routes(app), *_routes(app, Pages(pages_folder()))]


def _routes(app: App, pages: Pages) -> Table:
    gate, route = app.gate, Routes(app)

    def send(request: Request, name: str, base: str | None = None, of: Pages = pages) -> Response:
        head: RequestHead = request.scope[HEAD]
        answer = of.answer(name, head.get(b"accept-encoding") or "", head.get(b"if-none-match"), base)
        # On other origins, browsers ignore it and log a console warning.
        if request.scope["scheme"] == "https" or _is_local(head.host or ""):
            answer.raw_headers.append((b"cross-origin-opener-policy", b"same-origin"))
        return answer

    @route("/", "open", "The website.", media="text/html", others=_NO_SITE)
    async def page(request: Request) -> Response:
        name = request.path_params.get("name", "") or "index.html"
        moved = _moved(request, name)
        if moved is not None:
            return RedirectResponse(f"{root(request)}{moved}", 303)
        workbench = name.partition("/")[0] == "app"
        if workbench:
            name = "app.html"  # its script reads the rest of the URL
        if name == "api":
            return Response("Not Found", 404, media_type="text/plain")  # the response that old clients expect
        if name.partition("/")[0] in ("api", "v1"):
            raise NotFound("page", f"/{name}")
        if name.endswith(".html") and name not in ("login.html", "pair.html") and not known(request):
            return RedirectResponse(_login_for(request), 303)
        if name.endswith(".html") and pages.empty:
            return no_pages()
        try:
            return send(request, name, root(request) if workbench else None)  # it has URLs at every depth
        except NotFound:
            return _not_found(request, name)

    def known(request: Request) -> bool:
        return bool(caller(request).scopes) or VISITOR in request.scope

    def no_pages() -> Response:
        return Response(NO_PAGES + "\n", 503, media_type="text/plain")

    query: dict[str, str | Param] = {"tkn": "a token: log in with it", "code": "the code of a link that works once"}
    summary = "The login page, or the login link printed at start."

    @route("/login", "open", summary, media="text/html", others=_NO_SITE, query=query)
    async def login_page(request: Request) -> Response:
        code, token = request.query_params.get("code"), request.query_params.get("tkn")
        if _is_foreign(request):  # a link on another site must not replace the login: the page asks the person first
            code = token = None
        if code is not None:
            return await enter(request, gate.tokens.by_code(code))
        if token is None:
            return no_pages() if pages.empty else send(request, "login.html")
        return await enter(request, gate.tokens.by_token(token))

    @route("/login", "open", "Log in with a token.", methods=("POST",), others={303: None})
    async def login(request: Request) -> Response:
        try:
            fields = parse_qs((await request.body()).decode("ascii"))
        except UnicodeDecodeError:
            raise BadRequest("The form is not valid.", field="tkn") from None
        found = gate.tokens.by_token((fields.get("tkn") or [""])[0].strip())
        return await enter(request, found, (fields.get("next") or [""])[0])

    async def enter(request: Request, found: Caller | None, wanted: str = "") -> Response:
        """Redirect immediately, to remove the token from the address bar. The cookie then identifies the login."""
        if found is None:
            await gate.wrong_token(request.scope)
            return RedirectResponse(f"{root(request)}/login?error=1", 303, headers=UNKEPT)
        where = landing(gate, request, found, wanted)
        answer = RedirectResponse(where.address, 303, headers=UNKEPT)
        log_in(gate, request, answer, where)
        return answer

    @route("/pair", "open", "The page that a pairing code opens.", media="text/html", others=_NO_SITE)
    async def pair_page(request: Request) -> Response:
        return no_pages() if pages.empty else send(request, "pair.html")

    @route("/pair", "open", "Log in a device with a pairing code.", methods=("POST",), others={303: None})
    async def pair(request: Request) -> Response:
        try:
            fields = parse_qs((await request.body()).decode("ascii"))
        except UnicodeDecodeError:
            raise BadRequest("The form is not valid.", field="code") from None
        ident = await app.pairing.redeem((fields.get("code") or [""])[0], (fields.get("device") or [""])[0])
        found = gate.tokens.by_id(ident) if ident is not None else None
        if found is None:
            await gate.wrong_token(request.scope)
            return RedirectResponse(f"{root(request)}/pair?error=1", 303, headers=UNKEPT)
        return await enter(request, found, INBOX)

    authority = "The certificate of the local authority (portico serve --lan), to install on a device."

    @route("/pair/authority.crt", "open", authority, media="application/x-x509-ca-cert", codes=["not_found"])
    async def certificate(request: Request) -> Response:
        try:
            data = (app.home.path / LAN_AUTHORITY).read_bytes()
        except FileNotFoundError:
            raise NotFound("certificate", "authority.crt", "Start the host with: portico serve --lan") from None
        return Response(data, media_type="application/x-x509-ca-cert", headers=UNKEPT)

    @route("/logout", "open", "End the login and what it holds open.", methods=("POST",), others={303: None})
    async def logout(request: Request) -> Response:
        found = gate.heads.of(request.scope).identify(gate.tokens)
        if found.cookie is not None:
            gate.tokens.log_out(found.cookie_text)
            gate.close_revoked()
            await record_logout(app, found.cookie.by)
        answer = RedirectResponse(f"{root(request)}/login", 303)
        secure = gate.is_secure(request.scope)
        answer.delete_cookie(
            gate.heads.cookie_of(request.scope), path=f"{root(request)}/", secure=secure, httponly=True
        )
        return answer

    served = served_pages(app.host)
    folders = {name: Pages(each.folder) for name, each in served.items()}

    @route("/v1/pages", "read", "Pages of the workbench that features add.")
    async def feature_pages(request: Request) -> FeaturePages:
        return FeaturePages([each.page for each in served.values()])

    media = tuple(sorted({media.partition(";")[0] for media in _TYPES.values()}))

    @route("/pages/{page}/{file:path}", "open", "The files of a feature's page.", media=media, others=_NO_PAGE)
    async def feature_file(request: Request) -> Response:
        name, file = request.path_params["page"], request.path_params["file"]
        try:
            if name not in folders:
                raise NotFound("page", name)
            return send(request, file, of=folders[name])
        except NotFound:
            return _not_found(request, f"pages/{name}/{file}")

    route("/{name:path}", "open", "The pages' files.", media=media, others=_NO_PAGE)(page)
    return route.table


def _is_foreign(request: Request) -> bool:
    """Return whether a page of another site opened this link."""
    return request.headers.get("sec-fetch-site") in ("cross-site", "same-site")


def _not_found(request: Request, name: str) -> Response:
    """Return a page with a link for people, and the plain text that programs expect."""
    if "text/html" not in request.headers.get("accept", ""):
        return Response("Not Found", 404, media_type="text/plain")
    import html  # late import: it would delay the start by milliseconds

    words = f"There is no page {'/' + name!r} on this host."
    base = html.escape(root(request))
    link = f'<a href="{html.escape(root(request) + WORKBENCH)}">The workbench</a>'
    styles = "".join(f'<link rel="stylesheet" href="{base}/{each}.css">' for each in ("theme", "login"))
    head = f'<title>Not found · Portico</title><meta name="viewport" content="width=device-width">{styles}'
    body = f'<h1 class="brand">Portico</h1><div class="panel"><p>{html.escape(words)}</p><p>{link}</p></div>'
    top = f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{head}</head>'
    page = f"{top}\n<body><main>{body}</main></body>\n"
    return Response(page, 404, media_type="text/html")


def _moved(request: Request, name: str) -> str | None:
    """Return the new location of a page that the workbench has replaced, so that old links and bookmarks work."""
    if name == "session.html":
        ident = request.query_params.get("id", "")
        return f"{WORKBENCH}/s/{quote(ident, safe='')}" if ident else WORKBENCH
    return WORKBENCH if name == "sessions.html" else None


def _login_for(request: Request) -> str:
    """Return the login URL with the page to open next. The start page needs none: the workbench is the default."""
    path = request.url.path.removeprefix(root(request))
    login = f"{root(request)}/login"
    return login if path in ("/", "/index.html") else f"{login}?{urlencode({'next': path})}"
