"""The Portal door, `/api`: the REST and long-polling API of the seeds 001, 000 and 002 combined.

docs/reference/portal.md describes every route. The door only translates, without rules; it imports host and jobs.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from portico.doors.portal.answer import UNKNOWN, Level, PortalContext, Refused, route
from portico.doors.portal.callbacks import (
    Element,
    Open,
    Translate,
    coalesce,
    job_elements,
    old_job_elements,
    old_task_elements,
    prompted_session_elements,
    session_elements,
    task_elements,
)
from portico.doors.portal.live import Live, Trouble
from portico.doors.portal.sessions import Sessions
from portico.doors.portal.shapes import Config, Hello, PortalDone, Responses, Token
from portico.doors.portal.work import TestEntries, Work
from portico.kernel.errors import NotFound
from portico.kernel.events import Channel
from portico.server.app import App
from portico.server.body import JsonResponse
from portico.server.door import Door
from portico.server.route import Param, Route, Table

COUNTDOWN_SECONDS = 60.0
TEST_COUNTDOWN_SECONDS = 5.0
"""How long a new token can still read something closed: the values that the clients use."""


class Closing(NamedTuple):
    """How a session, task or job was closed."""

    at: int
    """Milliseconds since the epoch."""
    stopped: bool
    """It was stopped by a caller and did not finish."""


EndOf = Callable[[str], Awaitable[Closing | None]]
"""None: it is open."""


class PortalDoor(Door):
    def __init__(self, app: App) -> None:
        super().__init__(app)
        self.live = Live(app.host, TEST_COUNTDOWN_SECONDS if app.test else COUNTDOWN_SECONDS)
        level: Level = "000" if app.api_level == "000" else "latest"
        self.routes = _routes(PortalContext(app, app.jobs, self.live, level, app.test_folder.absolute()))

    async def close(self) -> None:
        self.live.stop_waiting()


def _routes(room: PortalContext) -> Table:
    lives = _Lives(room)
    return [
        *_plain(room),
        *Sessions(room).table(),
        *Work(room).table(),
        *(TestEntries(room).table() if room.app.test else []),
        *lives.table("session", session_elements, session_elements, lives.end_of_session, "SessionClosed"),
        *lives.table("task", task_elements, old_task_elements, lives.end_of_task, "TaskClosed"),
        *lives.table("job", job_elements, old_job_elements, lives.end_of_job, "JobsClosed"),
        Route(
            "/api/{rest:path}", _unknown, "read", ("GET", "POST"), "Any other path: 404.", doc={"others": {404: None}}
        ),
    ]


async def _unknown(request: Request) -> Response:
    return JsonResponse(UNKNOWN, 404)


def _plain(room: PortalContext) -> list[Route]:
    app = room.app

    hello = JsonResponse(Hello("Hello, world!"))  # watchdogs call this repeatedly: built once

    async def test(request: Request) -> Response:
        return hello

    async def config(request: Request) -> Config:
        return Config(str(repo_root(app.workspaces[0] if app.workspaces else Path.cwd())))

    async def token(request: Request) -> Token:
        return Token(_new_token())

    async def stop(request: Request) -> PortalDone:
        room.live.stop_waiting()
        # Respond first: the loop sends the response before the stop closes the connection.
        asyncio.get_running_loop().call_later(0.05, app.stop)
        return PortalDone()

    return [
        Route("/api/test", test, "read", ("GET", "POST"), "Is anybody there?", doc={"answer": Hello}),
        route("config", config, "read", "The root of the repository."),
        route("token", token, "read", "A new token for live calls; any other string is one, too."),
        route("stop", stop, "admin", "Stop the host. What runs goes on when it is started again."),
    ]


def _new_token() -> str:
    """Return a UUID of version 4, in a third of the time that `uuid` takes."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def repo_root(start: Path) -> Path:
    """Return the folder or its nearest parent that has a `.git`; the folder itself if there is none."""
    return next((folder for folder in (start, *start.parents) if (folder / ".git").exists()), start)


_PACKED = 1_000
"""Elements per encoding step: a long history is encoded in a thread, and the loop serves others between steps."""


def _packed(elements: list[Element]) -> msgspec.Raw:
    """Encode the `Responses` of a long history."""
    whole = coalesce(elements)
    pieces = [msgspec.json.encode(whole[at : at + _PACKED])[1:-1] for at in range(0, len(whole), _PACKED)]
    return msgspec.Raw(b'{"responses":[%b]}' % b",".join(pieces))


def _form(request: Request, translate: Translate) -> Translate:
    prompts = translate is session_elements and request.query_params.get("prompts") == "1"
    return prompted_session_elements if prompts else translate


def _numbered(request: Request) -> bool:
    return request.query_params.get("seq") == "1"


async def _left(request: Request) -> None:
    """Return when the caller has disconnected. The body was read, so no other message can arrive."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


class _Lives:
    """The live calls of sessions, tasks and jobs: all new elements with a token, one element per call without."""

    def __init__(self, room: PortalContext) -> None:
        self._room = room

    def table(self, kind: str, translate: Translate, old: Translate, end_of: EndOf, closed_code: str) -> list[Route]:
        missing = f"{kind.capitalize()}NotFound"
        codes: dict[Trouble, str] = {
            "NotFound": missing,
            "Closed": closed_code,
            "Timeout": "HttpRequestTimeout",
            "Parallel": "ParallelCallNotSupported",
        }

        async def poll(request: Request, token: str | None) -> list[Element]:
            ident = request.path_params["id"]
            await request.body()  # so that the next message can only be the disconnect
            await self._check_there(request, f"{kind}/{ident}", Refused(missing))
            form = _form(request, translate) if token is not None else old

            async def closed() -> int | None:
                end = await end_of(ident)
                return end.at if end is not None else None

            try:
                if token is None and (end := await end_of(ident)) is not None and end.stopped:
                    raise Refused(missing)  # in 001 and 000 stopped items disappear immediately
                numbered = token is not None and _numbered(request)
                found = await self._room.live.poll(
                    f"{kind}/{ident}", token, form, closed, lambda: _left(request), numbered=numbered
                )
            except NotFound:  # deleted: its channel is known but empty
                raise Refused(missing) from None
            await self._check_there(request, f"{kind}/{ident}", Refused(missing))  # it may be no longer shared
            if isinstance(found, list):
                return found
            raise Refused(missing) if found == "Closed" and token is None else Refused(codes[found])

        async def with_token(request: Request) -> Responses:
            return Responses(await poll(request, request.path_params["token"]))

        async def without_token(request: Request) -> Element:
            return (await poll(request, None))[0]

        async def history(request: Request) -> Any:
            """Everything that is stored, also of what the live calls count as gone."""
            channel, after = f"{kind}/{request.path_params['id']}", 0
            await self._check_there(request, channel, Refused(missing))
            form, open, elements = _form(request, translate), Open(), list[Element]()
            while records := await self._room.app.host.log.read(channel, after):
                after = records[-1].pos
                for record in records:
                    number = {"seq": record.seq} if _numbered(request) else {}
                    elements += [each | number for each in form(record.event, open)]
            if not after:
                raise Refused(missing)
            return await asyncio.to_thread(_packed, elements)

        errors = list(codes.values())
        query: dict[str, str | Param] = {"seq": "`1`: each element with its place in the log, `seq`"}
        if kind == "session":
            query["prompts"] = "`1`: also what people wrote"
        whole, one = f"What is new in a {kind}.", f"The next element of a {kind}, shared by all callers."
        path, stored = f"copilot/{kind}/{{id}}", f"All that is stored of a {kind}."
        older = ["copilot/session/live/{id}"] if kind == "session" else []
        return [
            *(route(each, without_token, "read", one, errors=errors) for each in (*older, f"{path}/live")),
            route(f"{path}/live/{{token:path}}", with_token, "read", whole, errors=errors, query=query),
            route(f"{path}/history", history, "read", stored, answer=Responses, errors=[missing], query=query),
        ]

    async def _check_there(self, request: Request, channel: Channel, refusal: Refused) -> None:
        app = self._room.app
        if app.host.log.head(channel) == 0 or not await app.view(request).open(channel):
            raise refusal

    async def end_of_session(self, ident: str) -> Closing | None:
        """Return how a session was closed. A task closes its own sessions; all others are stopped by a caller."""
        summary = (await self._room.app.host.get(ident)).summary
        return Closing(summary.modified, not summary.by.startswith("task:")) if summary.closed else None

    async def end_of_task(self, ident: str) -> Closing | None:
        task = await self._room.jobs.task(ident)
        return Closing(task.ended, task.stopped) if task.ended is not None else None

    async def end_of_job(self, ident: str) -> Closing | None:
        job = self._room.jobs.job(ident)
        return Closing(job.ended, job.status == "canceled") if job.ended is not None else None
