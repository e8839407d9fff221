"""Sessions: start, stop, query."""

from typing import Any

from starlette.requests import Request

from portico.commands import CloseSession, SendMessage, StartSession
from portico.doors.portal.answer import FolderError, PortalContext, route, text_of, working_directory
from portico.doors.portal.shapes import Closed, Models, ModelShown, PortalDone, SessionStartedReply
from portico.doors.route import Route, caller
from portico.errors import NotFound, SessionIsClosed
from portico.host.session import Session
from portico.host.state import Summary
from portico.jobs.choice import choose, offered
from portico.jobs.tools import LENT

NOT_FOUND = {"error": "SessionNotFound"}


class Sessions:
    def __init__(self, room: PortalContext) -> None:
        self._room = room
        self._host = room.app.host

    def table(self) -> list[Route]:
        errors = ["SessionNotFound"]
        start_errors = ["ModelIdNotFound", "WorkingDirectoryNotAbsolutePath", "WorkingDirectoryNotExists"]
        routes = [
            route("copilot/models", self.models, "read", "All models.", answer=Models),
            route(
                "copilot/session/start/{model:path}",
                self.start,
                "drive",
                "Start a session; the body is its working directory.",
                body=str,
                answer=SessionStartedReply,
                errors=start_errors,
            ),
        ]
        for path in ("copilot/session/stop/{session}", "copilot/session/{session}/stop"):
            routes.append(route(path, self.stop, "drive", "Close a session.", answer=Closed, errors=errors))
        for path in ("copilot/session/query/{session}", "copilot/session/{session}/query"):
            summary = "Send a prompt; the body is the prompt."
            routes.append(route(path, self.query, "drive", summary, body=str, answer=PortalDone, errors=errors))
        return routes

    async def models(self, request: Request) -> Any:
        models = await offered(self._host)
        return Models([ModelShown(each.name, each.id, each.multiplier) for each in models])

    async def start(self, request: Request) -> Any:
        try:
            agent, model = await choose(self._host, request.path_params["model"])
        except NotFound:
            return {"error": "ModelIdNotFound"}
        given = (await text_of(request)).strip()
        folder = working_directory(given, self._room.app.test) if given else None
        if isinstance(folder, FolderError):
            return {"error": folder.value}
        cwd = str(folder) if folder is not None else None
        command = StartSession(agent=agent, model=model, cwd=cwd, data=LENT)  # in this API every session has the tools
        started: Summary = await self._host.do(command, caller(request))
        return SessionStartedReply(started.id)

    async def stop(self, request: Request) -> Any:
        session = await self._find(request)
        if session is None:
            return NOT_FOUND
        await self._host.do(CloseSession(session=session.id), caller(request))
        self._room.live.restart_countdown(session.channel)
        return Closed("Closed")

    async def query(self, request: Request) -> Any:
        session = await self._find(request)
        prompt = await text_of(request)
        if session is None:
            return NOT_FOUND
        try:
            # This API has no word for a prompt that says nothing, and GET is one: the agent has to say what it thinks.
            await self._host.do(SendMessage(session=session.id, text=prompt, blank=True), caller(request))
        except SessionIsClosed:
            return NOT_FOUND
        return PortalDone()

    async def _find(self, request: Request) -> Session | None:
        """The session, unless it was closed so long ago that clients take it for gone."""
        ident = request.path_params["session"]
        view = self._room.app.view(request)
        if not view.has(ident):
            return None
        session = await view.get(ident)
        closed = session.summary.modified if session.summary.closed else None
        return None if self._room.live.expired(session.channel, closed) else session
