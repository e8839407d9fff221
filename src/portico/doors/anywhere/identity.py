"""The id of a message: returned by `/message` and contained in every event that belongs to it.

It is `SESSION.TURN`, or `SESSION.QUEUED` if the message was queued first: then only the event that started its turn
contains both. A turn that is resumed after its end is a new run with a separate id (`SESSION.TURN~POSITION`), so that
every id has exactly one `done`.
"""

from bisect import bisect_right

from portico.kernel import limits
from portico.kernel.cache import Cache
from portico.kernel.errors import NotFound
from portico.kernel.events import Event, TurnResumed, TurnStarted
from portico.kernel.host import Host

SESSIONS_MAX = 1_000
"""Cache size in sessions. The runs of other sessions are read from the log again."""
_SIGNS = (b'"turn.started"', b'"turn.resumed"')


def begun(session: str, pos: int, event: TurnStarted | TurnResumed) -> str:
    if isinstance(event, TurnResumed):
        return f"{session}.{event.turn}~{pos}"
    return f"{session}.{event.pending or event.turn}"


def session_of(ident: str) -> str:
    session, _, local = ident.rpartition(".")
    if not session or not local:
        raise NotFound("message", ident)
    return session


class _Runs:
    """The runs of one session, by turn: their start positions and ids."""

    def __init__(self) -> None:
        self.read = 0
        self.starts: dict[str, list[tuple[int, str]]] = {}

    def note(self, session: str, pos: int, event: Event) -> None:
        if isinstance(event, TurnStarted | TurnResumed):
            starts = self.starts.setdefault(event.turn, [])
            if all(at != pos for at, _ in starts):
                starts.append((pos, begun(session, pos, event)))


class Idents:
    """The message ids of turns, read from the log once and then updated."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._runs = Cache[str, _Runs](SESSIONS_MAX)

    async def of(self, session: str, turn: str, pos: int | None = None) -> str:
        """Return the id of the run of `turn` that was active at `pos` (the latest if None)."""
        starts = (await self._catch_up(session)).starts.get(turn, [])
        index = len(starts) if pos is None else bisect_right(starts, pos, key=lambda start: start[0])
        return starts[index - 1][1] if index else f"{session}.{turn}"

    async def turn(self, ident: str) -> tuple[str, str | None]:
        """Return the session and turn of a message; None while it is queued or if it never started."""
        session = session_of(ident)
        if not self._host.has(session):
            raise NotFound("message", ident)
        for turn, starts in (await self._catch_up(session)).starts.items():
            if any(each == ident for _, each in starts):
                return session, turn
        return session, None

    async def _catch_up(self, session: str) -> "_Runs":
        channel = f"session/{session}"
        runs = self._runs[session] = self._runs.get(session) or _Runs()
        after = runs.read
        while after < self._host.log.head(channel):
            records = await self._host.log.read(channel, after, limits.READ_EVENTS)
            if not records:
                break
            for record in records:
                if any(sign in record.data for sign in _SIGNS):
                    runs.note(session, record.pos, record.event)
            after = records[-1].pos
        runs.read = max(after, runs.read)
        return runs
