"""Where a login leads: a page of ours, with the cookie that stands for it and the key that the page keeps."""

import re
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from portico.doors.gate import Gate
from portico.doors.proxy import ROOT
from portico.doors.route import Caller
from portico.people.identity import COOKIE_SECONDS

WORKBENCH = "/app"
UNKEPT = {"Cache-Control": "no-store"}
"""Of answers to a login: neither the token in the link nor the key in the answer belongs into a cache."""
_OWN_PAGE = re.compile(
    r"(?!.*/(?:\.|%2[eE]){1,2}(?:[/?]|$))/(?:app(?:/[\w.%/-]*)?|\w+\.html)?(?:\?[\w.%=&+-]*)?", re.ASCII
)
"""Where a login may lead: a page of ours, never a stranger's, and never the API, where a GET can change something; so
nothing that a browser would take for a step up (`/app/../api`)."""


class LoginRedirect(NamedTuple):
    address: str
    cookie: str


def root(request: Request) -> str:
    """The base path below which this request came."""
    found: str = request.scope.get(ROOT, "")
    return found


def landing(gate: Gate, request: Request, found: Caller, wanted: str) -> LoginRedirect:
    cookie = gate.tokens.cookie(found)
    page = wanted.removeprefix(root(request))
    lands = page if _OWN_PAGE.fullmatch(page) else WORKBENCH
    # A fragment stays in the browser: the page takes the key from there into the storage of its own port.
    return LoginRedirect(f"{root(request)}{lands}#key={gate.tokens.page_key(cookie)}", cookie)


def log_in(gate: Gate, request: Request, answer: Response, where: LoginRedirect) -> None:
    answer.set_cookie(
        gate.heads.cookie_of(request.scope),
        where.cookie,
        max_age=COOKIE_SECONDS,
        path=f"{root(request)}/",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
