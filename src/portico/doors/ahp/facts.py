"""Plain facts: actions that become one event each, whatever else is going on.

A client may send thousands of them in a row (a draft changes with every key). Those that come with one read are
appended together, so the disk and the tasks around it are paid for once, and nothing waits for the answer before it.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from portico import events as e
from portico.doors.ahp import snapshots
from portico.doors.ahp.deed import Deed
from portico.errors import LogUnavailable, PorticoError
from portico.events import Channel
from portico.host.session import Session, checked_title

if TYPE_CHECKING:
    from portico.doors.ahp.connection import Connection

_TOGETHER = 500
"""Facts in one append: they share a commit, and nobody else should wait long for his."""


class Facts:
    """What one client has said and is not in the log yet, in order."""

    __slots__ = ("_appending", "_channel", "_connection", "_name", "_session", "_waiting")

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self._waiting: list[tuple[Deed, e.Event]] = []
        self._channel: Channel = ""
        self._name = ""
        self._session: Session | None = None
        self._appending: set[asyncio.Task[None]] = set()

    def subject(self, name: str) -> Session | None:
        """The session that was last meant by this name. It still is: what a name means never changes while it lives."""
        session = self._session
        if session is None or name != self._name or self._connection.host.find(session.id) is not session:
            return None
        return session

    def remember(self, name: str, session: Session) -> None:
        self._name, self._session = name, session

    def add(self, deed: Deed, channel: Channel, event: e.Event) -> None:
        if channel != self._channel or len(self._waiting) >= _TOGETHER:
            self._append()
            self._channel = channel
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._append)  # when all of this read has been heard
        self._waiting.append((deed, event))

    async def settle(self) -> None:
        self._append()
        if self._appending:
            await asyncio.wait(set(self._appending))

    def _append(self) -> None:
        if self._waiting:
            facts, self._waiting = self._waiting, []
            task = self._connection.spawn(self._write(self._channel, facts), "facts")
            self._appending.add(task)
            task.add_done_callback(self._appending.discard)

    async def _write(self, channel: Channel, facts: list[tuple[Deed, e.Event]]) -> None:
        log = self._connection.host.log
        try:
            await log.append(channel, *(event for _, event in facts))
        except LogUnavailable as error:
            for deed, _ in facts:
                deed.refuse(error.message)
        except PorticoError as error:
            if len(facts) == 1:
                facts[0][0].refuse(error.message)
                return
            for fact in facts:  # one of them cannot be written; the others must not suffer for it
                await self._write(channel, [fact])


# -- what each of them says ------------------------------------------------------------------------------------


def _rename(deed: Deed, session: Session) -> e.Event:
    return e.SessionRenamed(title=checked_title(deed.action["title"]), by=deed.by)


def _archive(deed: Deed, session: Session) -> e.Event:
    return e.SessionArchived(archived=deed.action["isArchived"], by=deed.by)


def _keep_draft(deed: Deed, session: Session) -> e.Event:
    return e.ClientKept(key=snapshots.DRAFT, value=deed.action.get("draft"), by=deed.by)


FACTS: dict[str, Callable[[Deed, Session], e.Event]] = {
    "session/titleChanged": _rename,
    "session/isArchivedChanged": _archive,
    "chat/isArchivedChanged": _archive,
    "chat/draftChanged": _keep_draft,
}
