"""Messages that wait on the server, visible and editable from every door. Queue and steer are two verbs."""

from typing import TYPE_CHECKING

from portico import events as e
from portico import limits
from portico.errors import Conflict, NotFound
from portico.events import Message, PendingKind

if TYPE_CHECKING:
    from portico.host.session import Session
    from portico.host.state import PendingState


class Queue:
    def __init__(self, session: "Session") -> None:
        self._session = session

    async def add(self, message: Message, *, by: str, kind: PendingKind = "queue", id: str | None = None) -> str:
        """Queues (or offers for steering) without starting anything; an idle session starts with `release`."""
        from portico.host.session import check_message

        check_message(message)
        async with self._session.lock:
            return await self.add_locked(message, kind, by, id)

    async def add_locked(self, message: Message, kind: PendingKind, by: str, id: str | None = None) -> str:
        session = self._session
        session.check_open()
        if len(session.state.queue) >= limits.QUEUE_LENGTH:
            raise Conflict(f"The queue of {session.id!r} is full ({limits.QUEUE_LENGTH} messages).")
        if id is not None and session.state.pending(id) is not None:
            raise Conflict(f"There is a queued message {id!r} already.")
        ident = id or session.new_id("m")
        await session.append(e.QueueAdded(pending=ident, kind=kind, message=message, by=by))
        return ident

    async def edit(self, ident: str, message: Message, *, by: str) -> None:
        from portico.host.session import check_message

        check_message(message)
        async with self._session.lock:
            kind = self._get(ident).kind
            await self._session.append(e.QueueEdited(pending=ident, message=message, by=by, kind=kind))

    async def reorder(self, order: list[str], *, by: str, strict: bool = False) -> None:
        """Named messages first, the others keep their order behind. Unknown names are ignored, or refused if `strict`:
        an editor may name one that has just become a turn."""
        async with self._session.lock:
            for ident in order if strict else ():
                self._get(ident)
            await self._session.append(e.QueueReordered(order=order, by=by))

    async def remove(self, ident: str, *, by: str) -> None:
        async with self._session.lock:
            kind = self._get(ident).kind
            await self._session.append(e.QueueRemoved(pending=ident, by=by, kind=kind))

    async def steer(self, message: Message, *, by: str, id: str | None = None) -> bool:
        """Into the running turn if the agent takes it (True), else to the head of the queue (False)."""
        from portico.host.session import check_message

        check_message(message)
        async with self._session.lock:
            taken = await self._offer(await self.add_locked(message, "steer", by, id), by)
        return await self._steered(taken, by)

    async def steer_now(self, ident: str, *, by: str) -> bool:
        """Offers a waiting message to the running agent. False: it stays queued, as the next one."""
        async with self._session.lock:
            self._get(ident)
            taken = await self._offer(ident, by)
        return await self._steered(taken, by)

    async def _offer(self, ident: str, by: str) -> bool:
        session = self._session
        pending = self._get(ident)
        if await session.runner.steer(pending.message):
            await session.append(e.QueueRemoved(pending=ident, by=by, reason="steered", kind=pending.kind))
            return True
        others = [each.id for each in session.state.queue if each.id != ident]
        await session.append(e.QueueReordered(order=[ident, *others], by=by))
        return False

    async def _steered(self, taken: bool, by: str) -> bool:
        if not taken:
            await self.release(by=by)
        return taken

    async def release(self, *, by: str) -> None:
        """Lets a held queue go on; starts the next message if nothing runs."""
        session = self._session
        if session.state.queue_held:
            async with session.lock:
                await session.append(e.QueueHeld(held=False, by=by))
        await session.go_on()

    def _get(self, ident: str) -> "PendingState":
        pending = self._session.state.pending(ident)
        if pending is None:
            raise NotFound("queued message", ident)
        return pending
