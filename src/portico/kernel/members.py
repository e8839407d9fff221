"""The hosts that share a log. This default is for a single host; `portico.cluster` implements several."""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from portico.kernel import commands as c
from portico.kernel.errors import NotFound
from portico.kernel.events import Channel

Forward = Callable[[], Coroutine[Any, Any, Any]]  # runs a command on another host
Fetched = tuple[int, dict[str, str], bytes]  # status, headers, body


class Member(Struct, omit_defaults=True):
    """One host, as lists show it."""

    id: int
    name: str
    place: str
    state: str
    """`up`, `draining`, `away` (its lease has ended), `stopped`."""
    sessions: int = 0
    running: int = 0
    capacity: int = 0
    labels: list[str] = []
    version: str = ""
    url: str = ""
    """Where clients reach it."""
    seen: int = 0
    """Its last sign of life: milliseconds since the epoch."""
    here: bool = False
    """It is the one that answers."""


class PeerAnswer(NamedTuple):
    """The answer of another host, which ran the command."""

    answer: Any


class Members:
    """The members of a log with a single host."""

    several = False
    draining = False
    """This host hands over its sessions and accepts no new ones."""
    name = ""
    place = ""
    labels: Sequence[str] = ()
    folders: Sequence[str] = ()
    """The workspaces of the other hosts."""

    def owns(self, channel: Channel) -> bool:
        """Return whether this host writes the channel and runs its subject."""
        return True

    async def owner(self, channel: Channel) -> tuple[int, str]:
        """Return the number and the place of the host that owns the channel."""
        return 0, self.place

    async def suspect(self, channel: Channel) -> None:
        """The host that owns the channel gives no sign of life. If it has no connection to the log and has not
        renewed its lease when that was due, it is taken over now and not when its lease expires."""

    def is_gone(self, name: str) -> bool:
        """Return whether a host of that name, other than this one, is no longer connected."""
        return True

    def number_after(self, number: int) -> int:
        """Return the next number for an id that no other host uses."""
        return number + 1

    def held(self) -> bool:
        """Return whether this host is the one that starts scheduled work."""
        return True

    def on_held(self, listener: Callable[[], None]) -> None:
        """Call `listener` when this host becomes that one."""

    def used(self, channel: Channel) -> None:
        """A client of this host reads the session: its deltas are needed here for a while, also if another runs it."""

    def watch(self, channels: Callable[[], Iterable[Channel]]) -> None:
        """Register a function that returns the sessions whose deltas clients of this host follow."""

    async def catch_up(self) -> None:
        """Return when this host has read everything that other hosts have written so far."""

    async def hear(self) -> bool:
        """Do the same for a read request, with a timeout of a few seconds. False: the database is unavailable, and data
        that another host has acknowledged may be missing here."""
        return True

    async def elsewhere(self, command: c.Command, caller: c.Caller) -> Forward | None:
        """Return a call that runs the command on another host; None: run it here."""
        return None

    async def hand_over(self, session: Any) -> bool:
        """Return whether another host took over this idle session and its queue, because this host drains."""
        return False

    async def claim(self, command: c.Command, caller: c.Caller, key: str, digest: str) -> "PeerAnswer | bytes | None":
        """Claim a command with an id before it runs. Return the claim, stored under `key`, or the answer of the host
        that has claimed it. None: it needs no claim, or is already done."""
        return None

    async def release(self, key: str, claim: bytes) -> None:
        """Release the claim of a rejected command: the same id may be used again."""

    async def pass_on(
        self, command: c.Command, caller: c.Caller, place: str, labels: set[str], spread: bool, channel: Channel = ""
    ) -> Forward | None:
        """Who does this command, if another host is of the place and has the labels, or (`spread`) its place has them;
        `channel` becomes that host's."""
        return None

    async def fetch(self, channel: Channel, address: str, caller: c.Caller, *, owner: bool) -> Fetched | None:
        """Fetch the address from the host that owns the channel, or one that has its files; None: answer it here."""
        return None

    def listening(self, url: str, resume_jobs: Callable[[], Awaitable[Any]]) -> None:
        """Set the URL at which clients reach this host; `resume_jobs` resumes the jobs that another host left."""

    async def close_link(self) -> None:
        """Stop sending commands to other hosts, after the doors are closed."""

    def metrics(self) -> list[tuple[str, str, str, dict[str, float]]]:
        """Return the metrics: name, kind, help text, and values by labels."""
        return []

    async def all(self) -> list[Member]:
        return []

    async def drain(self, host: str) -> Member:
        raise NotFound("host", host, "This host is alone on its log; there is nobody to take over its sessions.")

    async def give_up(self, host: str) -> int:
        raise NotFound("host", host, "This host is alone on its log; there is nobody whose sessions could be given up.")
