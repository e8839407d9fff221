"""The form of this API: arguments in the path, raw text in the body, one JSON document back, status 200 for our errors.

Anything unexpected is a 500 with `{"error": ...}`; a path that nobody knows, or one with a slash at its end, is a 404.
"""

import enum
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Unpack

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from portico.doors.app import App
from portico.doors.body import JsonResponse
from portico.doors.portal.live import Live
from portico.doors.route import Doc, Endpoint, Route, Scope
from portico.errors import BadRequest, LogUnavailable, PorticoError, RateLimited, TooLarge
from portico.jobs import Jobs, NoEntry

Level = Literal["latest", "000"]
Answer = Callable[[Request], Awaitable[Any]]
UNKNOWN = {"error": "Unknown API endpoint"}

_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")


class PortalContext(Struct, frozen=True):
    """What every endpoint of this door has at hand."""

    app: App
    jobs: Jobs
    live: Live
    level: Level
    test_folder: Path


def route(path: str, handle: Answer, scope: Scope, summary: str, **doc: Unpack[Doc]) -> Route:
    """An endpoint of this API: the method is never looked at."""
    told: Doc = {"codes": ["not_found", "internal"], **doc}
    return Route(f"/api/{path}", _endpoint(handle), scope, ("GET", "POST"), summary, doc=told)


def _endpoint(answer: Answer) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        if request.scope["path"].endswith("/"):
            return JsonResponse(UNKNOWN, 404)
        try:
            return JsonResponse(await answer(request))
        except NoEntry as error:
            return JsonResponse({"error": f"Error: {error.message}"}, 500)
        except (BadRequest, TooLarge, RateLimited, LogUnavailable):
            raise  # said in the language of HTTP, as in every other door
        except PorticoError as error:
            return JsonResponse({"error": error.message}, 500)

    return endpoint


async def text_of(request: Request) -> str:
    """The body. What is no UTF-8 in it is replaced: it then names nothing that exists, and gets that error."""
    return (await request.body()).decode("utf-8", "replace")


class FolderError(enum.Enum):
    """Why something cannot be a working directory."""

    RELATIVE = "WorkingDirectoryNotAbsolutePath"
    MISSING = "WorkingDirectoryNotExists"


def working_directory(path: str, test: bool) -> Path | FolderError:
    """The folder. In tests a Windows path counts as absolute everywhere: elsewhere it is a name in the current one."""
    windows = test and _WINDOWS.match(path) is not None
    if "\0" in path or not (Path(path).is_absolute() or windows):
        return FolderError.RELATIVE
    try:
        return Path(path).absolute() if Path(path).is_dir() else FolderError.MISSING
    except OSError:  # too long, or not ours to look at
        return FolderError.MISSING


def moment(milliseconds: int) -> str:
    """As JavaScript writes a Date."""
    at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{milliseconds % 1000:03d}Z"
