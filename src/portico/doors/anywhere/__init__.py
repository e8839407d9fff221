"""The Anywhere door: messages over HTTP, answers as server-sent events, for scripts and pages of any kind.

It translates the host's sessions into projects and their conversations, and decides nothing. Its paths stand at the
root (`/message`, `/events`, `/sessions`), where programs written against the first of its kind expect them.
"""

import zlib
from collections.abc import AsyncIterator
from typing import Any, Literal

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from portico import commands as c
from portico.commands import Project
from portico.doors.anywhere import history
from portico.doors.anywhere.events import accepts_gzip, stream
from portico.doors.anywhere.identity import Idents
from portico.doors.anywhere.message import AnywhereMessages, MessageBody, Sent
from portico.doors.app import App
from portico.doors.body import JsonResponse, read_as
from portico.doors.door import Door
from portico.doors.route import Doc, Route, Table, caller
from portico.errors import BadRequest, Conflict, NotFound
from portico.events import Json
from portico.projects.projects import Projects

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
    """Turns in its stored conversations."""
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
        self.projects = app.host.part(Projects)
        self.routes = _routes(app, self.projects)

    async def open(self) -> None:
        """Messages that a crash has left waiting go on now, not when somebody next calls."""
        await self.projects.ready()


def _routes(app: App, projects: Projects) -> Table:
    host = app.host
    idents = Idents(host)
    messages = AnywhereMessages(app, projects, idents)

    def shown(project: Project, who: c.Caller) -> ProjectShown:
        view = app.view(who)
        ids = set(projects.sessions(project.id, view.has))
        stored = [summary for summary in view.list() if summary.id in ids]
        return ProjectShown(
            id=project.id,
            name=project.name,
            path=project.path,
            created=min((summary.created for summary in stored), default=project.added),
            count=sum(summary.turns for summary in stored),
            worktree=project.worktree,
        )

    async def listing(request: Request) -> Response:
        await projects.ready()
        return packed(request, [shown(project, caller(request)) for project in projects.all()])

    async def show(request: Request) -> Response:
        await projects.ready()
        project = projects.get(request.path_params["id"])
        items = await history.messages(app.view(request), projects, idents, project)
        return packed(request, ProjectHistory(project.id, project.name, items))

    async def add(request: Request) -> Response:
        body = await read_as(request, ProjectBody)
        who = caller(request)
        added = await host.do(c.AddProject(path=body.path, worktree=body.worktree), who)
        return JsonResponse(shown(added, who), 201)

    async def forget(request: Request) -> Response:
        await host.do(c.ForgetProject(project=request.path_params["id"]), caller(request))
        return Response(status_code=204)

    async def cancel(request: Request) -> Response:
        await projects.ready()
        body, who = await read_as(request, CancelBody), caller(request)
        if (body.id is None) == (body.session_id is None):
            raise BadRequest("Say either 'id' or 'sessionId'.", field="id")
        if body.id is not None:
            await cancel_message(body.id, who)
        else:
            await cancel_project(projects.get(body.session_id), who)
        return JsonResponse(Ok())

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
                continue  # it ended in this moment, which is what was wanted

    async def approve(request: Request) -> Response:
        body = await read_as(request, ApprovalBody)
        await host.do(c.AnswerApproval(approval=body.approval_id, allow=body.approved), caller(request))
        return JsonResponse(Ok())

    async def answer(request: Request) -> Response:
        body = await read_as(request, AnswerBody)
        if body.response == "accept" and body.text is None and not body.answers:
            raise BadRequest("Say 'text', or 'answers' by field, or 'response': 'decline'.", field="text")
        command = c.AnswerQuestion(
            question=body.question_id, response=body.response, answers=body.answers, text=body.text
        )
        await host.do(command, caller(request))
        return JsonResponse(Ok())

    async def clear(request: Request) -> Response:
        await projects.ready()
        body = await read_as(request, ClearBody)
        await host.do(c.ClearProject(project=projects.get(body.session_id).id), caller(request))
        return JsonResponse(Ok())

    async def context(request: Request) -> Response:
        await projects.ready()
        project = projects.get(request.query_params.get("session"))
        lines = history.context(app.view(request), projects, idents, project)
        if not accepts_gzip(request):
            return StreamingResponse(lines, media_type="application/jsonl")
        headers = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        return StreamingResponse(packing(lines), media_type="application/jsonl", headers=headers)

    one = "/sessions/{id:path}"
    added: Doc = {"body": ProjectBody, "answer": ProjectShown, "status": 201, "codes": ["conflict"]}
    ok: Doc = {"answer": Ok, "codes": ["not_found", "conflict"]}
    return [
        Route("/sessions", listing, "read", summary="The projects.", doc={"answer": list[ProjectShown]}),
        Route("/sessions", add, "drive", ("POST",), "Add a project.", doc=added),
        Route(one, show, "read", summary="A project's stored messages.", doc={"answer": ProjectHistory}),
        Route(
            one,
            forget,
            "drive",
            ("DELETE",),
            "Forget a project; its folder is not touched.",
            doc={"others": {204: None}, "codes": ["conflict"]},
        ),
        Route(
            "/message",
            messages.post,
            "drive",
            ("POST",),
            "Send a message, a goal or a command.",
            limited=True,
            doc={"body": MessageBody, "answer": Sent, "status": 202, "codes": ["not_found", "conflict"]},
        ),
        Route(
            "/cancel", cancel, "drive", ("POST",), "Stop a message or all of a project.", doc={"body": CancelBody, **ok}
        ),
        Route("/approval", approve, "approve", ("POST",), "Answer an approval.", doc={"body": ApprovalBody, **ok}),
        Route("/answer", answer, "approve", ("POST",), "Answer a question.", doc={"body": AnswerBody, **ok}),
        Route("/clear", clear, "drive", ("POST",), "Begin a fresh conversation.", doc={"body": ClearBody, **ok}),
        Route(
            "/context",
            context,
            "read",
            summary="The whole stored context of a project.",
            doc={
                "media": "application/jsonl",
                "query": {"session": "the project; without it the first"},
                "codes": ["not_found"],
            },
        ),
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
    """JSON, compressed when it is worth it and the client takes it."""
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
