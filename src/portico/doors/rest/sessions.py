"""Sessions and turns."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from portico import __version__
from portico import commands as c
from portico.doors.app import App, DoorInfo
from portico.doors.body import EmptyBody, JsonResponse, read_as
from portico.doors.rest.export import FORMATS, export
from portico.doors.rest.query import Flag, flag, number, numbered
from portico.doors.route import Doc, Param, Route, Table, caller
from portico.errors import BadRequest
from portico.events import Json
from portico.host.agent import AgentInfo, Check
from portico.host.session import Session
from portico.host.state import SessionState, Summary


class ChangeBody(Struct, forbid_unknown_fields=True):
    title: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    archived: bool | UnsetType = UNSET
    read: bool | UnsetType = UNSET
    config: Json | UnsetType = UNSET


class LogHealth(Struct):
    seq: int
    epoch: str
    """Which log this is: cursors of another one are refused."""
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
    doors: list[DoorInfo]


class Agents(Struct):
    agents: list[AgentInfo]
    default: str | None
    """The one that answers where nobody names one."""


class SessionList(Struct):
    sessions: list[Summary]
    total: int


def table(app: App) -> Table:
    host = app.host

    async def get(request: Request) -> Session:
        return await app.view(request).get(request.path_params["id"])

    async def about(request: Request) -> Response:
        view = app.view(request)
        return JsonResponse(
            About(
                name="portico",
                version=__version__,
                sessions=view.count(),
                running=view.running(),
                log=LogHealth(host.log.seq, host.log.epoch, host.log.down.message if host.log.down else None),
                workspaces=[str(path) for path in app.workspaces],
                you=caller(request).name,
                doors=app.doors,
            )
        )

    async def agents(request: Request) -> Response:
        found = await host.describe()
        return JsonResponse(Agents(found, host.readiness.likely(found)))

    async def check(request: Request) -> Response:
        await read_as(request, EmptyBody)
        return JsonResponse(await host.readiness.check(request.path_params["id"]))

    async def listing(request: Request) -> Response:
        archived = flag(request, "archived")
        children = flag(request, "children")
        found = app.view(request).list(
            archived=archived,
            parent=request.query_params.get("parent"),
            children=True if children is None else children,
        )
        limit = number(request, "limit", 1000, 1)
        return JsonResponse(SessionList(found[:limit], len(found)))

    async def show(request: Request) -> Response:
        return JsonResponse((await get(request)).state)

    async def change(request: Request) -> Response:
        session = await get(request)
        commands = _changes(session.id, await read_as(request, ChangeBody))
        if commands:
            await host.commands.do_together(commands, caller(request))
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
    document: Doc = {
        "media": tuple(media.partition(";")[0] for media, _ in FORMATS.values()),
        "query": {"format": Param("`markdown` when nothing is said", Literal["markdown", "html", "jsonl"])},
    }
    return [
        Route("/v1", about, "read", summary="The host: version, counts, health of the log.", doc={"answer": About}),
        Route("/v1/agents", agents, "read", summary="Agents and models, with what is missing.", doc={"answer": Agents}),
        Route(
            "/v1/agents/{id}/check",
            check,
            "drive",
            ("POST",),
            "Start an agent and speak its first handshake.",
            doc={"body": EmptyBody, "answer": Check, "errors": ["not_found"]},
        ),
        Route(
            "/v1/sessions",
            listing,
            "read",
            summary="All sessions, newest first.",
            doc={"answer": SessionList, "query": filters},
        ),
        Route(one, show, "read", summary="A session with all its turns.", doc={"answer": SessionState}),
        Route(
            one,
            change,
            "drive",
            ("PATCH",),
            "Rename, change the model, archive, mark as read, configure.",
            doc={"body": ChangeBody, **summary},
        ),
        Route(f"{one}/export", exported, "read", summary="The session as Markdown, HTML or JSON Lines.", doc=document),
    ]


def _changes(session: str, body: ChangeBody) -> list[c.Command]:
    found: list[c.Command] = []
    if not isinstance(body.title, UnsetType):
        found.append(c.RenameSession(session=session, title=body.title))
    if not isinstance(body.model, UnsetType):
        found.append(c.SetModel(session=session, model=body.model))
    if not isinstance(body.archived, UnsetType):
        found.append(c.ArchiveSession(session=session, archived=body.archived))
    if not isinstance(body.read, UnsetType):
        found.append(c.MarkRead(session=session, read=body.read))
    if not isinstance(body.config, UnsetType):
        found.append(c.ConfigureSession(session=session, values=body.config))
    return found
