"""The commands that move a conversation, pin a session, choose its agent and set its draft."""

from msgspec import Struct

from portico.kernel.commands import AboutSession, Http, NoLock, register
from portico.kernel.events import Event, register_events


class DraftText(Struct):
    text: str
    """The text in every input now; empty: none."""


class MoveChat(AboutSession, frozen=True, tag="chat.move"):
    """Move a conversation within its session, into another one, or out of it; only who owns them may."""

    scope = "drive"
    owner_only = True
    lock = NoLock("Its handler locks all sessions that it changes, in the order of their ids.")
    http = Http("POST", "/v1/sessions/{id}/move")
    errors = ("not_found", "conflict")
    names = ("to",)

    to: str | None = None
    """The session that it belongs to from now on, with all below it. None: it becomes a separate session."""
    after: str | None = None
    """The conversation there behind which lists show it; it comes first, when none is named."""


class PinSession(AboutSession, frozen=True, tag="session.pin"):
    """Pin a session, so that lists show it first, or unpin it."""

    scope = "drive"
    http = Http("PUT", "/v1/sessions/{id}/pin")

    pinned: bool = True


class ChooseAgent(AboutSession, frozen=True, tag="session.agent"):
    """Let another agent continue a session, from the next turn on. One that asks less needs the scope approve."""

    scope = "drive"
    http = Http("PUT", "/v1/sessions/{id}/agent")
    errors = ("not_found", "turn_in_progress")

    agent: str
    model: str | None = None
    """The agent's first, when none is named."""


class SetDraft(AboutSession, frozen=True, tag="draft.set"):
    """Put a text into every page's and editor's input, without sending it; an empty one takes it away."""

    scope = "drive"
    gives = DraftText
    http = Http("PUT", "/v1/sessions/{id}/draft")

    text: str
    typed: bool = False
    """A person is typing it now. Any other draft is an offer, and is placed after typed text."""


class SessionPinned(Event, frozen=True, tag="session.pinned"):
    pinned: bool
    by: str


register(MoveChat, PinSession, ChooseAgent, SetDraft)
register_events(SessionPinned)
