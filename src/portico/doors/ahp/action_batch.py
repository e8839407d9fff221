"""Plain facts: actions that become one event each, whatever else is going on.

A client may send thousands of them in a row (a draft changes with every key). Those that come with one read are
appended together, so the disk and the tasks around it are paid for once, and nothing waits for the answer before it.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from portico import events as e
from portico.doors.ahp.client_action import ClientAction
from portico.errors import LogUnavailable, PorticoError
from portico.events import Channel
from portico.host.decide.session import checked_title
from portico.host.draft import DRAFT
from portico.host.session import Session

if TYPE_CHECKING:
    from portico.doors.ahp.connection import Connection

_TOGETHER = 500
"""Facts in one append: they share a commit, and nobody else should wait long for his."""


class ActionBatch:
    """What one client has said and is not in the log yet, in order."""

    __slots__ = ("_appending", "_channel", "_connection", "_name", "_session", "_waiting")

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self._waiting: list[tuple[ClientAction, e.Event]] = []
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

    def add(self, client_action: ClientAction, channel: Channel, event: e.Event) -> None:
        if channel != self._channel or len(self._waiting) >= _TOGETHER:
            self._append()
            self._channel = channel
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._append)  # when all of this read has been heard
        self._waiting.append((client_action, event))

    async def settle(self) -> None:
        self._append()
        if self._appending:
            await asyncio.wait(set(self._appending))

    def _append(self) -> None:
        if self._waiting:
            action_batch, self._waiting = self._waiting, []
            task = self._connection.spawn(self._write(self._channel, action_batch), "facts")
            self._appending.add(task)
            task.add_done_callback(self._appending.discard)

    async def _write(self, channel: Channel, action_batch: list[tuple[ClientAction, e.Event]]) -> None:
        log = self._connection.host.log
        try:
            await log.append(channel, *(event for _, event in action_batch))
        except LogUnavailable as error:
            for client_action, _ in action_batch:
                client_action.refuse(error.message)
        except PorticoError as error:
            if len(action_batch) == 1:
                action_batch[0][0].refuse(error.message)
                return
            for fact in action_batch:  # one of them cannot be written; the others must not suffer for it
                await self._write(channel, [fact])


# -- what each of them says ------------------------------------------------------------------------------------


def _rename(client_action: ClientAction, session: Session) -> e.Event:
    return e.SessionRenamed(title=checked_title(client_action.action["title"]), by=client_action.by)


def _archive(client_action: ClientAction, session: Session) -> e.Event:
    return e.SessionArchived(archived=client_action.action["isArchived"], by=client_action.by)


def _keep_draft(client_action: ClientAction, session: Session) -> e.Event:
    return e.ClientKept(key=DRAFT, value=client_action.action.get("draft"), by=client_action.by)


BATCHED: dict[str, Callable[[ClientAction, Session], e.Event]] = {
    "session/titleChanged": _rename,
    "session/isArchivedChanged": _archive,
    "chat/isArchivedChanged": _archive,
    "chat/draftChanged": _keep_draft,
}
