"""The features of a host in a test, by their classes."""

from typing import TypeVar

from portico.kernel.component import Component
from portico.kernel.host import Host
from portico.kernel.services import HostServices
from portico.kernel.session import Session

F = TypeVar("F", bound=Component)


def feature(host: HostServices, kind: type[F]) -> F:
    return next(part for part in host.parts if isinstance(part, kind))


def host_of(session: Session) -> Host:
    """Return the whole host of a session, which sees only a part of it (`HostServices`)."""
    return whole(session.host)


def whole(host: HostServices) -> Host:
    assert isinstance(host, Host)
    return host
