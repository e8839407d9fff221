"""Commands about the hosts that share a log."""

from msgspec import Struct

from portico.kernel.commands import Command, Http, NoLock, register
from portico.kernel.members import Member as Member


class GivenUp(Struct):
    sessions: int
    """That were ended as interrupted."""


class DrainHost(Command, frozen=True, tag="host.drain"):
    """Hand over the sessions of a host: idle ones immediately, busy ones after their turn."""

    scope = "admin"
    lock = NoLock("It is one statement in the table of hosts.")
    gives = Member
    http = Http("POST", "/v1/hosts/{name}/drain")
    errors = ("not_found", "conflict")

    name: str


class GiveUpHost(Command, frozen=True, tag="host.give_up"):
    """Give up a host that is gone for good: its turns end as interrupted."""

    scope = "admin"
    lock = NoLock("Each session is taken over once, in one statement.")
    gives = GivenUp
    http = Http("POST", "/v1/hosts/{name}/give-up")
    errors = ("not_found", "conflict")

    name: str


register(DrainHost, GiveUpHost)
