"""Sessions that an editor makes when somebody merely picks an agent: no list shows them before their first message, and
they go when nobody is there to send one.
"""

import asyncio
import contextlib
from typing import TYPE_CHECKING

from portico.doors.ahp.view.targets import Target
from portico.errors import NotFound

if TYPE_CHECKING:
    from portico.doors.ahp.connection.broker import Broker

GRACE_SECONDS = 30.0
"""How long a draft waits for its client to come back, as other hosts do it."""


class Drafts:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._waiting: set[str] = set()

    def look(self) -> None:
        """Also at those that a restart has left behind: their clients may be on their way back."""
        for session in self._broker.host.catalogue:
            if session.summary.draft:
                self.left(session.id)

    def left(self, ident: str) -> None:
        """Somebody does not listen to this session any more."""
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
                await self._broker.host.delete(ident, by="host")

    def _is_unused(self, ident: str) -> bool:
        """Nothing was said in it, nobody listens to it, and who has made it is not there."""
        session = self._broker.host.find(ident)
        if session is None or not session.summary.draft:
            return False
        heard = any(self._broker.hearers(Target(kind, ident)) for kind in ("session", "chat", "seed"))
        return not heard and session.summary.by.removeprefix("client:") not in self._broker.clients
