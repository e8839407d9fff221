"""The Anywhere door: messages over HTTP, answers as server-sent events, for scripts and pages of any kind.

It translates the sessions of the host to projects and conversations, and contains no rules. Its paths are at the root
(`/message`, `/events`, `/sessions`), where programs written for the original API expect them.
"""

import zlib
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Literal

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from portico.doors.anywhere import history
from portico.doors.anywhere.events import accepts_gzip, stream
from portico.doors.anywhere.identity import Idents
from portico.doors.anywhere.message import AnywhereMessages, MessageBody
from portico.features.projects.commands import AddProject, ClearProject, ForgetProject, Project
from portico.features.projects.projects import Projects
from portico.kernel import commands as c
from portico.kernel.errors import BadRequest, Conflict, NotFound
from portico.kernel.events import Json
from portico.server.app import App
from portico.server.body import JsonResponse, read_as
from portico.server.door import Door
from portico.server.route import Param, Route, Table, caller
from portico.server.routes import Routes

PACK_BYTES = 1024
"""Below this, compression costs more than it saves."""


class ProjectBody(Struct):
    path: str
    worktree: bool = False


class CancelBody(Struct, rename={"session_id": "sessionId"}):
    id: str | None = None
    session_id: str | None = None


class ApprovalBody(Struct, rename={"approval_id": "approvalId"}):
    approval_id: str
    approved: bool


class AnswerBody(Struct, rename={"question_id": "questionId"}):
    question_id: str
    text: str | None = None
    answers: Json = {}
    response: Literal["accept", "decline", "cancel"] = "accept"


class ClearBody(Struct, rename={"session_id": "sessionId"}):
    session_id: str | None = None


class ProjectShown(Struct, omit_defaults=True):
    id: str
    name: str
    path: str
    created: int
    count: int
    """Turns in the conversations that were not cleared."""
    worktree: bool = False


class ProjectHistory(Struct):
    id: str
    name: str
    messages: list[Json]


class Ok(Struct):
    ok: bool = True


class AnywhereDoor(Door):
    def __init__(self, app: App) -> None:
        super().__init__(app)
        self.projects = app.features[Projects]
        self.routes = _routes(app, self.projects)

    async def open(self) -> None:
        """Resume messages that were queued before a crash now, not at the next request."""
        await self.projects.ready()


def _routes(app: App, projects: Projects) -> Table:
    host = app.host
    idents = Idents(host)
    messages = AnywhereMessages(app, projects)
    routes, one = Routes(app), "/sessions/{id:path}"
    post = partial(routes, methods=("POST",))
    order = partial(post, codes=["not_found", "conflict"])

    def shown(project: Project, who: c.Caller) -> ProjectShown:
        view = app.view(who)
        chats = projects.chats(project.id, view.has)
        ids, now = ({*projects.sessions(project.id, view.has, cleared=all), *chats} for all in (True, False))
        stored = [summary for summary in view.list() if summary.id in ids]
        return ProjectShown(
            id=project.id,
            name=project.name,
            path=project.path,
            created=min([project.added, *(summary.created for summary in stored)]),
            count=sum(summary.turns for summary in stored if summary.id in now),
            worktree=project.worktree,
        )

    @routes("/sessions", "read", "The projects.", answer=list[ProjectShown])
    async def listing(request: Request) -> Response:
        await projects.ready()
        return packed(request, [shown(project, caller(request)) for project in projects.all()])

    @post("/sessions", "drive", "Add a project.", body=ProjectBody, status=201, codes=["conflict"])
    async def add(request: Request) -> ProjectShown:
        body, who = await read_as(request, ProjectBody), caller(request)
        return shown(await host.do(AddProject(path=body.path, worktree=body.worktree), who), who)

    @routes(one, "read", "A project's stored messages.", answer=ProjectHistory)
    async def show(request: Request) -> Response:
        await projects.ready()
        project = projects.get(request.path_params["id"])
        items = await history.messages(app.view(request), projects, idents, project)
        return packed(request, ProjectHistory(project.id, project.name, items))

    summary = "Forget a project; its folder is not touched."

    @routes(one, "drive", summary, methods=("DELETE",), others={204: None}, codes=["conflict"])
    async def forget(request: Request) -> Response:
        await host.do(ForgetProject(project=request.path_params["id"]), caller(request))
        return Response(status_code=204)

    @order("/cancel", "drive", "Stop a message or all of a project.", body=CancelBody)
    async def cancel(request: Request) -> Ok:
        await projects.ready()
        body, who = await read_as(request, CancelBody), caller(request)
        if (body.id is None) == (body.session_id is None):
            raise BadRequest("Say either 'id' or 'sessionId'.", field="id")
        if body.id is not None:
            await cancel_message(body.id, who)
        else:
            await cancel_project(projects.get(body.session_id), who)
        return Ok()

    async def cancel_message(ident: str, who: c.Caller) -> None:
        session_id, turn = await idents.turn(ident)
        if not app.view(who).has(session_id):
            raise NotFound("message", ident)
        session = await host.get(session_id)
        waiting = ident.rpartition(".")[2]
        if turn is None and session.state.pending(waiting) is not None:
            await host.do(c.RemoveQueued(session=session_id, pending=waiting), who)
            return
        try:
            if turn is None or await idents.of(session_id, turn) != ident:
                raise NotFound("running message", ident)
            await host.do(c.CancelTurn(session=session_id, turn=turn), who)
        except Conflict:
            raise NotFound("running message", ident, "It has ended.") from None

    async def cancel_project(project: Project, who: c.Caller) -> None:
        running = [await host.get(each) for each in projects.sessions(project.id, app.view(who).owns, cleared=True)]
        running = [session for session in running if session.state.active is not None]
        if not running:
            raise NotFound("running message in the project", project.id)
        for session in running:
            try:
                await host.do(c.CancelTurn(session=session.id), who)
            except Conflict:
                continue  # it has just ended, which is the requested result

    @order("/approval", "approve", "Answer an approval.", body=ApprovalBody)
    async def approve(request: Request) -> Ok:
        body = await read_as(request, ApprovalBody)
        await host.do(c.AnswerApproval(approval=body.approval_id, allow=body.approved), caller(request))
        return Ok()

    @order("/answer", "approve", "Answer a question.", body=AnswerBody)
    async def answer(request: Request) -> Ok:
        body = await read_as(request, AnswerBody)
        if body.response == "accept" and body.text is None and not body.answers:
            raise BadRequest("Say 'text', or 'answers' by field, or 'response': 'decline'.", field="text")
        command = c.AnswerQuestion(
            question=body.question_id, response=body.response, answers=body.answers, text=body.text
        )
        await host.do(command, caller(request))
        return Ok()

    @order("/clear", "drive", "Begin a fresh conversation.", body=ClearBody)
    async def clear(request: Request) -> Ok:
        await projects.ready()
        body = await read_as(request, ClearBody)
        await host.do(ClearProject(project=projects.get(body.session_id).id), caller(request))
        return Ok()

    query: dict[str, str | Param] = {"session": "the project; without it the first"}
    summary = "The whole stored context of a project."

    @routes("/context", "read", summary, media="application/jsonl", query=query, codes=["not_found"])
    async def context(request: Request) -> Response:
        await projects.ready()
        project = projects.get(request.query_params.get("session"))
        lines = history.context(app.view(request), projects, idents, project)
        if not accepts_gzip(request):
            return StreamingResponse(lines, media_type="application/jsonl")
        headers = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        return StreamingResponse(packing(lines), media_type="application/jsonl", headers=headers)

    sends = order(
        "/message", "drive", "Send a message, a goal or a command.", limited=True, body=MessageBody, status=202
    )
    sends(messages.post)
    return [
        *routes.table,
        Route(
            "/events",
            None,
            "read",
            summary="What happens in the projects, as server-sent events.",
            app=stream(app, projects, idents),
            stream=True,
            limited=True,
            doc={
                "media": "text/event-stream",
                "query": {"session": "a project; without it all", "after": "the cursor; without it what comes next"},
                "codes": ["not_found", "cursor_lost"],
            },
        ),
    ]


def packed(request: Request, content: Any) -> Response:
    """Return a JSON response, compressed if it is large enough and the client accepts it."""
    response = JsonResponse(content)
    body = bytes(response.body)
    if len(body) < PACK_BYTES or not accepts_gzip(request):
        return response
    packer = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    headers = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return Response(packer.compress(body) + packer.flush(), media_type="application/json", headers=headers)


async def packing(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    packer = zlib.compressobj(6, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    async for line in lines:
        yield packer.compress(line)
    yield packer.flush()
