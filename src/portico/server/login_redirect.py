"""The redirect after a login: to one of our pages, with the cookie of the login and the key that the page stores."""

import re
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from portico.server.gate import Gate
from portico.server.identity import COOKIE_SECONDS
from portico.server.proxy import ROOT
from portico.server.route import Caller

WORKBENCH = "/app"
UNKEPT = {"Cache-Control": "no-store"}
"""Headers of responses to a login: caches must not store the token in the link or the key in the response."""
_OWN_PAGE = re.compile(
    r"(?!.*/(?:\.|%2[eE]){1,2}(?:[/?]|$))/(?:app(?:/[\w.%/-]*)?|\w+\.html)?(?:\?[\w.%=&+-]*)?", re.ASCII
)
"""Allowed targets of the redirect: only our pages, never another site, and never the API, where a GET can change
state. So paths that a browser would resolve upward (`/app/../api`) do not match."""


class LoginRedirect(NamedTuple):
    address: str
    cookie: str


def root(request: Request) -> str:
    """Return the base path of this request."""
    found: str = request.scope.get(ROOT, "")
    return found


def landing(gate: Gate, request: Request, found: Caller, wanted: str) -> LoginRedirect:
    cookie = gate.tokens.cookie(found)
    page = wanted.removeprefix(root(request))
    lands = page if _OWN_PAGE.fullmatch(page) else WORKBENCH
    # Browsers do not send the fragment: the page moves the key from there to the storage of its origin, port included.
    return LoginRedirect(f"{root(request)}{lands}#key={gate.tokens.page_key(cookie)}", cookie)


def log_in(gate: Gate, request: Request, answer: Response, where: LoginRedirect) -> None:
    answer.set_cookie(
        gate.heads.cookie_of(request.scope),
        where.cookie,
        max_age=COOKIE_SECONDS,
        path=f"{root(request)}/",
        httponly=True,
        samesite="strict",
        secure=gate.is_secure(request.scope),
    )
