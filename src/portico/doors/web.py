"""The pages: built files from the package, the login, and the headers that keep them harmless.

The attack: agent text or a link smuggles script into a page that can drive agents. So nothing inline may run,
nothing foreign may load, frame or hold on to us, and whatever is not a page of ours goes out as a download.
"""

import mimetypes
import os
import re
from importlib import resources
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from portico.doors.app import App
from portico.doors.gate import VISITOR, Gate
from portico.doors.identity import COOKIE_SECONDS
from portico.doors.origin import is_loopback
from portico.doors.proxy import ROOT
from portico.doors.route import Caller, Param, Route, Table, caller
from portico.errors import BadRequest, NotFound

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
_NO_SITE: dict[int, str | None] = {303: None, 503: "text/plain"}
"""To the login, or on from there; or this host was installed without pages."""
_NO_PAGE: dict[int, str | None] = {**_NO_SITE, 404: "text/plain"}
"""Or there is nothing of that name."""
_LOGIN: dict[str, str | Param] = {
    "tkn": "a token: log in with it",
    "code": "the code of a link that works once, for `portico serve --open`",
}
UNKEPT = {"Cache-Control": "no-store"}
"""Of answers to a login: neither the token in the link nor the key in the answer belongs into a cache."""
_ENCODINGS = (("br", ".br"), ("gzip", ".gz"))
_WORKBENCH = "/app"
_OWN_PAGE = re.compile(r"/(?:app(?:/[\w.%/-]*)?|\w+\.html)?(?:\?[\w.%=&+-]*)?", re.ASCII)
"""Where a login may lead: a page of ours, never a stranger's, and never the API, where a GET can change something."""
_HASHED = "assets/"
"""Vite puts files whose name holds their hash here: they never change."""


NO_PAGES = (
    "This host was installed without its web pages. Everything else works: the command line, the APIs and editors. "
    "To get the pages, install a released wheel or sdist of Portico, or in a checkout run `make run` (it needs Node)."
)


def pages_folder() -> Path:
    return Path(str(resources.files("portico.doors"))) / "pages"


def pages_missing() -> bool:
    return not (pages_folder() / "index.html").is_file()


class Pages:
    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self.empty = not (self._folder / "index.html").is_file()

    def find(self, name: str) -> Path:
        """A file below the folder; anything else does not exist."""
        path = (self._folder / name).resolve() if "\0" not in name else self._folder
        if not path.is_relative_to(self._folder) or not os.path.isfile(path):  # also for names that no disk takes
            raise NotFound("page", f"/{name}")
        return path

    def answer(self, name: str, accepted: str) -> Response:
        path = self.find(name)
        headers = {
            "Content-Security-Policy": CSP,
            "Cache-Control": "public, max-age=31536000, immutable" if name.startswith(_HASHED) else "no-cache",
            "Vary": "Accept-Encoding",
        }
        media = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        for encoding, suffix in _ENCODINGS:
            packed = path.with_name(path.name + suffix)
            if encoding in accepted and packed.is_file():
                headers["Content-Encoding"] = encoding
                return Response(packed.read_bytes(), media_type=media, headers=headers)
        return Response(path.read_bytes(), media_type=media, headers=headers)


def root(request: Request) -> str:
    """The base path below which this request came."""
    found: str = request.scope.get(ROOT, "")
    return found


class Landing(NamedTuple):
    """Where a login leads, and the cookie that stands for it."""

    address: str
    cookie: str


def landing(gate: Gate, request: Request, found: Caller, wanted: str) -> Landing:
    cookie = gate.tokens.cookie(found)
    page = wanted.removeprefix(root(request))
    lands = page if _OWN_PAGE.fullmatch(page) else _WORKBENCH
    # A fragment stays in the browser: the page takes the key from there into the storage of its own port.
    return Landing(f"{root(request)}{lands}#key={gate.tokens.page_key(cookie)}", cookie)


def log_in(gate: Gate, request: Request, answer: Response, where: Landing) -> None:
    answer.set_cookie(
        gate.cookie_of(request.scope),
        where.cookie,
        max_age=COOKIE_SECONDS,
        path=f"{root(request)}/",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )


def web(app: App, gate: Gate) -> Table:
    pages = Pages(pages_folder())

    def send(request: Request, name: str) -> Response:
        return isolated(request, pages.answer(name, request.headers.get("accept-encoding", "")))

    def send_workbench(request: Request) -> Response:
        """It has addresses at every depth, so the names of its files are completed here, with the base path."""
        text = pages.find("app.html").read_text("utf-8").replace('="./', f'="{root(request)}/')
        headers = {"Content-Security-Policy": CSP, "Cache-Control": "no-cache"}
        return isolated(request, Response(text, media_type=_TYPES[".html"], headers=headers))

    def isolated(request: Request, answer: Response) -> Response:
        # Elsewhere browsers ignore it, and complain on the console.
        if request.url.scheme == "https" or is_loopback(request.url.hostname or ""):
            answer.headers["Cross-Origin-Opener-Policy"] = "same-origin"
        return answer

    async def page(request: Request) -> Response:
        name = request.path_params.get("name", "") or "index.html"
        moved = _moved(request, name)
        if moved is not None:
            return RedirectResponse(f"{root(request)}{moved}", 303)
        workbench = name.partition("/")[0] == "app"
        if workbench:
            name = "app.html"  # its own script reads the rest of the address
        if name == "api":
            return Response("Not Found", 404, media_type="text/plain")  # as the pages' old clients know it
        if name.partition("/")[0] in ("api", "v1"):
            raise NotFound("page", f"/{name}")
        if name.endswith(".html") and name != "login.html" and not known(request):
            return RedirectResponse(_login_for(request), 303)
        if name.endswith(".html") and pages.empty:
            return no_pages()
        try:
            return send_workbench(request) if workbench else send(request, name)
        except NotFound:
            return Response(_not_found(request, name), 404, media_type="text/plain")

    def known(request: Request) -> bool:
        return bool(caller(request).scopes) or VISITOR in request.scope

    def no_pages() -> Response:
        return Response(NO_PAGES + "\n", 503, media_type="text/plain")

    async def login_page(request: Request) -> Response:
        code, token = request.query_params.get("code"), request.query_params.get("tkn")
        if code is not None:
            return await enter(request, gate.tokens.by_code(code))
        if token is None:
            return no_pages() if pages.empty else send(request, "login.html")
        return await enter(request, gate.tokens.by_token(token))

    async def login(request: Request) -> Response:
        try:
            fields = parse_qs((await request.body()).decode("ascii"))
        except UnicodeDecodeError:
            raise BadRequest("The form is not valid.", field="tkn") from None
        found = gate.tokens.by_token((fields.get("tkn") or [""])[0].strip())
        return await enter(request, found, (fields.get("next") or [""])[0])

    async def enter(request: Request, found: Caller | None, wanted: str = "") -> Response:
        """The token leaves the address bar at once; from here on the cookie stands for it."""
        if found is None:
            await gate.wrong_token(request.scope)
            return RedirectResponse(f"{root(request)}/login?error=1", 303, headers=UNKEPT)
        where = landing(gate, request, found, wanted)
        answer = RedirectResponse(where.address, 303, headers=UNKEPT)
        log_in(gate, request, answer, where)
        return answer

    async def logout(request: Request) -> Response:
        answer = RedirectResponse(f"{root(request)}/login", 303)
        secure = request.url.scheme == "https"
        answer.delete_cookie(gate.cookie_of(request.scope), path=f"{root(request)}/", secure=secure, httponly=True)
        return answer

    return [
        Route("/", page, "open", summary="The website.", doc={"media": "text/html", "others": _NO_SITE}),
        Route(
            "/login",
            login_page,
            "open",
            summary="The login page, or the login link printed at start.",
            doc={
                "media": "text/html",
                "others": _NO_SITE,
                "query": {"tkn": "a token: log in with it", "code": "the code of a link that works once"},
            },
        ),
        Route("/login", login, "open", ("POST",), "Log in with a token.", doc={"others": {303: None}}),
        Route("/logout", logout, "open", ("POST",), "Forget the login.", doc={"others": {303: None}}),
        Route(
            "/{name:path}",
            page,
            "open",
            summary="The pages' files.",
            doc={"media": tuple(sorted({media.partition(";")[0] for media in _TYPES.values()})), "others": _NO_PAGE},
        ),
    ]


def _not_found(request: Request, name: str) -> str:
    """People get a way on; programs the words they know."""
    if "text/html" not in request.headers.get("accept", ""):
        return "Not Found"
    return f"There is no page {'/' + name!r} on this host. The workbench is at {root(request)}{_WORKBENCH}\n"


def _moved(request: Request, name: str) -> str | None:
    """Pages that the workbench has taken the place of: old links and bookmarks go on."""
    if name == "session.html":
        ident = request.query_params.get("id", "")
        return f"{_WORKBENCH}/s/{quote(ident, safe='')}" if ident else _WORKBENCH
    return _WORKBENCH if name == "sessions.html" else None


def _login_for(request: Request) -> str:
    """The start page needs no word: the login leads to the workbench by itself."""
    path = request.url.path.removeprefix(root(request))
    login = f"{root(request)}/login"
    return login if path in ("/", "/index.html") else f"{login}?{urlencode({'next': path})}"
