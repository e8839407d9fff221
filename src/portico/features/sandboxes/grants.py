"""What people granted to a session beyond its policy: hosts and paths. Each is an ordinary grant, made by the answer to
a card, listed and revoked like every other."""

from collections.abc import Iterable

from msgspec import Struct

from portico.kernel.approval import applies
from portico.kernel.session import Session

HOST, READ, WRITE = "host:", "read:", "write:"
"""How a grant names what it covers: `host:example.com:443`, `read:/data`."""


class SandboxGrants(Struct, frozen=True):
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


def covers_of(session: Session) -> list[str]:
    """Return what the grants of the session and of its folder cover."""
    grants = session.host.grants
    now = grants.now()
    return [each for grant in grants.values() if grant.allow and applies(grant, session, now) for each in grant.covers]


def paths_of(session: Session) -> SandboxGrants:
    """Return the paths among them."""
    return grants_of(each for each in covers_of(session) if not each.startswith(HOST))


def grants_of(covers: Iterable[str]) -> SandboxGrants:
    found = list(dict.fromkeys(covers))

    def named(prefix: str) -> tuple[str, ...]:
        return tuple(each.removeprefix(prefix) for each in found if each.startswith(prefix))

    return SandboxGrants(named(READ), named(WRITE), named(HOST))
