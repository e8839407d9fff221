"""Plain facts: actions that become one event each, independent of the state of the session.

A client may send thousands of them in a row (a draft changes with every key). Those that arrive in one read are
appended in one batch: one disk write and one task for all, and no action waits for the answer to the previous one.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from portico.doors.ahp.act.client_action import ClientAction
from portico.kernel.commands import ArchiveSession, Command, RenameSession, ShareData
from portico.kernel.errors import PorticoError
from portico.kernel.session import Session
from portico.kernel.state import DRAFT

if TYPE_CHECKING:
    from portico.doors.ahp.act.client import EditorClient

_TOGETHER = 500
"""Maximum of actions in one append: they share a commit, and other writers should not wait long."""


class ActionBatch:
    """Actions of one client that are not in the log yet, in order."""

    __slots__ = ("_appending", "_connection", "_name", "_session", "_subject", "_type", "_waiting")

    def __init__(self, connection: "EditorClient") -> None:
        self._connection = connection
        self._waiting: list[tuple[ClientAction, Command]] = []
        self._subject: Session | None = None
        """The session of the waiting actions."""
        self._type = self._name = ""
        self._session: Session | None = None
        self._appending: set[asyncio.Task[None]] = set()

    def subject(self, said: ClientAction) -> Session | None:
        """The session that the last action with this type and name resolved to. The result is still valid: a name never
        changes its meaning while the session exists."""
        session, connection = self._session, self._connection
        if session is None or said.name != self._name or said.type != self._type:
            return None
        found = connection.host.catalogue.get(session.id) if connection.view.whole else connection.view.find(session.id)
        return session if found is session else None

    def remember(self, said: ClientAction, session: Session) -> None:
        self._type, self._name, self._session = said.type, said.name, session

    def add(self, client_action: ClientAction, session: Session, command: Command) -> None:
        if session is not self._subject or len(self._waiting) >= _TOGETHER:
            self._append()
            self._subject = session
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._append)  # after all frames of this read
        self._waiting.append((client_action, command))

    async def settle(self) -> None:
        self._append()
        if self._appending:
            await asyncio.wait(set(self._appending))

    def _append(self) -> None:
        if self._waiting and self._subject is not None:
            waiting, self._waiting = self._waiting, []
            task = self._connection.spawn(self._write(self._subject, waiting), "actions")
            self._appending.add(task)
            task.add_done_callback(self._appending.discard)

    async def _write(self, session: Session, waiting: list[tuple[ClientAction, Command]]) -> None:
        caller, said = self._connection.as_client, iter(waiting)
        asked = [(command, replace(caller, label=client_action.by)) for client_action, command in waiting]
        async for answer in self._connection.host.do_all(session, asked):
            client_action, _ = next(said)
            if isinstance(answer, PorticoError):
                client_action.refuse(answer.message)


# -- the command of each action --------------------------------------------------------------------------------


def _rename(client_action: ClientAction, session: Session) -> Command:
    return RenameSession(session=session.id, title=client_action.action["title"])


def _archive(client_action: ClientAction, session: Session) -> Command:
    return ArchiveSession(session=session.id, archived=client_action.action["isArchived"], only=client_action.marked)


def _draft(client_action: ClientAction, session: Session) -> Command:
    return ShareData(session=session.id, key=DRAFT, value=client_action.action.get("draft"))


BATCHED: dict[str, Callable[[ClientAction, Session], Command]] = {
    "session/titleChanged": _rename,
    "session/isArchivedChanged": _archive,
    "chat/isArchivedChanged": _archive,
    "chat/draftChanged": _draft,
}
