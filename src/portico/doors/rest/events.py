"""Reads the log from a cursor, as server-sent events or one JSON response; and blobs."""

import re
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from portico import limits
from portico.doors.rest.query import number, numbered
from portico.features.notices.notices import Notices
from portico.features.people.view import View
from portico.kernel import limits as kernel_limits
from portico.kernel.errors import BadRequest, NotFound
from portico.kernel.events import HOST, Audited, Channel, Json, Record, known_events
from portico.kernel.log.log import Log
from portico.server.app import App
from portico.server.cursor import read_cursor
from portico.server.route import Caller, Doc, LaterShape, Param, Route, Table, caller
from portico.server.routes import Routes
from portico.server.stream import beat, send_events

_AFTER = r"^[0-9]{1,18}(\.[0-9a-f]{8})?$"
_CHANNEL = re.compile(r"host|(session|task|job|terminal|automation|run)/[\w.-]+")


def wire(record: Record) -> bytes:
    """Encode a record as JSON, with the event bytes as stored on disk."""
    return b'{"seq":%d,"channel":"%s","pos":%d,"time":%d,"event":%s}' % (
        record.seq,
        record.channel.encode(),
        record.pos,
        record.time,
        record.data,
    )


def _frame_by(log: Log, name: str) -> Callable[[Record], bytes]:
    """Return a function that encodes a record as one server-sent event. Its id is the cursor after the record."""
    number, epoch = attrgetter(name), log.epoch.encode()
    return lambda record: b"id: %d.%b\ndata: %b\n\n" % (number(record), epoch, wire(record))


@cache
def event_page() -> type[Struct]:
    """The shape of a page of events. It is built on demand, because features register their events after this module is
    loaded."""
    record = msgspec.defstruct(
        "EventRecord",
        [("seq", int), ("channel", str), ("pos", int), ("time", int), ("event", known_events())],
        namespace={"__doc__": "An event in its place."},
        module=__name__,
    )
    about = (
        "Events of a channel. `head` is the last position: a cursor at the head has seen everything. `epoch` names the "
        "log: a cursor `POSITION.EPOCH` is refused by another one."
    )
    fields: list[tuple[str, type]] = [("events", list[record]), ("head", int), ("epoch", str)]  # type: ignore[valid-type]
    return msgspec.defstruct("EventPage", fields, namespace={"__doc__": about}, module=__name__)


class AuditPage(Struct):
    audit: list[Json]
    next: int | None
    """Where the following page begins."""


def table(app: App) -> Table:
    host, read = app.host, Routes(app)
    by_pos, by_seq = _frame_by(host.log, "pos"), _frame_by(host.log, "seq")

    async def frames(channels: tuple[Channel, ...], after: int, who: Caller) -> AsyncGenerator[bytes, None]:
        name, make = ("rest.pos", by_pos) if len(channels) == 1 else ("rest.seq", by_seq)
        view = app.view(who)
        with app.features[Notices].viewing(channels):
            async for page in host.log.follow(*channels, after=after, timeout=limits.HEARTBEAT_SECONDS):
                if view.sees_all(page):
                    yield page.form(name, lambda page: b"".join([record.form(name, make) for record in page]))
                elif shown := await view.records(page):
                    yield b"".join([record.form(name, make) for record in shown])
                elif len(channels) == 1 and not view.sees(channels[0]):
                    return  # no longer shared with this caller
                else:
                    yield b""

    def pulse() -> bytes:
        """Return the heartbeat. It contains the reason while the log cannot be written."""
        down = host.log.down
        return beat() if down is None else b": down %s\n\n" % msgspec.json.encode(down.message)

    def stream(channels_of: Callable[[Request], tuple[Channel, ...]]) -> ASGIApp:
        async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
            request = Request(scope, receive)
            channels, who = channels_of(request), caller(request)
            await check_seen(channels, who)
            after = cursor(request, host.log, head(channels))
            if "text/event-stream" not in request.headers.get("accept", ""):
                await (await page(channels, after, request))(scope, receive, send)
                return
            del request  # free memory: there may be thousands of streams that last for days
            await send_events(receive, send, frames(channels, after, who), pulse)

        return asgi

    async def check_seen(channels: tuple[Channel, ...], who: Caller) -> None:
        view = app.view(who)
        for channel in channels:
            if channel != HOST and not await view.open(channel):
                raise NotFound(channel.partition("/")[0], channel.partition("/")[2])
        if not channels:
            view.audit_feed()

    def head(channels: tuple[Channel, ...]) -> int:
        return host.log.head(channels[0]) if len(channels) == 1 else host.log.seq

    async def page(channels: tuple[Channel, ...], after: int, request: Request) -> Response:
        limit = number(request, "limit", 1000, 1, kernel_limits.READ_EVENTS)
        view = app.view(request)
        if len(channels) == 1:
            records = await view.records(await host.log.read(channels[0], after, limit))
        elif channels or view.unfiltered:
            records = await view.records(await host.log.read_all(*channels, after=after, limit=limit))
        else:
            records = await only_seen(after, limit, view)
        return Response(
            b'{"events":[%s],"head":%d,"epoch":"%s"}'
            % (b",".join(wire(record) for record in records), head(channels), host.log.epoch.encode()),
            media_type="application/json",
        )

    async def only_seen(after: int, limit: int, view: View) -> Sequence[Record]:
        """Read until there is a visible record: an empty page means the end of the log."""
        while records := await host.log.read_all(after=after, limit=kernel_limits.READ_EVENTS):
            if shown := await view.records(records):
                return shown[:limit]
            after = records[-1].seq
        return []

    def of_session(request: Request) -> tuple[Channel, ...]:
        ident: str = request.path_params["id"]
        if not host.has(ident):
            raise NotFound("session", ident)
        return (f"session/{ident}",)

    def of_query(request: Request) -> tuple[Channel, ...]:
        channels = tuple(request.query_params.getlist("channel"))
        for channel in channels:
            if not _CHANNEL.fullmatch(channel):
                raise BadRequest(f"{channel!r} is not a channel; for example 'session/session-1'.", field="channel")
            if channel.startswith("terminal/"):
                app.view(request).require("terminals")
        if len(channels) > limits.SUBSCRIPTIONS:
            raise BadRequest(f"At most {limits.SUBSCRIPTIONS} channels.", field="channel")
        return channels

    @read("/v1/blobs/{digest}", "read", "A large output by its hash.", media="application/octet-stream")
    async def blob(request: Request) -> Response:
        data = await app.view(request).blob(request.path_params["digest"])
        return Response(data, media_type="application/octet-stream", headers={"Content-Disposition": "attachment"})

    many = numbered("how many; 1000", 1, kernel_limits.READ_EVENTS)

    @read("/v1/audit", "admin", "The audit record.", query={"after": numbered("a position; 0"), "limit": many})
    async def audit(request: Request) -> AuditPage:
        """One page: as many records as asked for, and at most one read of the log, however many other events lie
        between them. `next` is where the following page begins."""
        after = number(request, "after", 0)
        limit = number(request, "limit", 1000, 1, kernel_limits.READ_EVENTS)
        records = await host.log.read(HOST, after, kernel_limits.READ_EVENTS)
        found = [record for record in records if isinstance(record.event, Audited)]
        last = found[limit - 1].pos if len(found) > limit else records[-1].pos if records else after
        page = [{"time": r.time, "pos": r.pos, **msgspec.to_builtins(r.event)} for r in found[:limit]]
        return AuditPage(page, last if last < host.log.head(HOST) else None)

    followed: Doc = {
        "answer": LaterShape(event_page),
        "media": "text/event-stream",
        "codes": ["cursor_lost"],
        "query": {
            "after": Param("the cursor: `NUMBER` or `NUMBER.EPOCH`; 0", Annotated[str, Meta(pattern=_AFTER)]),
            "limit": numbered("how many in one JSON answer; 1000", 1, kernel_limits.READ_EVENTS),
        },
    }

    def streamed(path: str, summary: str, channels: Callable[[Request], tuple[Channel, ...]], doc: Doc) -> Route:
        return Route(path, None, "read", summary=summary, app=stream(channels), stream=True, doc=doc)

    several: Doc = {**followed, "query": {**followed["query"], "channel": "one or more; without it all"}}
    return [
        streamed("/v1/sessions/{id}/events", "A session's events from a cursor.", of_session, followed),
        streamed("/v1/events", "Events of some or all channels.", of_query, several),
        *read.table,
    ]


def cursor(request: Request, log: Log, head: int) -> int:
    """Read the cursor from `Last-Event-ID` (a reconnecting browser) or `?after=`."""
    text = request.headers.get("last-event-id") or request.query_params.get("after", "0")
    number, pieces = read_cursor(text, log, head)
    if pieces:
        raise BadRequest(f"{text!r} is a cursor of another door.", field="after")
    return number
