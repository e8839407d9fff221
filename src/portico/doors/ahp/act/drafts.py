"""Drafts: sessions that an editor creates as soon as its user picks an agent.

No list contains a draft before its first message. It is deleted when its client has left. Only clients that are known
to create sessions this early get drafts: VS Code and the Copilot CLI. For every other client, `createSession` announces
the session to all clients immediately, as the protocol states.
"""

import asyncio
import contextlib
from typing import TYPE_CHECKING

from portico.doors.ahp.view.targets import Target
from portico.doors.ahp.wire.record import Json
from portico.kernel.commands import Caller, DeleteSession
from portico.kernel.errors import NotFound

if TYPE_CHECKING:
    from portico.doors.ahp.act.client import EditorHub

GRACE_SECONDS = 30.0
"""How long a draft waits for its client to reconnect, as in other hosts."""
_EDITOR = "vscode"
"""Start of `clientInfo.name` in VS Code (`vscode-editor-window`)."""
_COPILOT = "copilot-cli"
"""Start of the `clientId` of the Copilot CLI, which sends no `clientInfo`."""


def expected(params: Json) -> bool:
    """Whether the client that sends `initialize` creates sessions before its user has written anything."""
    about, client_id = params.get("clientInfo"), params.get("clientId")
    name = about.get("name") if isinstance(about, dict) else None
    return any(
        isinstance(value, str) and value.startswith(prefix)
        for value, prefix in ((name, _EDITOR), (client_id, _COPILOT))
    )


class Drafts:
    def __init__(self, broker: "EditorHub") -> None:
        self._broker = broker
        self._waiting: set[str] = set()

    def check(self) -> None:
        """Check all drafts, also those from before a restart, whose clients may reconnect."""
        for session in self._broker.host.summaries():
            if session.draft and session.by.startswith("client:"):  # others expire by their age
                self.left(session.id)

    def left(self, ident: str) -> None:
        """Called when a client unsubscribes from the session or disconnects."""
        if ident not in self._waiting and self._is_unused(ident) and not self._broker.host.stopping:
            self._waiting.add(ident)
            self._broker.host.own(self._expire(ident), f"ahp draft {ident}")

    async def _expire(self, ident: str) -> None:
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            await self._broker.host.clock.wait(never, GRACE_SECONDS)
        finally:
            self._waiting.discard(ident)
        if self._is_unused(ident):
            with contextlib.suppress(NotFound):
                await self._broker.host.do(DeleteSession(session=ident), Caller.inside("host"))

    def _is_unused(self, ident: str) -> bool:
        """No message, no subscriber, and its client is not connected."""
        session = self._broker.host.find(ident)
        if session is None or not session.summary.draft:
            return False
        subscribed = any(self._broker.hearers(Target(kind, ident)) for kind in ("session", "chat", "seed"))
        return not subscribed and session.summary.by.removeprefix("client:") not in self._broker.clients
