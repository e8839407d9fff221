"""Sessions: start, stop, query."""

from starlette.requests import Request

from portico.doors.portal.answer import Endpoints, PortalContext, Refused, api, text_of, working_directory
from portico.doors.portal.shapes import Closed, Models, ModelShown, PortalDone, SessionStartedReply
from portico.features.jobs.choice import choose, offered
from portico.features.jobs.tools import LENT
from portico.kernel.commands import CloseSession, SendMessage, StartSession
from portico.kernel.errors import NotFound, SessionIsClosed
from portico.kernel.session import Session
from portico.kernel.state import Summary
from portico.server.route import caller

NOT_FOUND = ["SessionNotFound"]


class Sessions(Endpoints):
    def __init__(self, room: PortalContext) -> None:
        self._room = room
        self._host = room.app.host

    @api("copilot/models", scope="read", summary="All models.")
    async def models(self, request: Request) -> Models:
        models = await offered(self._host)
        return Models([ModelShown(each.name, each.id, each.multiplier) for each in models])

    @api(
        "copilot/session/start/{model:path}",
        scope="drive",
        summary="Start a session; the body is its working directory.",
        body=str,
        errors=["ModelIdNotFound", "WorkingDirectoryNotAbsolutePath", "WorkingDirectoryNotExists"],
    )
    async def start(self, request: Request) -> SessionStartedReply:
        try:
            info, model = await choose(self._host, request.path_params["model"])
        except NotFound:
            raise Refused("ModelIdNotFound") from None
        given = (await text_of(request)).strip()
        cwd = str(working_directory(given, self._room.app.test)) if given else None
        command = StartSession(agent=info.id, model=model, cwd=cwd, data=LENT)  # here every session has the tools
        started: Summary = await self._host.do(command, caller(request))
        return SessionStartedReply(started.id)

    @api(
        "copilot/session/stop/{session}",
        "copilot/session/{session}/stop",
        scope="drive",
        summary="Close a session.",
        errors=NOT_FOUND,
    )
    async def stop(self, request: Request) -> Closed:
        session = await self._find(request)
        await self._host.do(CloseSession(session=session.id), caller(request))
        self._room.live.restart_countdown(session.channel)
        return Closed("Closed")

    @api(
        "copilot/session/query/{session}",
        "copilot/session/{session}/query",
        scope="drive",
        summary="Send a prompt; the body is the prompt.",
        body=str,
        errors=NOT_FOUND,
    )
    async def query(self, request: Request) -> PortalDone:
        session = await self._find(request)
        prompt = await text_of(request)
        try:
            # This API has no error for an empty prompt, and a GET has one: the agent must respond to it.
            await self._host.do(SendMessage(session=session.id, text=prompt, blank=True), caller(request))
        except SessionIsClosed:
            raise Refused("SessionNotFound") from None
        return PortalDone()

    async def _find(self, request: Request) -> Session:
        """Return the session, unless it was closed so long ago that it counts as deleted."""
        ident = request.path_params["session"]
        view = self._room.app.view(request)
        if view.has(ident):
            session = await view.get(ident)
            closed = session.summary.modified if session.summary.closed else None
            if not self._room.live.expired(session.channel, closed):
                return session
        raise Refused("SessionNotFound")
