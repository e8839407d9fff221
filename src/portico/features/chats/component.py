"""The feature `chats`: moves conversations, pins sessions, changes their agents and drafts."""

import contextlib
from typing import TYPE_CHECKING

from msgspec import Struct

from portico.features.chats import agent, draft  # noqa: F401  # set the columns of `session.agent` and `draft.set`
from portico.features.chats.commands import ChooseAgent, MoveChat, PinSession, SessionPinned, SetDraft
from portico.features.chats.move import Family, Moving, move, ordered
from portico.kernel import commands as c
from portico.kernel.decide.decision import Context, Outcome, set_column
from portico.kernel.do import note_started
from portico.kernel.errors import Conflict, NotFound
from portico.kernel.feature import Feature, handle
from portico.kernel.session import Session
from portico.kernel.state import SessionState, Summary

if TYPE_CHECKING:
    from portico.kernel.host import Host


class ChatsSlice(Struct, frozen=True, omit_defaults=True):
    pinned: int = 0
    """When the session was pinned: milliseconds since the epoch; 0: it is not."""


def pin(state: SessionState, command: PinSession, context: Context) -> Outcome:
    if bool(Chats.slice_of(state).pinned) == command.pinned:
        return Outcome()
    return Outcome([SessionPinned(pinned=command.pinned, by=context.by)])


set_column("decide", pin)


class Chats(Feature):
    name = "chats"
    commands = (MoveChat, PinSession, ChooseAgent, SetDraft)
    events = (SessionPinned,)
    slice = ChatsSlice

    @staticmethod
    def fold(slice: ChatsSlice, event: SessionPinned, time: int) -> ChatsSlice:
        return ChatsSlice(time if event.pinned else 0)

    def __init__(self, host: "Host") -> None:
        super().__init__(host)
        self._host = host

    @handle
    async def _move(self, command: MoveChat, caller: c.Caller) -> Summary:
        host = self._host
        chat = await host.get(command.session)
        above = await host.get(chat.summary.parent or chat.id)
        root, target = host.catalogue.root(chat), await host.get(command.to) if command.to is not None else None
        concerned = {each.id: each for each in (chat, above, root, target) if each is not None}
        async with contextlib.AsyncExitStack() as locks:
            for _, each in sorted(concerned.items()):  # always in this order: two moves must not wait for each other
                await locks.enter_async_context(each.lock)
                self._check_here(each)
            if host.catalogue.root(chat) is not root or (chat.summary.parent or chat.id) != above.id:
                raise Conflict(f"{chat.id!r} was moved meanwhile; look where it is now.")
            moving = Moving(chat.summary, host.catalogue.descendants(chat.id), chat.folders.reach())
            destination = self._family(target) if target is not None else None
            events = move(moving, self._family(root), destination, command.after, caller.by)
            if events:
                note_started(chat.id)  # the receipt goes into the same commit
                await host.log.append_all(*events)
        return chat.summary

    def _check_here(self, session: Session) -> None:
        if self._host.catalogue.get(session.id) is not session:
            raise NotFound("session", session.id)
        if not self._host.members.owns(session.channel):
            raise Conflict(f"{session.id!r} runs at another host; both have to be at the same one.")

    def _family(self, session: Session) -> Family:
        chats = [session.id, *(each.id for each in self._host.catalogue.descendants(session.id))]
        order = ordered(chats, session.summary.chat_order, str)
        return Family(session.summary, order, self._host.ownership.of_session(session))
