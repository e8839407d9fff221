"""The format of this API: arguments in the path, raw text in the body, a JSON response, status 200 for our errors.

An unexpected error is a 500 with `{"error": ...}`. An unknown path, or one with a trailing slash, is a 404.
"""

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Unpack, get_args

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from portico.doors.portal.live import Live
from portico.features.jobs import Jobs, NoEntry
from portico.kernel.errors import (
    BadRequest,
    LogUnavailable,
    PlaceAway,
    PorticoError,
    QuotaExceeded,
    RateLimited,
    TooLarge,
    Unreachable,
)
from portico.server.app import App
from portico.server.behind import is_behind, not_current
from portico.server.body import JsonResponse
from portico.server.route import Doc, Endpoint, Route, Scope

Level = Literal["latest", "000"]
Answer = Callable[[Request], Awaitable[Any]]
Method = TypeVar("Method", bound=Callable[..., Awaitable[Any]])
UNKNOWN = {"error": "Unknown API endpoint"}

_AS_ELSEWHERE = (BadRequest, TooLarge, RateLimited, QuotaExceeded, LogUnavailable, PlaceAway, Unreachable)
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")


class PortalContext(Struct, frozen=True):
    """Shared objects of all endpoints of this door."""

    app: App
    jobs: Jobs
    live: Live
    level: Level
    test_folder: Path


class Refused(Exception):
    """An error of this API, by its code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def route(path: str, handle: Answer, scope: Scope, summary: str, **doc: Unpack[Doc]) -> Route:
    """Build a route of this API. The HTTP method is ignored. The return annotation defines the response type."""
    gives = handle.__annotations__["return"]
    told: Doc = {
        "codes": ["not_found", "internal"],
        "answer": get_args(gives) if isinstance(gives, UnionType) else gives,
        **doc,
    }
    return Route(f"/api/{path}", _endpoint(handle), scope, ("GET", "POST"), summary, doc=told)


def api(*paths: str, scope: Scope, summary: str, **doc: Unpack[Doc]) -> Callable[[Method], Method]:
    """Mark a method of an `Endpoints` class as the handler of these paths."""

    def mark(method: Method) -> Method:
        method.said = lambda bound: [route(path, bound, scope, summary, **doc) for path in paths]  # type: ignore[attr-defined]
        return method

    return mark


class Endpoints:
    """Base class that converts its marked methods to routes, in their order."""

    def table(self) -> list[Route]:
        methods = [(name, getattr(method, "said", None)) for name, method in vars(type(self)).items()]
        return [each for name, said in methods if said is not None for each in said(getattr(self, name))]


def _endpoint(answer: Answer) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        if request.scope["path"].endswith("/"):
            return JsonResponse(UNKNOWN, 404)
        try:
            return JsonResponse(await answer(request))
        except Refused as refusal:
            if refusal.code.endswith("NotFound") and is_behind(request.scope):
                raise not_current() from None
            return JsonResponse({"error": refusal.code})
        except NoEntry as error:
            return JsonResponse({"error": f"Error: {error.message}"}, 500)
        except _AS_ELSEWHERE:
            raise  # reported as HTTP errors, as in every other door
        except PorticoError as error:
            return JsonResponse({"error": error.message}, 500)

    return endpoint


async def text_of(request: Request) -> str:
    """Return the body as text. Invalid UTF-8 is replaced: the name then matches nothing, and that error is returned."""
    return (await request.body()).decode("utf-8", "replace")


def working_directory(path: str, test: bool) -> Path:
    """Return the folder. In tests, a Windows path counts as absolute on every system; others resolve it as relative."""
    windows = test and _WINDOWS.match(path) is not None
    folder = Path(path)
    if "\0" in path or not (folder.is_absolute() or windows):
        raise Refused("WorkingDirectoryNotAbsolutePath")
    try:
        is_folder = folder.is_dir()
    except OSError:  # too long, or not readable
        is_folder = False
    if not is_folder:
        raise Refused("WorkingDirectoryNotExists")
    return folder.absolute()


def moment(milliseconds: int) -> str:
    """Format a time like a JavaScript Date."""
    at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{milliseconds % 1000:03d}Z"
