"""The hosts on one log, as a host sees them. Alone, everything is its own; `portico.cluster` knows more."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from portico import commands as c
from portico.commands import Member as Member
from portico.errors import BadRequest, NotFound
from portico.events import Channel

Forward = Callable[[], Coroutine[Any, Any, Any]]  # a command that another host does
Fetched = tuple[int, dict[str, str], bytes]  # status, headers, body


class Needs(NamedTuple):
    """What the host of something new has to have."""

    place: str = ""
    labels: tuple[str, ...] = ()
    """Empty ones do not count."""
    spread: bool = False
    """Several hosts of one place do it, and each label may be another's."""


def listed(hosts: Sequence[Member]) -> str:
    """For those who look for one that can do something."""
    return "; ".join(
        f"{each.name!r} at {each.place!r} ({', '.join((each.state, *map(repr, each.labels)))})" for each in hosts
    )


class Members:
    """A host that is alone on its log."""

    several = False
    draining = False
    """It hands its sessions over and takes no new ones."""
    name = ""
    place = ""
    labels: Sequence[str] = ()
    folders: Sequence[str] = ()
    """The workspaces of the other hosts."""

    def owns(self, channel: Channel) -> bool:
        """Whether this host writes it, and runs what it is about."""
        return True

    def is_gone(self, name: str) -> bool:
        """Whether nobody is connected to a host of that name, other than this one, any more."""
        return True

    def number_after(self, number: int) -> int:
        """The next number for an id that no other host gives."""
        return number + 1

    def held(self) -> bool:
        """Whether this host is the one that starts what is due."""
        return True

    def on_held(self, listener: Callable[[], None]) -> None:
        """Calls `listener` when this host has become that one."""

    async def catch_up(self) -> None:
        """Returns when what other hosts have written so far is known here."""

    async def hear(self) -> None:
        """The same for whoever only reads: while the database does not answer, what is known has to do."""

    async def elsewhere(self, command: c.Command, caller: c.Caller) -> Forward | None:
        """Who does this command, if it is another host."""
        return None

    async def pass_on(
        self, needs: Needs, command: c.Command, caller: c.Caller, channel: Channel = ""
    ) -> Forward | None:
        """Who does this command, if it is another host that has what it needs; `channel` becomes that host's."""
        if needs.place:
            raise BadRequest("This host is alone on its log: leave 'place' out.", field="place")
        for label in filter(None, needs.labels):
            if label not in self.labels:
                known = ", ".join(map(repr, self.labels)) or "none"
                raise NotFound("host with the label", label, f"This one is alone; its cluster.labels: {known}.")
        return None

    async def fetch(self, channel: Channel, address: str, caller: c.Caller, *, owner: bool) -> Fetched | None:
        """What the host that runs it (`owner`), or one that sees its files, answers at this address; None: ask here."""
        return None

    def listening(self, url: str, resume_jobs: Callable[[], Awaitable[Any]]) -> None:
        """Clients reach this host there; `resume_jobs` takes up what another host has left."""

    def metrics(self) -> list[tuple[str, str, str, dict[str, float]]]:
        """Name, kind, words, and values by labels."""
        return []

    async def all(self) -> list[Member]:
        return []

    async def drain(self, host: str) -> Member:
        raise NotFound("host", host, "This host is alone on its log; there is nobody to take over its sessions.")

    async def give_up(self, host: str) -> int:
        raise NotFound("host", host, "This host is alone on its log; there is nobody whose sessions could be given up.")
