"""`GET /events`: what happens in the projects, as server-sent events from a cursor."""

import re
import zlib
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from portico import events as e
from portico.doors.anywhere import translate
from portico.doors.anywhere.identity import Idents
from portico.doors.anywhere.project import Projects
from portico.doors.anywhere.translate import Watched
from portico.doors.house import House
from portico.doors.stream import send_events
from portico.errors import BadRequest, NotFound
from portico.events import Record

_CURSOR = re.compile(r"(\d{1,18})(?:-(\d{1,9}))?")


def stream(house: House, projects: Projects, idents: Idents) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        await projects.ready()
        named = request.query_params.get("session")
        project = projects.get(named).id if named else None
        after, skip = cursor(request, house.host.log.seq)
        if accepts_gzip(request):
            send = compressing(send)
        reader = Reader(house, projects, idents, project)
        await send_events(receive, send, reader.frames(after, skip))

    return app


def cursor(request: Request, now: int) -> tuple[int, int]:
    """`Last-Event-ID` or `?after=`: a position, or `POSITION-N` behind the N-th frame of a record. Without one the
    stream begins with what happens next."""
    text = request.headers.get("last-event-id") or request.query_params.get("after")
    if text is None:
        return now, 0
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise BadRequest(f"A cursor is a number, not {text!r}.", field="after")
    return (int(found[1]) - 1, int(found[2])) if found[2] else (int(found[1]), 0)


class Reader:
    """One client's way through the log. It follows everything: sessions come and go in a project."""

    def __init__(self, house: House, projects: Projects, idents: Idents, project: str | None) -> None:
        self._host = house.host
        self._projects = projects
        self._idents = idents
        self._project = project
        self._watched: dict[str, Watched] = {}

    async def frames(self, after: int, skip: int) -> AsyncIterator[bytes]:
        """Whole frames; `skip` of the first record's have been seen."""
        async for records in self._host.log.follow(after=after):
            pieces: list[bytes] = []
            for record in records:
                if not record.channel.startswith("session/"):
                    continue
                found = await self._frames(record)
                pieces += found[skip:] if skip and record.seq == after + 1 else found
            if pieces:
                yield b"".join(pieces)

    async def _frames(self, record: Record) -> list[bytes]:
        session = record.channel[8:]
        project = self._projects.of_session(session)
        if project is None or (self._project is not None and project != self._project):
            return []
        event = record.event
        if isinstance(event, e.QueueRemoved):
            return [translate.removed(record, project, session)]
        turn = getattr(event, "turn", None)
        if not isinstance(turn, str):
            return []
        watched = self._watched.get(session)
        if watched is None or watched.turn != turn or isinstance(event, e.TurnStarted | e.TurnResumed):
            watched = await self._watch(record, session, project, turn)
            if watched is None:
                return []
            self._watched[session] = watched
        if isinstance(event, e.TurnResumed):
            return [translate.resumed(record, watched, await self._text(session, turn))]
        if isinstance(event, e.TurnEnded):
            del self._watched[session]
        return translate.frames(record, watched)

    async def _watch(self, record: Record, session: str, project: str, turn: str) -> Watched | None:
        """At the beginning of a turn, and where a cursor points into the middle of one."""
        event = record.event
        ident = translate.start_of(record, session) or await self._idents.of(session, turn, record.pos)
        try:
            state = (await self._host.get(session)).state
        except NotFound:
            return None
        found = state.turn(turn)
        if found is None:  # cut away by a truncation since
            model = event.message.model if isinstance(event, e.TurnStarted) else None
            return Watched(project, turn, ident, model or state.model)
        if isinstance(event, e.TurnStarted):
            return Watched(project, turn, ident, event.message.model or state.model)
        return Watched.of(project, ident, state.model, found)

    async def _text(self, session: str, turn: str) -> str:
        found = (await self._host.get(session)).state.turn(turn)
        return found.message.text if found is not None else ""


# -- compression -----------------------------------------------------------------------------------------------


def accepts_gzip(request: Request) -> bool:
    for each in request.headers.get("accept-encoding", "").split(","):
        name, *parameters = each.replace(" ", "").split(";")
        if name == "gzip":
            return "q=0" not in parameters
    return False


def compressing(send: Send) -> Send:
    """Each piece is flushed: what was sent can be read at once."""
    packer = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS | 16)

    async def packed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [each for each in message["headers"] if each[0].lower() != b"content-length"]
            message = {
                **message,
                "headers": [*headers, (b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")],
            }
        elif message["type"] == "http.response.body":
            more = message.get("more_body", False)
            body = packer.compress(message.get("body", b"")) + packer.flush(
                zlib.Z_SYNC_FLUSH if more else zlib.Z_FINISH
            )
            message = {**message, "body": body}
        await send(message)

    return packed
