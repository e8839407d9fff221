"""Decides which session a conversation belongs to, and the order of a session's conversations. Pure.

Its title, its messages and its origin do not change. Its permissions depend on the session that it belongs to, so it
can move only to a session with the same ones: the same agent, the same owner, and the folders that it works in.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from msgspec import Struct

from portico.kernel import events as e
from portico.kernel.errors import BadRequest, NotFound, TurnInProgress
from portico.kernel.events import Channel
from portico.kernel.folders import whole
from portico.kernel.ownership import Access
from portico.kernel.state import Summary, is_subagent

C = TypeVar("C")
Addressed = tuple[Channel, e.Event]
"""An event, and the channel that it is written to."""


class Family(Struct, frozen=True):
    """A session with its conversations."""

    root: Summary
    order: list[str]
    """Its own and all others, as lists show them."""
    access: Access


class Moving(Struct, frozen=True):
    """A conversation, before it is moved."""

    chat: Summary
    below: list[Summary]
    reach: list[str]
    """The folders that it works in."""


def ordered(chats: Iterable[C], order: Sequence[str], ident: Callable[[C], str]) -> list[C]:
    """As a person has put them; the others behind them as they come."""
    place = {each: at for at, each in enumerate(order)}
    return sorted(chats, key=lambda chat: place.get(ident(chat), len(place)))


def move(moving: Moving, source: Family, target: Family | None, after: str | None, by: str) -> list[Addressed]:
    """Return the events, each with its channel. Without a target the conversation becomes a separate session."""
    chat = moving.chat
    if chat.parent is None or is_subagent(chat):
        kind = "a sub-agent" if is_subagent(chat) else "a session's own conversation"
        raise BadRequest(f"{chat.id!r} is {kind}: it stays where it is.", field="session")
    if target is None:
        _check_idle(moving)
        return _promote(moving, source, by)
    if target.root.parent is not None:
        raise NotFound("session", target.root.id, "It is a conversation of one.")
    if target.root.id == source.root.id:
        return _reorder(target, [chat.id], after, by)
    _check_fits(moving, source, target)
    along = [each.id for each in moving.below]
    moved = e.ChatMoved(session=chat.id, source=chat.parent, to=target.root.id, below=along, by=by)
    channels = [_channel(each) for each in (chat.id, chat.parent, target.root.id)]
    return [*((channel, moved) for channel in channels), *_reorder(target, [chat.id, *along], after, by)]


def _reorder(family: Family, chats: list[str], after: str | None, by: str) -> list[Addressed]:
    others = [each for each in family.order if each not in chats]
    if after is not None and after not in others:
        raise BadRequest(f"{after!r} is no other conversation of {family.root.id!r}.", field="after")
    at = 0 if after is None else others.index(after) + 1
    order = [*others[:at], *chats, *others[at:]]
    return [(_channel(family.root.id), e.ChatsOrdered(order=order, by=by))] if order != family.order else []


def _promote(moving: Moving, source: Family, by: str) -> list[Addressed]:
    """Make the conversation a session, with the folders, the owner and the shares of its previous session."""
    chat, access = moving.chat, source.access
    assert chat.parent is not None
    along = [each.id for each in moving.below]
    moved = e.ChatMoved(session=chat.id, source=chat.parent, below=along, owner=access.owner, by=by)
    given = whole(source.root)
    folders = [each for each in given if each != chat.cwd] if chat.cwd in given else []
    own: list[e.Event] = [moved, *(e.FolderAdded(folder=each, by=by) for each in folders)]
    own += [e.SessionShared(person=person, rights=rights, by=by) for person, rights in access.shares.items()]
    return [*((_channel(chat.id), each) for each in own), (_channel(chat.parent), moved)]


def _check_fits(moving: Moving, source: Family, target: Family) -> None:
    chat, root = moving.chat, target.root
    missing = [folder for folder in moving.reach if folder not in whole(root)]
    reasons = {
        f"{root.id!r} is closed; reopen it first": root.closed,
        f"Nothing was said in {root.id!r} yet; begin it first": root.draft,
        f"{chat.id!r} is a conversation with {chat.agent!r}, and {root.id!r} one with {root.agent!r}": chat.agent
        != root.agent,
        f"{root.id!r} belongs to somebody else; a conversation stays with its owner": source.access.owner
        != target.access.owner,
        f"{chat.id!r} works in {', '.join(missing)}; give that to {root.id!r} first": missing,
    }
    for words, applies in reasons.items():
        if applies:
            raise BadRequest(f"{words}.", field="to")
    _check_idle(moving)


def _check_idle(moving: Moving) -> None:
    for each in (moving.chat, *moving.below):
        if each.status in ("running", "waiting"):
            raise TurnInProgress(f"A turn is running in {each.id!r}; wait for its end.")


def _channel(session: str) -> Channel:
    return f"session/{session}"
