"""Sessions, turns and queues, and export to or import from another host."""

from typing import Literal

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from portico import __version__, limits
from portico.doors.rest.export import FORMATS, export
from portico.doors.rest.query import Flag, flag, number, numbered
from portico.features.sandboxes.record import NetworkRecord
from portico.features.transcripts.archive import Archive, export_archive
from portico.features.transcripts.commands import ImportSession
from portico.kernel.errors import BadRequest
from portico.kernel.state import PendingState, SessionState, Summary
from portico.server.app import App, DoorInfo
from portico.server.body import identified_caller, read_as
from portico.server.route import Param, Table, caller
from portico.server.routes import Routes


class LogHealth(Struct):
    seq: int
    epoch: str
    """Which log this is: cursors of another one are refused."""
    down: str | None
    """Why the log cannot be written, while that is the case."""


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


class SessionList(Struct):
    sessions: list[Summary]
    total: int


class QueueShown(Struct):
    queue: list[PendingState]
    held: bool
    """The queue is paused after a crash or an interrupted turn, until a caller resumes it."""


class ImportBody(Struct, forbid_unknown_fields=True):
    archive: Archive
    agent: str | None = None
    cwd: str | None = None


def table(app: App) -> Table:
    host, read, one = app.host, Routes(app), "/v1/sessions/{id}"

    @read("/v1", "read", "The host: version, counts, health of the log.")
    async def about(request: Request) -> About:
        view = app.view(request)
        return About(
            name="portico",
            version=__version__,
            sessions=view.count(),
            running=view.running(),
            log=LogHealth(host.log.seq, host.log.epoch, host.log.down.message if host.log.down else None),
            workspaces=[str(path) for path in app.workspaces],
            you=caller(request).name,
            doors=app.doors,
        )

    filters: dict[str, str | Param] = {
        "archived": Param("`true` or `false`: only those", Flag),
        "children": Param("`false`: without sub-agents and forks", Flag),
        "parent": "only the children of this session",
        "limit": numbered("how many; 1000", 1),
    }

    @read("/v1/sessions", "read", "All sessions, newest first.", query=filters)
    async def listing(request: Request) -> SessionList:
        parent, children = request.query_params.get("parent"), flag(request, "children") is not False
        found = app.view(request).list(archived=flag(request, "archived"), parent=parent, children=children)
        return SessionList(found[: number(request, "limit", 1000, 1)], len(found))

    @read(one, "read", "A session with all its turns.")
    async def show(request: Request) -> SessionState:
        return (await read.session(request)).state

    media = tuple(media.partition(";")[0] for media, _ in FORMATS.values())
    form = Param("`markdown` when nothing is said", Literal["markdown", "html", "jsonl"])

    @read(f"{one}/export", "read", "The session as Markdown, HTML or JSON Lines.", media=media, query={"format": form})
    async def exported(request: Request) -> Response:
        wanted = request.query_params.get("format", "markdown")
        if wanted not in FORMATS:
            raise BadRequest(f"There is no format {wanted!r}; choose one of {', '.join(FORMATS)}.", field="format")
        session = await read.session(request)
        media, suffix = FORMATS[wanted]
        network = await app.features[NetworkRecord].of(session.channel)
        text = await export(host, session, wanted, network)
        name = f"{session.id}.{suffix}"
        return Response(text, media_type=media, headers={"Content-Disposition": f'attachment; filename="{name}"'})

    @read(f"{one}/queue", "read", "The waiting messages.")
    async def queue(request: Request) -> QueueShown:
        state = (await read.session(request)).state
        return QueueShown(state.queue, state.queue_held)

    @read(f"{one}/archive", "read", "The session with its blobs, for another host.")
    async def archive(request: Request) -> Archive:
        return await export_archive(host, await read.session(request))

    summary, most = "A session of another host.", limits.ARCHIVE_BYTES

    @read("/v1/sessions/import", "admin", summary, methods=("POST",), max_body=most, body=ImportBody, status=201)
    async def imported(request: Request) -> Summary:
        body = await read_as(request, ImportBody)
        command = ImportSession(archive=msgspec.to_builtins(body.archive), agent=body.agent, cwd=body.cwd)
        taken: Summary = await host.do(command, identified_caller(request))
        return taken

    return read.table
