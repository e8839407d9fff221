"""Sessions: start, stop, query."""

from typing import Any

from starlette.requests import Request

from portico.doors.portal.answer import Room, folder_trouble, route, text_of
from portico.doors.portal.shapes import Closed, Done, Models, ModelShown, SessionStarted
from portico.doors.route import Route, caller
from portico.errors import NotFound, SessionClosed
from portico.events import Message
from portico.host.session import Session
from portico.jobs.choice import choose, offered

NOT_FOUND = {"error": "SessionNotFound"}


class Sessions:
    def __init__(self, room: Room) -> None:
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
                answer=SessionStarted,
                errors=start_errors,
            ),
        ]
        for path in ("copilot/session/stop/{session}", "copilot/session/{session}/stop"):
            routes.append(route(path, self.stop, "drive", "Close a session.", answer=Closed, errors=errors))
        for path in ("copilot/session/query/{session}", "copilot/session/{session}/query"):
            summary = "Send a prompt; the body is the prompt."
            routes.append(route(path, self.query, "drive", summary, body=str, answer=Done, errors=errors))
        return routes

    async def models(self, request: Request) -> Any:
        models = await offered(self._host)
        return Models([ModelShown(each.name, each.id, each.multiplier) for each in models])

    async def start(self, request: Request) -> Any:
        try:
            agent, model = await choose(self._host, request.path_params["model"])
        except NotFound:
            return {"error": "ModelIdNotFound"}
        folder = (await text_of(request)).strip()
        trouble = folder_trouble(folder, self._room.app.test) if folder else None
        if trouble is not None:
            return {"error": trouble}
        session = await self._host.start(by=caller(request).by, agent=agent, model=model, cwd=folder or None)
        return SessionStarted(session.id)

    async def stop(self, request: Request) -> Any:
        session = await self._find(request)
        if session is None:
            return NOT_FOUND
        await session.close(by=caller(request).by)
        self._room.live.restart_countdown(session.channel)
        return Closed("Closed")

    async def query(self, request: Request) -> Any:
        session = await self._find(request)
        prompt = await text_of(request)
        if session is None:
            return NOT_FOUND
        try:
            # This API has no word for a prompt that says nothing, and GET is one: the agent has to say what it thinks.
            await session.send(Message(prompt), by=caller(request).by, blank=True)
        except SessionClosed:
            return NOT_FOUND
        return Done()

    async def _find(self, request: Request) -> Session | None:
        """The session, unless it was closed so long ago that clients take it for gone."""
        ident = request.path_params["session"]
        if not self._host.has(ident):
            return None
        session = await self._host.get(ident)
        closed = session.summary.modified if session.summary.closed else None
        return None if self._room.live.expired(session.channel, closed) else session
