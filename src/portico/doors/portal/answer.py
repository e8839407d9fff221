"""The form of this API: arguments in the path, raw text in the body, one JSON document back, status 200 for our errors.

Anything unexpected is a 500 with `{"error": ...}`; a path that nobody knows, or one with a slash at its end, is a 404.
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

from portico.doors.app import App
from portico.doors.behind import is_behind, not_current
from portico.doors.body import JsonResponse
from portico.doors.portal.live import Live
from portico.doors.route import Doc, Endpoint, Route, Scope
from portico.errors import BadRequest, LogUnavailable, PlaceAway, PorticoError, RateLimited, TooLarge, Unreachable
from portico.jobs import Jobs, NoEntry

Level = Literal["latest", "000"]
Answer = Callable[[Request], Awaitable[Any]]
Method = TypeVar("Method", bound=Callable[..., Awaitable[Any]])
UNKNOWN = {"error": "Unknown API endpoint"}

_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")


class PortalContext(Struct, frozen=True):
    """What every endpoint of this door has at hand."""

    app: App
    jobs: Jobs
    live: Live
    level: Level
    test_folder: Path


class Refused(Exception):
    """One of our errors, by its code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def route(path: str, handle: Answer, scope: Scope, summary: str, **doc: Unpack[Doc]) -> Route:
    """An endpoint of this API: the method is never looked at. It answers with what it says it returns."""
    gives = handle.__annotations__["return"]
    told: Doc = {
        "codes": ["not_found", "internal"],
        "answer": get_args(gives) if isinstance(gives, UnionType) else gives,
        **doc,
    }
    return Route(f"/api/{path}", _endpoint(handle), scope, ("GET", "POST"), summary, doc=told)


def api(*paths: str, scope: Scope, summary: str, **doc: Unpack[Doc]) -> Callable[[Method], Method]:
    """Marks a method of an `Endpoints` as the one that answers there."""

    def mark(method: Method) -> Method:
        method.said = lambda bound: [route(path, bound, scope, summary, **doc) for path in paths]  # type: ignore[attr-defined]
        return method

    return mark


class Endpoints:
    """Methods that answer, as routes, in their order."""

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
        except (BadRequest, TooLarge, RateLimited, LogUnavailable, PlaceAway, Unreachable):
            raise  # said in the language of HTTP, as in every other door
        except PorticoError as error:
            return JsonResponse({"error": error.message}, 500)

    return endpoint


async def text_of(request: Request) -> str:
    """The body. What is no UTF-8 in it is replaced: it then names nothing that exists, and gets that error."""
    return (await request.body()).decode("utf-8", "replace")


def working_directory(path: str, test: bool) -> Path:
    """The folder. In tests a Windows path counts as absolute everywhere: elsewhere it is a name in the current one."""
    windows = test and _WINDOWS.match(path) is not None
    folder = Path(path)
    if "\0" in path or not (folder.is_absolute() or windows):
        raise Refused("WorkingDirectoryNotAbsolutePath")
    try:
        is_folder = folder.is_dir()
    except OSError:  # too long, or not ours to look at
        is_folder = False
    if not is_folder:
        raise Refused("WorkingDirectoryNotExists")
    return folder.absolute()


def moment(milliseconds: int) -> str:
    """As JavaScript writes a Date."""
    at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{milliseconds % 1000:03d}Z"
