"""The hosts on one log, as a host sees them. Alone, everything is its own; `portico.cluster` knows more."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from portico import commands as c
from portico.commands import Member as Member
from portico.errors import NotFound
from portico.events import Channel

Forward = Callable[[], Coroutine[Any, Any, Any]]  # a command that another host does
Fetched = tuple[int, dict[str, str], bytes]  # status, headers, body


class PeerAnswer(NamedTuple):
    """The answer of another host, which ran the command."""

    answer: Any


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

    async def owner(self, channel: Channel) -> tuple[int, str]:
        """The number of the host that runs it, and its place."""
        return 0, self.place

    def is_gone(self, name: str) -> bool:
        """Return whether a host of that name, other than this one, is no longer connected."""
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

    async def hear(self) -> bool:
        """The same for a request that only reads, for a few seconds at most. False: the database is away, and something
        that another host has acknowledged may be missing here."""
        return True

    async def elsewhere(self, command: c.Command, caller: c.Caller) -> Forward | None:
        """Who does this command, if it is another host."""
        return None

    async def hand_over(self, session: Any) -> bool:
        """Whether another host has this idle session now, with its queue, because this one drains."""
        return False

    async def claim(self, command: c.Command, caller: c.Caller, key: str, digest: str) -> "PeerAnswer | bytes | None":
        """Before a command with an id runs: the claim of this host, stored under `key`; or the answer of the host that
        has claimed it. None: it needs no claim, or is done already."""
        return None

    async def release(self, key: str, claim: bytes) -> None:
        """The command was rejected: the same id may be used again."""

    async def pass_on(
        self, command: c.Command, caller: c.Caller, place: str, labels: set[str], spread: bool, channel: Channel = ""
    ) -> Forward | None:
        """Who does this command, if another host is of the place and has the labels, or (`spread`) its place has them;
        `channel` becomes that host's."""
        return None

    async def fetch(self, channel: Channel, address: str, caller: c.Caller, *, owner: bool) -> Fetched | None:
        """What the host that runs it (`owner`), or one that sees its files, answers at this address; None: ask here."""
        return None

    def listening(self, url: str, resume_jobs: Callable[[], Awaitable[Any]]) -> None:
        """Set the URL at which clients reach this host; `resume_jobs` resumes the jobs that another host left."""

    async def close_link(self) -> None:
        """The doors are closed: this host sends no more commands to others."""

    def metrics(self) -> list[tuple[str, str, str, dict[str, float]]]:
        """Name, kind, words, and values by labels."""
        return []

    async def all(self) -> list[Member]:
        return []

    async def drain(self, host: str) -> Member:
        raise NotFound("host", host, "This host is alone on its log; there is nobody to take over its sessions.")

    async def give_up(self, host: str) -> int:
        raise NotFound("host", host, "This host is alone on its log; there is nobody whose sessions could be given up.")
