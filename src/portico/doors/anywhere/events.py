"""`GET /events`: the events of the projects, as server-sent events from a cursor."""

import re
import zlib
from collections.abc import AsyncGenerator

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from portico import limits
from portico.doors.anywhere import translate
from portico.doors.anywhere.identity import Idents
from portico.doors.anywhere.translate import Watched
from portico.features.people.view import View
from portico.features.projects.projects import Projects
from portico.kernel import events as e
from portico.kernel.errors import NotFound
from portico.kernel.events import Record
from portico.kernel.log.log import Log
from portico.kernel.state import TextPart
from portico.server.app import App
from portico.server.cursor import read_cursor
from portico.server.stream import send_events


def stream(app: App, projects: Projects, idents: Idents) -> ASGIApp:
    async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        await projects.ready()
        named = request.query_params.get("session")
        project = projects.get(named).id if named else None
        after, skip = cursor(request, app.host.log)
        if accepts_gzip(request):
            send = compressing(send)
        reader = EventReader(app, projects, idents, project, app.view(request))
        await send_events(receive, send, reader.frames(after, skip))

    return asgi


def cursor(request: Request, log: Log) -> tuple[int, int]:
    """Read the cursor from `Last-Event-ID` or `?after=`: a position, or `POSITION-N` after the N-th frame of a record.
    Without a cursor, the stream starts with the next event."""
    text = request.headers.get("last-event-id") or request.query_params.get("after")
    if text is None:
        return log.seq, 0
    number, pieces = read_cursor(text, log, log.seq)
    return (number - 1, pieces) if pieces else (number, 0)


class EventReader:
    """The event stream of one client. It follows the sessions of its projects, including new ones."""

    def __init__(self, app: App, projects: Projects, idents: Idents, project: str | None, view: View) -> None:
        self._host = app.host
        self._projects = projects
        self._idents = idents
        self._project = project
        self._view = view
        self._epoch = app.host.log.epoch.encode()
        self._watched: dict[str, Watched] = {}
        self._after = 0
        self._last: dict[str, tuple[int, int]] = {}
        """By session: the position and seq of its last record in the stream."""
        self._gaps: dict[str, int] = {}
        """By session: the seq after which compacted records are missing and not yet restored."""

    async def frames(self, after: int, skip: int) -> AsyncGenerator[bytes, None]:
        """Yield whole frames. `skip` frames of the first record were already seen. Empty: none was for this reader."""
        self._after = after
        follower = self._projects.follower(self._project)
        timeout = limits.HEARTBEAT_SECONDS
        async for records in self._host.log.follow(after=after, follower=follower, timeout=timeout):
            pieces: list[bytes] = []
            for record in records:
                if not record.channel.startswith("session/"):
                    continue
                found = await self._frames(record)
                pieces += found[skip:] if skip and _first_id(found) == after + 1 else found
            yield b"".join([self._with_epoch(piece) for piece in pieces])

    def _with_epoch(self, frame: bytes) -> bytes:
        """Add the epoch of the log to the id of the frame, which is a cursor."""
        ident, rest = frame.split(b"\n", 1)
        return b"%b.%b\n%b" % (ident, self._epoch, rest)

    async def _frames(self, record: Record) -> list[bytes]:
        session = record.channel[8:]
        project = self._projects.of_session(session)
        if project is None or (self._project is not None and project != self._project):
            return []
        if not self._view.sees(record.channel):
            return []
        self._pass(record, session)
        event = record.event
        if isinstance(event, e.QueueRemoved):
            return [translate.removed(record, project, session)]
        if isinstance(event, e.ClientKept):
            return translate.drafted(record, project, session)
        turn = getattr(event, "turn", None)
        if not isinstance(turn, str):
            return []
        watched = self._watched.get(session)
        if watched is None or watched.turn != turn or isinstance(event, e.TurnStarted | e.TurnResumed):
            watched = await self._watch(record, session, project, turn)
            if watched is None:
                return []
            self._watched[session] = watched
        missing = await self._missing(record, session, watched)
        if isinstance(event, e.TurnResumed):
            return [translate.resumed(record, watched, await self._text(session, turn))]
        if isinstance(event, e.TurnEnded):
            del self._watched[session]
        return missing + translate.frames(record, watched)

    def _pass(self, record: Record, session: str) -> None:
        """Record a gap in the positions: it means that records were compacted away."""
        pos, seq = self._last.get(session, (0, self._after))
        if pos != record.pos - 1:
            self._gaps.setdefault(session, seq)
        self._last[session] = (record.pos, record.seq)

    async def _missing(self, record: Record, session: str, watched: Watched) -> list[bytes]:
        """Return the text that was compacted away between the last seen record and this one."""
        seq, event = self._gaps.pop(session, None), record.event
        if seq is None or isinstance(event, e.TurnStarted | e.TurnResumed):
            return []
        turn = (await self._host.get(session)).state.turn(watched.turn)
        parts = [part for part in turn.parts if isinstance(part, TextPart)] if turn is not None else []
        if isinstance(event, e.PartDelta | e.PartEnded):
            parts = [part for part in parts if part.id == event.part]
        found: list[bytes] = []
        for part in parts:
            trail = await self._host.log.compacted_offsets(record.channel, part.id)
            found += translate.compacted(part.id, part.text, trail, seq, record.seq, watched)
            if any(seq < each < record.seq for each, _ in trail):
                watched.fresh.discard(part.id)
        return found

    async def _watch(self, record: Record, session: str, project: str, turn: str) -> Watched | None:
        """Called at the start of a turn, and if a cursor points into the middle of one."""
        event = record.event
        ident = translate.start_of(record, session) or await self._idents.of(session, turn, record.pos)
        try:
            state = (await self._host.get(session)).state
        except NotFound:
            return None
        found = state.turn(turn)
        if found is None:  # removed by a later truncation
            model = event.message.model if isinstance(event, e.TurnStarted) else None
            return Watched(project, turn, ident, model or state.model)
        if isinstance(event, e.TurnStarted):
            return Watched(project, turn, ident, event.message.model or state.model)
        return Watched.of(project, ident, state.model, found)

    async def _text(self, session: str, turn: str) -> str:
        found = (await self._host.get(session)).state.turn(turn)
        return found.message.text if found is not None else ""


def _first_id(frames: list[bytes]) -> int:
    """Return the position in the id of the first frame; 0 without a frame."""
    found = re.match(rb"id: (\d+)", frames[0]) if frames else None
    return int(found[1]) if found is not None else 0


# -- compression -----------------------------------------------------------------------------------------------


def accepts_gzip(request: Request) -> bool:
    said: dict[str, bool] = {}
    for each in request.headers.get("accept-encoding", "").lower().replace(" ", "").split(","):
        name, *parameters = each.split(";")
        said[name] = not any(parameter.rstrip("0.") == "q=" for parameter in parameters)  # q=0, q=0.000
    return said.get("gzip", said.get("*", False))


def compressing(send: Send) -> Send:
    """Compress the body. Each piece is flushed, so the client can decode it immediately."""
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
