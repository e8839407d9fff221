"""Messages that wait on the server, visible and editable from every door. Queue and steer are two verbs."""

import asyncio
from typing import TYPE_CHECKING

from portico.kernel import commands as c
from portico.kernel import limits
from portico.kernel.decide import turn as turns
from portico.kernel.errors import AgentError
from portico.kernel.events import Message, PendingKind

if TYPE_CHECKING:
    from portico.kernel.session import Session


class Queue:
    def __init__(self, session: "Session") -> None:
        self._session = session

    async def add(self, message: Message, *, by: str, kind: PendingKind = "queue", id: str | None = None) -> str:
        """Queue a message (or offer it for steering) without starting a turn; `release` starts an idle session."""
        command = c.QueueMessage(session=self._session.id, message=message, kind=kind, pending=id)
        queued: c.Queued = await self._session.do(command, by)
        return queued.pending

    async def remove(self, ident: str, *, by: str) -> None:
        await self._session.do(c.RemoveQueued(session=self._session.id, pending=ident), by)

    async def steer(self, message: Message, *, by: str, id: str | None = None) -> bool:
        """Add a message to the running turn if the agent accepts it (True), else to the head of the queue (False)."""
        return await self.steer_now(await self.add(message, by=by, kind="steer", id=id), by=by)

    async def steer_now(self, ident: str, *, by: str) -> bool:
        """Offer a queued message to the running agent. False: it stays queued, as the next one."""
        offered: c.Offered = await self._session.do(c.SteerQueued(session=self._session.id, pending=ident), by)
        return offered.steered

    async def release(self, *, by: str) -> None:
        """Release a held queue; start the next message if no turn runs."""
        await self._session.do(c.ReleaseQueue(session=self._session.id), by)

    async def offer(self, ident: str, by: str) -> bool:
        """Offer a message to the agent. The lock is not held, so that an agent without answer cannot delay a cancel."""
        session = self._session
        pending = turns.waiting_message(session.state, ident)
        taken = await self._ask_agent(pending.message)
        if taken and session.running is not None:  # it leaves the queue, and must stay visible
            session.running.remark(f"Added during the turn: {pending.message.text}")
        async with session.lock:
            decision = turns.steered(session.state, ident, taken, by)
            if decision.events:
                await session.append(*decision.events)
        if not taken:
            await self.release(by=by)
        return taken

    async def _ask_agent(self, message: Message) -> bool:
        try:
            async with asyncio.timeout(limits.CANCEL_SECONDS):
                return await self._session.runner.steer(message)
        except (TimeoutError, AgentError) as error:
            self._session.host.logger.warning("steering the agent of %s: %r", self._session.id, error)
            return False
