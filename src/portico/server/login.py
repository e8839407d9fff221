"""Logins without a token: `/login/oidc`, and people named by a trusted proxy.

The data of a pending login is in its signed `state` parameter, so any host of a cluster can finish it within ten
minutes. The browser that started it has a cookie, and no other browser can finish it. The response to the provider's
redirect is a page that redirects with a meta refresh: browsers do not send `SameSite=Strict` cookies with a navigation
that started at the provider.
"""

import base64
import contextlib
import hashlib
import hmac
import time
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from portico.features.people.people import PROXY, Account, admit
from portico.kernel.cache import Cache
from portico.kernel.errors import BadRequest, NotFound, PorticoError, Unreachable
from portico.server.app import App
from portico.server.body import JsonResponse
from portico.server.identity import by_proxy, new_login
from portico.server.login_redirect import UNKEPT, landing, log_in, root
from portico.server.oidc import Begun, OidcProvider, missing_package, new_secret
from portico.server.route import Caller, Route, Table
from portico.server.settings import OidcSettings

_SECONDS = 600.0
"""Maximum duration of a login: the redirect to the provider, a password, a second factor and the way back."""
_TRIED = 10_000
"""Cache size: states that were already used."""
_WANTED_CHARS = 500
"""Maximum length of the page to open after the login: it is part of the URL sent to the provider."""
_CALLBACK = "/login/oidc/callback"


class Sealed(Struct, array_like=True):
    """The contents of a `state` parameter."""

    redirect: str
    browser: str
    """Hash of a secret in the cookie of that browser."""
    wanted: str
    """The page to open after the login."""
    until: float


class Ways(Struct, omit_defaults=True):
    """What the login page offers."""

    oidc: str | None
    """The name of the provider; None if none is configured."""
    problem: str = ""
    """Why its login does not work on this host."""


async def record_logout(app: App, by: str) -> None:
    await app.host.audit("logout", by)


def login_routes(app: App) -> Table:
    logins = Logins(app)
    app.gate.by_proxy = logins.by_proxy
    nothing: dict[int, str | None] = {303: None}
    return [
        Route("/login/ways", logins.ways, "open", summary="What the login page offers.", doc={"answer": Ways}),
        Route(
            "/login/oidc",
            logins.begin,
            "open",
            summary="Log in with the OpenID provider of this host.",
            doc={"others": nothing, "codes": ["not_found"], "query": {"next": "the page to go to afterwards"}},
        ),
        Route(
            _CALLBACK,
            logins.finish,
            "open",
            summary="Where the provider sends the browser back to.",
            doc={
                "media": "text/html",
                "others": {**nothing, 403: "text/html"},
                "query": {
                    "code": "from the provider",
                    "state": "ours, come back",
                    "iss": "which provider this is",
                    "error": "why it refused",
                },
            },
        ),
    ]


class Logins:
    def __init__(self, app: App) -> None:
        self._app = app
        self._gate = app.gate
        self._tried = Cache[str, bool](_TRIED)
        self._provider: OidcProvider | None = None

    @property
    def provider(self) -> OidcProvider:
        """The provider; created again when its settings change."""
        settings = self._app.settings.login.oidc
        if not settings.issuer:
            raise NotFound("page", "/login/oidc", "This host has no OpenID provider (login.oidc.issuer).")
        if missing := missing_package(settings):
            raise Unreachable(missing)
        if self._provider is None or self._provider.settings != settings:
            self._provider = OidcProvider(settings, secret_of(settings.client_secret, settings.client_secret_file))
        return self._provider

    async def ways(self, request: Request) -> Response:
        settings = self._app.settings.login.oidc
        name = provider_name(settings) if settings.issuer else None
        return JsonResponse(Ways(name, missing_package(settings)))

    async def begin(self, request: Request) -> Response:
        browser, wanted = new_secret(), request.query_params.get("next", "")
        state = self._seal(
            Sealed(
                self._callback(request),
                _hash(browser),
                wanted if len(wanted) <= _WANTED_CHARS else "",
                time.time() + _SECONDS,
            )
        )
        address = await self.provider.address(state, self._begun(state))
        answer = RedirectResponse(address, 303, headers=UNKEPT)
        answer.set_cookie(
            self._cookie(request),
            browser,
            max_age=int(_SECONDS),
            path=f"{root(request)}/",
            httponly=True,
            samesite="lax",  # it must be sent with the redirect from the provider
            secure=self._gate.is_secure(request.scope),
        )
        return answer

    async def finish(self, request: Request) -> Response:
        """Finish a login. Every error is shown on a page with a link to the login, and guesses are delayed."""
        try:
            caller, wanted = await self._finish(request)
        except PorticoError as error:
            await self._gate.wrong_token(request.scope)
            await self._app.host.audit("login.refused", "nobody", reason=error.message[:200])
            answer = Response(_refusal(error.message, f"{root(request)}/login"), 403, UNKEPT_HTML)
        else:
            where = landing(self._gate, request, caller, wanted)
            answer = Response(_onward(where.address), headers=UNKEPT_HTML)
            log_in(self._gate, request, answer, where)
        secure = self._gate.is_secure(request.scope)
        answer.delete_cookie(self._cookie(request), path=f"{root(request)}/", secure=secure, httponly=True)
        return answer

    async def _finish(self, request: Request) -> tuple[Caller, str]:
        query = request.query_params
        begun = self._begun(state := query.get("state", ""))
        if _hash(state) in self._tried:
            raise BadRequest("This login has been tried already: begin again.")
        self._tried[_hash(state)] = True
        browser = request.cookies.get(self._cookie(request), "")
        if not hmac.compare_digest(begun.browser, _hash(browser)):
            raise BadRequest("This login was begun in another browser: begin again.")
        if "error" in query:
            raise BadRequest(f"The provider says {query['error'][:80]!r}.")
        account = await self.provider.account(begun, query.get("code", ""), query.get("iss"))
        tokens, settings = self._gate.tokens, self._app.settings
        person = admit(tokens.people, self._app.home, settings, account)
        ident = new_login(self._app.home, person, settings.login.oidc.hours)
        caller = tokens.by_id(ident)
        if caller is None:
            raise BadRequest(f"{person.name!r} may do nothing here: ask an admin of this host for a scope.")
        if self._gate.share is not None:
            await self._gate.share()  # another host may serve the next request of the page
        await self._app.host.audit("login", caller.by, issuer=account.issuer)
        return caller, begun.wanted

    def by_proxy(self, name: str) -> Caller:
        """Return the caller for a person whom the trusted proxy has logged in."""
        account = Account(name, PROXY, name.strip().lower())
        return by_proxy(admit(self._gate.tokens.people, self._app.home, self._app.settings, account))

    def _callback(self, request: Request) -> str:
        settings = self._app.settings.server
        if settings.public_url:
            return settings.public_url.rstrip("/") + _CALLBACK
        return f"{request.url.scheme}://{request.url.netloc}{root(request)}{_CALLBACK}"

    def _cookie(self, request: Request) -> str:
        return self._gate.heads.cookie_of(request.scope) + "-oidc"

    def _seal(self, sealed: Sealed) -> str:
        text = base64.urlsafe_b64encode(msgspec.json.encode(sealed)).decode().rstrip("=")
        return f"{text}.{self._gate.tokens.derive('oidc', text)}"

    def _opened(self, state: str) -> Sealed:
        """Decode a state. Raises if its signature is wrong or it has expired."""
        text, _, mac = state.partition(".")
        with contextlib.suppress(ValueError):  # also if the text is not base64 or JSON
            if hmac.compare_digest(mac.encode(), self._gate.tokens.derive("oidc", text).encode()):
                sealed = msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=Sealed)
                if sealed.until > time.time():
                    return sealed
        raise BadRequest("This login was not begun here, or took too long: begin again.")

    def _begun(self, state: str) -> Begun:
        sealed, derive = self._opened(state), self._gate.tokens.derive
        nonce, verifier = derive("oidc-nonce", state), derive("oidc-verifier", state)
        return Begun(nonce, verifier, sealed.redirect, sealed.browser, sealed.wanted)


_CSP = "default-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
UNKEPT_HTML = {**UNKEPT, "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": _CSP}


def provider_name(settings: OidcSettings) -> str:
    return settings.name or urlsplit(settings.issuer).hostname or settings.issuer


def secret_of(value: str, path: str) -> str:
    if value or not path:
        return value
    try:
        return Path(path).expanduser().read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"The secret file {path!r} cannot be read: {error}.", field="login") from error


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _onward(address: str) -> str:
    import html  # late: few log in this way

    escaped = html.escape(address, quote=True)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Portico</title>'
        f'<meta http-equiv="refresh" content="0;url={escaped}"><p><a href="{escaped}">Go on to Portico</a></p></html>'
    )


def _refusal(words: str, back: str) -> str:
    import html  # late: few log in this way

    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Not logged in</title>'
        f"<h1>Not logged in</h1><p>{html.escape(words)}</p>"
        f'<p><a href="{html.escape(back, quote=True)}">Back to the login</a></p></html>'
    )
