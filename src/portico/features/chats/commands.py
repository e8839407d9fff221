"""The commands that pin a session and choose its agent."""

from portico.kernel.commands import AboutSession, Http, register
from portico.kernel.events import Event, register_events


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


class SessionPinned(Event, frozen=True, tag="session.pinned"):
    pinned: bool
    by: str


register(PinSession)
register(ChooseAgent)
register_events(SessionPinned)
