"""The catalogue of sessions, by id and by the name that a client gave. It is read at start, and what a crash left open
is closed. An id is never reused, also not after a deletion. A session that is
not in use is only a summary in memory."""

import asyncio
import sys
import time
import weakref
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec

from portico.kernel import events as e
from portico.kernel import limits
from portico.kernel.closing import closing
from portico.kernel.errors import AlreadyExists, LogUnavailable, RateLimited
from portico.kernel.events import HOST, ErrorInfo, Record, number_of
from portico.kernel.session import SUMMARY, Session
from portico.kernel.state import SessionState, Summary

if TYPE_CHECKING:
    from portico.kernel.host import Host

_MODIFIED = attrgetter("modified")
_DELETED = "deleted"
_BEGUN, _DONE = b"begun", b"done"
"""A deletion has two steps; after a crash between them the next start completes it."""
_PLAIN = Summary("", "", "", "", "", "idle", 0, 0, 0)
"""Most summaries have its values. One object serves for all, because no code changes a summary."""
_PLAIN_FIELDS = ("chat_flags", "usage", "changes", "folders", "model_config", "chat_order", "shares", "features")


class Catalogue:
    def __init__(self, host: "Host") -> None:
        self._host = host
        self._log = host.log
        self._sessions: dict[str, Session] = {}
        """The sessions in use."""
        self._stored: dict[str, Summary | None] = {}
        """All sessions, oldest first, with the summaries of those not in use."""
        self._released = weakref.WeakValueDictionary[str, Session]()
        """Sessions that are no longer in use, as long as something refers to them: there is one object per session."""
        self._by_uri: dict[str, str] = {}
        self._uri_of: dict[str, str] = {}
        self._below: dict[str, dict[str, None]] = {}
        """The children of each session, oldest first."""
        self.parent_of: dict[str, str] = {}
        self._next = 1
        self._creating = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._stored)

    def live(self) -> Sequence[Session]:
        """Return the sessions in use, in no order."""
        return tuple(self._sessions.values())

    def summaries(self) -> Sequence[Summary]:
        """Return the summaries of all sessions, oldest first."""
        return [each or self._sessions[ident].summary for ident, each in self._stored.items()]

    def in_use(self, ident: str) -> Session | None:
        """Find a session that is in memory by its id or name."""
        return self._sessions.get(ident) or self._sessions.get(self._by_uri.get(ident, ""))

    def get(self, ident: str) -> Session | None:
        """Find a session by its id only, and have it in use for a while."""
        session = self._sessions.get(ident)
        if session is None and (stored := self._stored.get(ident)) is not None:
            session = self._released.pop(ident, None) or Session(self._host, ident, None, stored)
            self._sessions[ident], self._stored[ident] = session, None
        return session

    def find(self, ident: str) -> Session | None:
        """Find a session by its id or the name that a client gave it."""
        return self._sessions.get(ident) or self.get(ident) or self.get(self._by_uri.get(ident, ""))

    def summary(self, ident: str) -> Summary | None:
        """Find the summary of a session by its id or the name that a client gave it."""
        ident = ident if ident in self._stored else self._by_uri.get(ident, "")
        session = self._sessions.get(ident)
        return session.summary if session is not None else self._stored.get(ident)

    def release(self) -> None:
        """Keep only the summaries of sessions that are not in use."""
        for session in self.live():
            if session.unload():
                self._stored[session.id] = _shared(session.summary)
                self._released[session.id] = self._sessions.pop(session.id)

    def root(self, session: Session) -> Session:
        """Return the root of the family: the session itself if it has no parent."""
        top = self.root_of(session.summary).id
        return session if top == session.id else self.get(top) or session

    def root_of(self, summary: Summary) -> Summary:
        while summary.parent is not None and (above := self.summary(summary.parent)) is not None:
            summary = above
        return summary

    def descendants(self, root: str) -> list[Summary]:
        """Return all descendants, oldest first."""
        found: list[Summary] = []
        todo = [root]
        while todo:
            below = self.children(todo.pop())
            found += below
            todo += [each.id for each in below]
        return sorted(found, key=_age)

    def children(self, ident: str) -> Sequence[Summary]:
        return [summary for each in self._below.get(ident, ()) if (summary := self.summary(each)) is not None]

    def place(self, summary: Summary) -> None:
        """After every change of a summary: below its parent."""
        parent, before = summary.parent, self.parent_of.get(summary.id)
        if parent == before:
            return
        self._unplace(summary.id)
        if parent is not None and summary.id in self._stored:
            self._below.setdefault(parent, {})[summary.id] = None
            self.parent_of[summary.id] = parent

    def _unplace(self, ident: str) -> None:
        before = self.parent_of.pop(ident, None)
        if before is not None:
            self._below[before].pop(ident, None)
            if not self._below[before]:
                del self._below[before]

    def list(
        self, *, archived: bool | None = None, parent: str | None = None, children: bool = True, drafts: bool = False
    ) -> list[Summary]:
        """Newest first; of several that changed in the same millisecond, the last started. No drafts by default."""
        found = [
            summary
            for summary in reversed(self.summaries())
            if (archived is None or summary.archived is archived)
            and (parent is None or summary.parent == parent)
            and (children or summary.parent is None)
            and (drafts or not summary.draft)
        ]
        return sorted(found, key=_MODIFIED, reverse=True)  # stable, so equal ones stay as they came

    # -- at the start ------------------------------------------------------------------------------------------

    async def read(self) -> None:
        summaries = await self._log.list_kv(SUMMARY)
        deleted = await self._log.list_kv(_DELETED)
        decoder = msgspec.json.Decoder(Summary)
        for channel in self._log.channels("session/"):
            ident = channel.removeprefix("session/")
            self._next = max(self._next, number_of(ident) + 1)
            if channel in deleted:
                if deleted[channel] != _DONE:
                    await self.erase(channel)  # a kill between the two steps of a deletion
                continue
            if data := summaries.get(channel):
                self._add(ident, _shared(decoder.decode(data)))
            else:
                session = Session(self._host, ident, None)
                await session.load()
                if not session.state.agent and not await self._log.read(channel, 0, 1):
                    # Nothing of it is left: a kill at the last step of a deletion.
                    await self.erase(channel)
                    continue
                session.refresh_summary()
                self._add(ident, session.summary, session)
        self._next += self._log.identity.lost  # ids of lost sessions are not reused either

    async def recover(self) -> None:
        """Close what a crash left open. Sessions that run on other hosts are loaded, so lists show their status."""
        owns, open_ones = self._host.members.owns, [each.id for each in self.summaries() if self._is_open(each)]
        found = [session for ident in open_ones if (session := self.get(ident)) is not None]
        await asyncio.gather(*(session.follow() for session in found if not owns(session.channel)))
        await self.close_open(session for session in found if owns(session.channel))

    async def close_open(self, sessions: Iterable[Session]) -> None:
        """Close what the previous host of these sessions left open."""
        for session in sessions:
            if self._is_open(session.summary):
                await _close_open(session)

    def _is_open(self, of: Summary) -> bool:
        """Whether something was left open in a session. Its summary may be older than its events."""
        return of.status in ("running", "waiting") or of.queued > 0 or of.pos != self._log.head(f"session/{of.id}")

    # -- adding and removing sessions --------------------------------------------------------------------------

    def new_id(self) -> str:
        number = self._host.members.number_after(self._next - 1)
        self._next = number + 1
        return f"session-{number}"

    def adopt(self, channel: str, records: Sequence[Record]) -> Session | None:
        """Add a session that another host has started."""
        if records[0].pos != 1 or self._host.members.owns(channel):
            return None
        session = Session(self._host, channel.removeprefix("session/"), SessionState(channel.removeprefix("session/")))
        self._sessions[session.id], self._stored[session.id] = session, None
        if isinstance(records[0].event, e.SessionStarted):
            self._name(session.id, records[0].event.uri)
        return session

    async def reserve(self, ident: str, uri: str | None) -> Session:
        """Reserve the id and the name of a session before its first event is written."""
        async with self._creating:
            if uri is not None and uri in self._by_uri:
                raise AlreadyExists(f"There is a session {uri!r} already.")
            if len(self) >= limits.SESSIONS:
                raise RateLimited(f"There are {limits.SESSIONS} sessions; delete some.")
            session = Session(self._host, ident, SessionState(ident))
            session.used_at = time.monotonic()
            self._add(ident, session.summary, session)
            self._name(ident, uri)
            return session

    async def remove(self, session: Session, by: str) -> None:
        """Remove the session from the catalogue: the first step of a deletion. `erase` is the second."""
        self._log.put_kv(session.channel, _DELETED, _BEGUN)
        try:
            await self._log.append(HOST, e.SessionRemoved(session=session.id, by=by))
        except LogUnavailable:
            self._log.put_kv(session.channel, _DELETED, None)
            raise
        self.forget(session)

    async def erase(self, channel: str) -> None:
        """Delete the events and notes of a deleted session, and record that this is done."""
        await self._log.delete(channel)
        self._log.put_kv(channel, _DELETED, _DONE)

    def forget(self, session: Session) -> None:
        self._host.ownership.forget(session)
        for known in (self._sessions, self._stored, self._released):
            known.pop(session.id, None)
        self._unplace(session.id)
        if (uri := self._uri_of.pop(session.id, None)) is not None:
            self._by_uri.pop(uri, None)

    def _add(self, ident: str, summary: Summary, session: Session | None = None) -> None:
        self._stored[ident] = summary if session is None else None
        if session is not None:
            self._sessions[ident] = session
        self._name(ident, summary.uri)
        self.place(summary)

    def _name(self, ident: str, uri: str | None) -> None:
        if uri is not None:
            self._by_uri[uri], self._uri_of[ident] = ident, uri


def _shared(summary: Summary) -> Summary:
    """Share equal values with the other summaries: they are half of the memory of a stored session."""
    for name in ("agent", "model", "cwd", "status", "by", "owner"):
        setattr(summary, name, sys.intern(getattr(summary, name)))
    for name in _PLAIN_FIELDS:
        if getattr(summary, name) == (value := getattr(_PLAIN, name)):
            setattr(summary, name, value)
    return summary


def _age(summary: Summary) -> tuple[int, int]:
    return summary.created, number_of(summary.id)


async def _close_open(session: Session) -> None:
    """Close everything open in the session and hold its queue for a person. Takes the lock: commands of other hosts may
    already arrive, and a turn that they started here must not be closed."""
    async with session.lock:
        await session.load()
        state = session.state
        session.refresh_summary()
        if session.running is not None and state.active is not None and session.running.id == state.active.id:
            return
        if state.active is not None and state.active.question is not None:
            session.adopt(state.active.id, state.active.message)  # its question is still open
            return
        if state.active is not None:
            resumed = await session.host.spending.held_at_start(session, state.active.id)
            if resumed is not None:
                session.begin(state.active.id, state.active.message, resumed=resumed)
                return
        if events := _ends(session, state):
            await session.append(*events)


def _ends(session: Session, state: SessionState) -> list[e.Event]:
    events: list[e.Event] = []
    if state.active is not None:
        session.captures.recover(state.active.id)
        error = ErrorInfo("interrupted", "The host ended in the middle of this turn.")
        end = e.TurnEnded(turn=state.active.id, outcome="interrupted", error=error, by="host")
        events = [*closing(state, "interrupted", "host"), end]
    if state.queue and not state.queue_held:
        events.append(e.QueueHeld(held=True, by="host"))
    return events
