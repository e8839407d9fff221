"""Full-text search over what was said: messages, answers, reasoning, outputs of calls.

There is no index: the log is read as it is, newest sessions first, until there are enough hits or the time is up.
Deltas are passed over, since a part's last event carries its whole text. The answer says when it did not get through.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from portico import events as e
from portico.doors.body import JsonResponse
from portico.doors.house import House
from portico.doors.rest.query import number, numbered
from portico.doors.route import Param, Route, Table
from portico.errors import BadRequest
from portico.events import Event, Record
from portico.host.host import Host

SECONDS = 2.0
"""A person who types waits no longer; what is newer was searched first."""
AROUND = 80
"""Characters shown on each side of what was found."""
LONGEST = 200
"""Characters of a query: a sentence, and no way to make every comparison slow."""

BATCH = 1000
"""Events read and compared in one go, in a thread: streams of others go on in between."""
_DELTAS = (b'{"type":"part.delta"', b'{"type":"tool.input"', b'{"type":"tool.output"')


class Hit(Struct, omit_defaults=True):
    session: str
    pos: int
    time: int
    excerpt: str
    turn: str | None = None


class Found(Struct):
    hits: list[Hit]
    complete: bool
    """Everything was searched, and these are all."""


def table(house: House) -> Table:
    async def search(request: Request) -> Response:
        wanted = request.query_params.get("q", "").strip()
        if not 2 <= len(wanted) <= LONGEST:
            raise BadRequest(f"A search has 2 to {LONGEST} characters.", field="q")
        hits, complete = await find(house.host, wanted, number(request, "limit", 50, 1, 1000))
        return JsonResponse(Found(hits, complete))

    text = Annotated[str, Meta(min_length=2, max_length=LONGEST)]
    query: dict[str, str | Param] = {
        "q": Param("what was said, in any case", text, required=True),
        "limit": numbered("how many; 50", 1, 1000),
    }
    return [
        Route(
            "/v1/search",
            search,
            "read",
            summary="Sessions in which something was said.",
            doc={"answer": Found, "query": query},
        )
    ]


async def find(host: Host, wanted: str, limit: int, seconds: float = SECONDS) -> tuple[list[Hit], bool]:
    """At most one hit for each turn, newest sessions first; and whether everything was searched."""
    hits: list[Hit] = []
    try:
        async with asyncio.timeout(seconds):
            for session in host.list():
                async for hit in _in_session(host, session.id, wanted.casefold()):
                    hits.append(hit)
                    if len(hits) == limit:
                        return hits, False
    except TimeoutError:
        return hits, False
    return hits, True


async def _in_session(host: Host, session: str, wanted: str) -> AsyncIterator[Hit]:
    after = 0
    seen: set[str | None] = set()
    while records := await host.log.read(f"session/{session}", after, BATCH):
        after = records[-1].pos
        for hit in await asyncio.to_thread(lambda batch: list(_hits(session, batch, wanted)), records):
            if hit.turn not in seen:
                seen.add(hit.turn)
                yield hit


def _hits(session: str, records: list[Record], wanted: str) -> Iterator[Hit]:
    for record in records:
        if not record.data.startswith(_DELTAS):
            for turn, text in said(record.event):
                if wanted in text.casefold():
                    yield Hit(session, record.pos, record.time, excerpt(text, wanted), turn)


def said(event: Event) -> Iterator[tuple[str | None, str]]:
    """The texts in an event, each with the turn it belongs to."""
    match event:
        case e.TurnStarted():
            yield event.turn, event.message.text
        case e.PartEnded():
            yield event.turn, event.text
        case e.ToolReady():
            yield event.turn, event.input
        case e.ToolEnded():
            yield event.turn, event.output
        case e.SessionRenamed():
            yield None, event.title
        case e.HistoryCopied():
            for turn in event.turns:
                for holder in (turn.get("message", {}), *turn.get("parts", [])):
                    yield turn.get("id"), str(holder.get("text", ""))


def excerpt(text: str, wanted: str) -> str:
    """One line around the first place. Folding can change lengths, so a place that is off is only a worse cut."""
    at = text.casefold().find(wanted)
    start, end = max(0, at - AROUND), at + len(wanted) + AROUND
    line = " ".join(text[start:end].split())
    return f"{'… ' if start > 0 else ''}{line}{' …' if end < len(text) else ''}"
