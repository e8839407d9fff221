"""The features of a host in a test, by their classes."""

from typing import TypeVar

from portico.host.component import Component
from portico.host.host import Host

F = TypeVar("F", bound=Component)


def feature(host: Host, kind: type[F]) -> F:
    return next(part for part in host.parts if isinstance(part, kind))
