"""The list that people leave open: one row per session with what it does now, and which rows have changed since.

It lives in memory and follows the host's watchers; after a restart nothing runs but what other hosts run, and that is
read from the log.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from portico import limits
from portico.features.board.activity import NO_ANSWER_YET, Waiting, activity, queued, waiting_of
from portico.features.people.view import View
from portico.kernel.events import Record
from portico.kernel.feature import Feature, receive, receive_summaries
from portico.kernel.host import Host
from portico.kernel.state import Approval, CallPart, QuestionPart, Summary
from portico.workspace.git import in_work_tree

_MOVED = 20_000
"""Changes that are remembered, some 100 bytes each: a reader is at most some seconds behind."""


class BoardRow(Struct, omit_defaults=True):
    session: Summary
    activity: str = ""
    """What it does now; empty when nothing runs."""
    since: int = 0
    """When that began: milliseconds since the epoch."""
    waiting: list[Waiting] = []
    queued: bool = False
    """Its turn waits for a place among the agents' processes; it has not begun."""
    after: str = ""
    """The session that it starts after, where that is certain."""
    uncounted: bool = False
    """Its changed files are unknown: its folder is in no git repository."""


class PendingRequest(Struct, omit_defaults=True):
    """Something that waits for a person, with all that the answer needs."""

    id: str
    session: str
    title: str
    agent: str
    cwd: str
    turn: str
    since: int
    text: str
    by: str = ""
    """Who began the session: `task:ID` for one of a job."""
    call: CallPart | None = None
    approval: Approval | None = None
    question: QuestionPart | None = None


class InterruptedSession(Struct, omit_defaults=True):
    """A session whose turn ended with the host. It waits for a person to resume it."""

    session: str
    title: str
    agent: str
    cwd: str
    since: int
    """When the host recorded the interruption: milliseconds since the epoch."""
    by: str = ""
    """Who began the session."""


class BoardPart(NamedTuple):
    rows: list[BoardRow]
    left: list[Summary]
    """Older ones that are not among the rows."""
    before: int
    """Where they begin; 0: there are none."""

    def by_day(self, days: Sequence[int]) -> list[int]:
        """How many rows those left out will be: since each of these times, newest first, and before them all. Helpers
        and the sessions of a job are in the row of their parent."""
        own = [each.modified for each in self.left if not each.by.startswith("task:") and not _is_helper(each)]
        since = [sum(time >= day for time in own) for day in days]
        return [now - before for now, before in zip([*since, len(own)], [0, *since], strict=True)]


class Changed(Struct):
    version: int
    rows: list[BoardRow]
    removed: list[str]
    jobs: list[str]
    """Jobs that have moved on."""


def _is_helper(summary: Summary) -> bool:
    return summary.origin is not None and summary.origin.kind == "agent"


def _is_called(summary: Summary, words: Sequence[str]) -> bool:
    name = " ".join((summary.title, summary.agent, summary.model or "", summary.cwd, summary.id)).lower()
    return all(word in name for word in words)


class Board(Feature):
    name = "board"

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._host = host
        self.version = 0
        self._moved: dict[str, int] = {}
        """Sessions and jobs by the version in which they last changed, the newest at the end; gone sessions stay, as
        removed."""
        self._doing: dict[str, tuple[str, int]] = {}
        self._asked: dict[str, dict[str, int]] = {}
        """By session: since when each request waits."""
        self._queue: dict[str, None] = {}
        """Sessions whose turn waits for a place, the first come first."""
        self._bell = asyncio.Event()

    # -- following ---------------------------------------------------------------------------------------------

    @receive(channel="job")
    def _job_changed(self, record: Record) -> None:
        self._touch(record.channel)

    @receive_summaries
    def _changed(self, ident: str, summary: Summary | None) -> None:
        session = self._host.catalogue.in_use(ident)
        state = session.state if session is not None and session.loaded else None
        if summary is None or session is None or (state is not None and state.active is None):
            self._doing.pop(ident, None)
            self._asked.pop(ident, None)
            if ident in self._queue:
                self._queued(ident, False)
        elif state is not None and not state.turns[-1].parts:  # the turn has just started
            self._doing[ident] = (NO_ANSWER_YET, summary.modified)
        elif state is not None:
            waiting = waiting_of(state)
            doing = activity(state, waiting)
            if self._doing.get(ident, ("", 0))[0] != doing:
                self._doing[ident] = (doing, summary.modified)  # the log's time, which all hosts share
            before = self._asked.pop(ident, {})
            if waiting:
                self._asked[ident] = {each.id: before.get(each.id, summary.modified) for each in waiting}
            self._queued(ident, queued(state))
        self._touch(ident)

    def _queued(self, ident: str, waits: bool) -> None:
        """What one leaves or joins changes what the others start after."""
        if waits == (ident in self._queue):
            return
        if waits:
            self._queue[ident] = None
        else:
            del self._queue[ident]
        for each in self._queue:
            self._touch(each)

    def _touch(self, name: str) -> None:
        self.version += 1
        self._moved.pop(name, None)
        self._moved[name] = self.version
        if len(self._moved) > _MOVED:
            del self._moved[next(iter(self._moved))]
        self._bell.set()  # wake the waiting readers
        self._bell.clear()

    async def wait(self, version: int) -> None:
        """Wait until something has changed since this version."""
        while self.version <= version:
            await self._bell.wait()

    # -- reading -----------------------------------------------------------------------------------------------

    def row(self, summary: Summary, view: View) -> BoardRow:
        session = self._host.catalogue.in_use(summary.id)
        if session is None or not session.loaded or session.state.active is None:
            return BoardRow(summary, uncounted=not summary.changes and not in_work_tree(Path(summary.cwd)))
        waiting, waits = waiting_of(session.state), queued(session.state)
        doing, since = self._doing.get(summary.id) or (activity(session.state, waiting), summary.modified)
        after = self._before(summary.id) if waits and not self._host.members.several else ""
        return BoardRow(summary, doing, since, waiting, waits, after if view.has(after) else "")

    def _before(self, ident: str) -> str:
        """The session that this one starts after; empty if uncertain. Places are assigned in queue order; the first in
        the queue gets the place of the running session that ends first."""
        ahead = list(self._queue)
        if ident in ahead[1:]:
            return ahead[ahead.index(ident) - 1]
        running = [turn.session.id for turn in self._host.turns.values() if turn.session.id not in self._queue]
        return running[0] if len(running) == 1 else ""

    def page(
        self, view: View, limit: int, before: int | None = None, *, archived: bool = False, words: Sequence[str] = ()
    ) -> BoardPart:
        """All active sessions, and the newest `limit` others. With `before`, the newest of those that changed before
        that time; with `words`, the newest whose names match."""
        found = view.list(archived=archived)
        if words:
            found = [each for each in found if _is_called(each, words)]
        if before is not None:
            found = [each for each in found if each.modified < before]
        end = limit
        while end < len(found) and found[end].modified == found[end - 1].modified:
            end += 1  # otherwise the next page would miss those of the same millisecond
        rest = found[end:]
        busy = [] if before is not None or words else [each for each in rest if each.status in ("running", "waiting")]
        left = [each for each in rest if each not in busy] if busy else rest
        return BoardPart(
            [self.row(each, view) for each in (*found[:end], *busy)], left, found[end - 1].modified if rest else 0
        )

    def since(self, version: int, view: View) -> Changed:
        """The changes since a version. Sessions that this reader may not see (any more) count as removed."""
        rows: list[BoardRow] = []
        removed: list[str] = []
        jobs: list[str] = []
        for name, moved in reversed(self._moved.items()):
            if moved <= version:
                break
            session = self._host.catalogue.summary(name)
            if name.startswith("job/"):
                jobs += [name.removeprefix("job/")] if view.sees(name) else []
            elif session is None or not view.sees(f"session/{name}"):
                removed.append(name)
            else:
                rows.append(self.row(session, view))
        return Changed(self.version, rows, removed, jobs)

    def inbox(self, view: View) -> list[PendingRequest]:
        """Everything that waits for a person, oldest first."""
        found: list[PendingRequest] = []
        for session in self._host.catalogue.live():
            if session.loaded and session.summary.status == "waiting" and view.sees(session.channel):
                found += self._asked_by(session.summary)
        return sorted(found, key=lambda each: each.since)

    def interrupted(self, view: View) -> list[InterruptedSession]:
        """Sessions whose last turn the host's end interrupted, oldest first. Jobs and agents start their own again."""
        after = self._host.now() - limits.INTERRUPTED_DAYS * 86_400_000
        found = [
            InterruptedSession(each.id, each.title, each.agent, each.cwd, each.last_turn_at, each.by)
            for each in view.list()
            if each.interrupted and each.status == "idle" and not each.archived and each.last_turn_at >= after
            if not each.by.startswith("task:") and not _is_helper(each)
        ]
        return sorted(found, key=lambda each: each.since)

    def _asked_by(self, summary: Summary) -> list[PendingRequest]:
        session = self._host.catalogue.in_use(summary.id)
        turn = session.state.active if session is not None else None
        if session is None or turn is None:
            return []
        since = self._asked.get(summary.id, {})
        found: list[PendingRequest] = []
        for each in waiting_of(session.state):
            asked = PendingRequest(
                id=each.id,
                session=summary.id,
                title=summary.title,
                agent=summary.agent,
                cwd=summary.cwd,
                turn=turn.id,
                since=since.get(each.id, summary.modified),
                text=each.text,
                by=summary.by,
            )
            for part in turn.parts:
                if isinstance(part, QuestionPart) and part.id == each.id:
                    asked.question = part
                elif isinstance(part, CallPart) and part.approval is not None and part.approval.id == each.id:
                    asked.call, asked.approval = part, part.approval
            found.append(asked)
        return found
