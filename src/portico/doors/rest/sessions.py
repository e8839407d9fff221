"""Sessions and turns."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from portico import __version__
from portico.doors.app import App
from portico.doors.body import EmptyBody, JsonResponse, read_as
from portico.doors.rest.export import FORMATS, export
from portico.doors.rest.query import Flag, flag, number, numbered
from portico.doors.route import Doc, Param, Route, Table, caller
from portico.errors import BadRequest
from portico.events import Json, Message
from portico.host.agent import AgentInfo
from portico.host.config import decides_calls
from portico.host.isolation import Isolation
from portico.host.session import Session
from portico.host.state import SessionState, Summary

_AGENT = ["conflict", "agent_failed", "agent_unavailable"]


class StartBody(Struct, forbid_unknown_fields=True):
    agent: str | None = None
    model: str | None = None
    cwd: str | None = None
    title: str = ""
    config: Json = {}
    worktree: bool | Isolation = False


class ChangeBody(Struct, forbid_unknown_fields=True):
    title: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    archived: bool | UnsetType = UNSET
    read: bool | UnsetType = UNSET
    config: Json | UnsetType = UNSET


class MessageBody(Struct, forbid_unknown_fields=True):
    text: str
    attachments: list[Json] = []
    model: str | None = None
    busy: str = "queue"
    """What to do while a turn runs: `queue`, `steer` or `refuse`."""


class TurnBody(Struct, forbid_unknown_fields=True):
    turn: str | None = None


class LogHealth(Struct):
    seq: int
    down: str | None
    """Why it cannot be written, while it cannot."""


class About(Struct):
    name: str
    version: str
    sessions: int
    running: int
    log: LogHealth
    workspaces: list[str]
    you: str
    """The name of your token."""


class Agents(Struct):
    agents: list[AgentInfo]


class Sessions(Struct):
    sessions: list[Summary]
    total: int


class TurnBegun(Struct):
    turn: str


class Queued(Struct):
    queued: bool
    pending: str
    position: int


class Deleted(Struct):
    kept: str
    """What stays of its worktree, and why."""


class Steered(Struct):
    steered: bool
    queued: bool
    """The agent did not take it: it waits for the end of the turn."""


def table(app: App) -> Table:
    host = app.host

    async def get(request: Request) -> Session:
        return await host.get(request.path_params["id"])

    async def about(request: Request) -> Response:
        return JsonResponse(
            About(
                name="portico",
                version=__version__,
                sessions=len(host.catalogue),
                running=host.running,
                log=LogHealth(host.log.seq, host.log.down.message if host.log.down else None),
                workspaces=[str(path) for path in app.workspaces],
                you=caller(request).name,
            )
        )

    async def agents(request: Request) -> Response:
        return JsonResponse(Agents(await host.describe()))

    async def listing(request: Request) -> Response:
        archived = flag(request, "archived")
        children = flag(request, "children")
        found = host.list(
            archived=archived,
            parent=request.query_params.get("parent"),
            children=True if children is None else children,
        )
        limit = number(request, "limit", 1000, 1)
        return JsonResponse(Sessions(found[:limit], len(found)))

    async def start(request: Request) -> Response:
        body = await read_as(request, StartBody)
        _allowed(request, body.config)
        cwd = body.cwd if body.cwd is not None else str(app.workspaces[0]) if app.workspaces else None
        session = await host.start(
            by=caller(request).by,
            agent=body.agent,
            model=body.model,
            cwd=cwd,
            title=body.title,
            config=body.config,
            worktree=Isolation() if body.worktree is True else body.worktree or None,
        )
        return JsonResponse(session.summary, 201)

    async def show(request: Request) -> Response:
        return JsonResponse((await get(request)).state)

    async def change(request: Request) -> Response:
        session, by = await get(request), caller(request).by
        body = await read_as(request, ChangeBody)
        if not isinstance(body.config, UnsetType):
            _allowed(request, body.config)
        if not isinstance(body.title, UnsetType):
            await session.rename(body.title, by=by)
        if not isinstance(body.model, UnsetType):
            await session.set_model(body.model, by=by)
        if not isinstance(body.archived, UnsetType):
            await session.archive(body.archived, by=by)
        if not isinstance(body.read, UnsetType):
            await session.mark_read(body.read, by=by)
        if not isinstance(body.config, UnsetType):
            await session.configure(body.config, by=by)
        return JsonResponse(session.summary)

    async def delete(request: Request) -> Response:
        stays = await host.delete(request.path_params["id"], by=caller(request).by)
        return JsonResponse(Deleted(stays)) if stays else Response(status_code=204)

    async def close(request: Request) -> Response:
        session = await get(request)
        await read_as(request, EmptyBody)
        await session.close(by=caller(request).by)
        return JsonResponse(session.summary)

    async def reopen(request: Request) -> Response:
        session = await get(request)
        await read_as(request, EmptyBody)
        await session.reopen(by=caller(request).by)
        return JsonResponse(session.summary)

    async def fork(request: Request) -> Response:
        body = await read_as(request, TurnBody)
        session = await host.fork(request.path_params["id"], by=caller(request).by, turn=body.turn)
        return JsonResponse(session.summary, 201)

    async def send(request: Request) -> Response:
        session = await get(request)
        return await send_message(session, await read_as(request, MessageBody), caller(request).by)

    async def cancel(request: Request) -> Response:
        session = await get(request)
        body = await read_as(request, TurnBody)
        await session.cancel(by=caller(request).by, turn=body.turn)
        return JsonResponse(session.summary)

    async def resume(request: Request) -> Response:
        session = await get(request)
        body = await read_as(request, TurnBody)
        return JsonResponse(TurnBegun(await session.resume(by=caller(request).by, turn=body.turn)), 202)

    async def truncate(request: Request) -> Response:
        session = await get(request)
        body = await read_as(request, TurnBody)
        await session.truncate(body.turn, by=caller(request).by)
        return JsonResponse(session.summary)

    async def exported(request: Request) -> Response:
        wanted = request.query_params.get("format", "markdown")
        if wanted not in FORMATS:
            raise BadRequest(f"There is no format {wanted!r}; choose one of {', '.join(FORMATS)}.", field="format")
        session = await get(request)
        media, suffix = FORMATS[wanted]
        text = await export(host, session, wanted)
        name = f"{session.id}.{suffix}"
        return Response(text, media_type=media, headers={"Content-Disposition": f'attachment; filename="{name}"'})

    one = "/v1/sessions/{id}"
    summary: Doc = {"answer": Summary, "codes": ["conflict"]}
    filters: dict[str, str | Param] = {
        "archived": Param("`true` or `false`: only those", Flag),
        "children": Param("`false`: without sub-agents and forks", Flag),
        "parent": "only the children of this session",
        "limit": numbered("how many; 1000", 1),
    }
    sent: Doc = {
        "body": MessageBody,
        "answer": (TurnBegun, Queued, Steered),
        "status": 202,
        "codes": ["conflict", "agent_unavailable"],
    }
    begun: Doc = {"body": StartBody, "answer": Summary, "status": 201, "codes": ["not_found", *_AGENT]}
    forked: Doc = {"body": TurnBody, "answer": Summary, "status": 201, "codes": _AGENT}
    resumed: Doc = {"body": TurnBody, "answer": TurnBegun, "status": 202, "codes": ["conflict"]}
    document: Doc = {
        "media": tuple(media.partition(";")[0] for media, _ in FORMATS.values()),
        "query": {"format": Param("`markdown` when nothing is said", Literal["markdown", "html", "jsonl"])},
    }
    return [
        Route("/v1", about, "read", summary="The host: version, counts, health of the log.", doc={"answer": About}),
        Route("/v1/agents", agents, "read", summary="Agents and models, with what is missing.", doc={"answer": Agents}),
        Route(
            "/v1/sessions",
            listing,
            "read",
            summary="All sessions, newest first.",
            doc={"answer": Sessions, "query": filters},
        ),
        Route("/v1/sessions", start, "drive", ("POST",), "Start a session.", doc=begun),
        Route(one, show, "read", summary="A session with all its turns.", doc={"answer": SessionState}),
        Route(
            one,
            change,
            "drive",
            ("PATCH",),
            "Rename, change the model, archive, mark as read, configure.",
            doc={"body": ChangeBody, **summary},
        ),
        Route(
            one,
            delete,
            "drive",
            ("DELETE",),
            "Delete a session, its history and its children.",
            doc={"answer": Deleted, "others": {204: None}, "codes": ["conflict"]},
        ),
        Route(f"{one}/messages", send, "drive", ("POST",), "Send a message.", limited=True, doc=sent),
        Route(f"{one}/cancel", cancel, "drive", ("POST",), "Stop the running turn.", doc={"body": TurnBody, **summary}),
        Route(f"{one}/resume", resume, "drive", ("POST",), "Go on with the last turn.", doc=resumed),
        Route(f"{one}/fork", fork, "drive", ("POST",), "A new session from this one's turns.", doc=forked),
        Route(
            f"{one}/truncate",
            truncate,
            "drive",
            ("POST",),
            "Forget the turns after one.",
            doc={"body": TurnBody, **summary},
        ),
        Route(
            f"{one}/close",
            close,
            "drive",
            ("POST",),
            "Release the agent; the history stays.",
            doc={"body": EmptyBody, **summary},
        ),
        Route(
            f"{one}/reopen",
            reopen,
            "drive",
            ("POST",),
            "Take a closed session up again.",
            doc={"body": EmptyBody, **summary},
        ),
        Route(f"{one}/export", exported, "read", summary="The session as Markdown, HTML or JSON Lines.", doc=document),
    ]


def _allowed(request: Request, config: Json) -> None:
    if decides_calls(config):
        caller(request).require("approve")


async def send_message(session: Session, body: MessageBody, by: str) -> Response:
    message = Message(body.text, body.attachments, body.model)
    if body.busy not in ("queue", "steer", "refuse"):
        raise BadRequest("'busy' is 'queue', 'steer' or 'refuse'.", field="busy")
    if body.busy == "steer" and session.state.active is not None:
        taken = await session.queue.steer(message, by=by)
        return JsonResponse(Steered(taken, not taken), 202)
    ident = await session.send(message, by=by, queue=body.busy == "queue")
    position = next((i for i, pending in enumerate(session.state.queue, 1) if pending.id == ident), None)
    if position is None:
        return JsonResponse(TurnBegun(ident), 202)
    return JsonResponse(Queued(True, ident, position), 202)
