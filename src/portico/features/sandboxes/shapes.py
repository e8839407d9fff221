"""The choice of a sandbox and the record of connections, as clients read them."""

from msgspec import Struct

from portico.sandbox.policy import Mode

NAMES = 8
"""People and rules that are named for one host."""


class HostUse(Struct):
    """The connections to one host."""

    host: str
    port: int
    count: int = 0
    refused: int = 0
    sent: int = 0
    received: int = 0
    first: int = 0
    last: int = 0
    allowed_by: list[str] = []
    refused_by: list[str] = []

    def seen(self, now: int) -> None:
        self.first, self.last = self.first or now, now

    def add(self, other: "HostUse") -> None:
        self.count += other.count
        self.refused += other.refused
        self.sent += other.sent
        self.received += other.received
        self.first = min(filter(None, (self.first, other.first)), default=0)
        self.last = max(self.last, other.last)
        for by in other.allowed_by:
            name_once(self.allowed_by, by)
        for by in other.refused_by:
            name_once(self.refused_by, by)


class NetworkUse(Struct):
    """The hosts that a session or a job connected to, or tried to."""

    hosts: list[HostUse] = []


def name_once(names: list[str], by: str) -> None:
    if by and by not in names and len(names) < NAMES:
        names.append(by)


class SandboxMode(Struct, frozen=True):
    """One choice, with the texts that forms show."""

    id: Mode
    name: str
    description: str


class SandboxChoice(Struct, frozen=True):
    """The sandboxes that can be chosen for a session or in a folder."""

    mode: Mode
    """The current one of the session, or the one of a conversation that is started in the folder without a choice."""
    modes: list[SandboxMode]
    """Those that are possible here."""
    remembered: str = ""
    """What was chosen for the folder last; empty: nothing."""
    required: bool = False
    """The host rejects sessions without a sandbox."""
    problem: str = ""
    """Why no sandbox works here, and how to fix it; empty: it works."""
