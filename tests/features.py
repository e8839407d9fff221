"""The features of a host in a test, by their classes."""

from typing import TypeVar

from portico.host.component import Component
from portico.host.host import Host
from portico.host.services import HostServices
from portico.host.session import Session

F = TypeVar("F", bound=Component)


def feature(host: HostServices, kind: type[F]) -> F:
    return next(part for part in host.parts if isinstance(part, kind))


def host_of(session: Session) -> Host:
    """Return the whole host of a session, which sees only a part of it (`HostServices`)."""
    assert isinstance(session.host, Host)
    return session.host
