"""The id of a message: what `/message` answered with, in every event that belongs to it.

It is `SESSION.TURN`, or `SESSION.QUEUED` when it had to wait in the queue first: then only the event that started its
turn knows both. A turn that goes on after its end is a new run with an id of its own (`SESSION.TURN~POSITION`), so that
every id has exactly one `done`.
"""

from bisect import bisect_right

from portico import limits
from portico.errors import NotFound
from portico.events import Event, TurnResumed, TurnStarted
from portico.host.host import Host

_SIGNS = (b'"turn.started"', b'"turn.resumed"')


def begun(session: str, pos: int, event: TurnStarted | TurnResumed) -> str:
    if isinstance(event, TurnResumed):
        return f"{session}.{event.turn}~{pos}"
    return f"{session}.{event.pending or event.turn}"


def was_queued(ident: str) -> bool:
    """Whether the message had to wait first: the host names what waits `m1`, what starts at once `t1`."""
    return ident.rpartition(".")[2].startswith("m")


def session_of(ident: str) -> str:
    session, _, local = ident.rpartition(".")
    if not session or not local:
        raise NotFound("message", ident)
    return session


class Idents:
    """Turns and their message ids, read from the log once and then kept up."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._read: dict[str, int] = {}
        self._starts: dict[tuple[str, str], list[tuple[int, str]]] = {}

    async def of(self, session: str, turn: str, pos: int | None = None) -> str:
        """The id of the run of `turn` that was going on at `pos` (the latest, when None)."""
        await self._catch_up(session)
        starts = self._starts.get((session, turn), [])
        index = len(starts) if pos is None else bisect_right(starts, pos, key=lambda start: start[0])
        return starts[index - 1][1] if index else f"{session}.{turn}"

    async def turn(self, ident: str) -> tuple[str, str | None]:
        """The session and the turn that a message became; None while it waits or when it never was."""
        session = session_of(ident)
        if not self._host.has(session):
            raise NotFound("message", ident)
        await self._catch_up(session)
        for (owner, turn), starts in self._starts.items():
            if owner == session and any(each == ident for _, each in starts):
                return session, turn
        return session, None

    async def _catch_up(self, session: str) -> None:
        channel = f"session/{session}"
        after = self._read.get(session, 0)
        while after < self._host.log.head(channel):
            records = await self._host.log.read(channel, after, limits.READ_EVENTS)
            if not records:
                break
            for record in records:
                if any(sign in record.data for sign in _SIGNS):
                    self._note(session, record.pos, record.event)
            after = records[-1].pos
        self._read[session] = max(after, self._read.get(session, 0))

    def _note(self, session: str, pos: int, event: Event) -> None:
        if isinstance(event, TurnStarted | TurnResumed):
            starts = self._starts.setdefault((session, event.turn), [])
            if all(at != pos for at, _ in starts):
                starts.append((pos, begun(session, pos, event)))
