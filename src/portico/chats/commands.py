"""The command that pins a session, and its event."""

from portico.commands import AboutSession, Http, register
from portico.events import Event, register_events


class PinSession(AboutSession, frozen=True, tag="session.pin"):
    """Pin a session, so that lists show it first, or unpin it."""

    scope = "drive"
    http = Http("PUT", "/v1/sessions/{id}/pin")

    pinned: bool = True


class SessionPinned(Event, frozen=True, tag="session.pinned"):
    pinned: bool
    by: str


register(PinSession)
register_events(SessionPinned)
