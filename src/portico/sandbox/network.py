"""What a sandbox may reach, and the interface between the listener (`egress`) and the feature that asks people."""

from typing import Protocol

from msgspec import Struct

PROXY_PORT = 3128
"""The port of the relay on the loopback of every sandbox, each of which has its own; the usual port of a proxy."""


class Network(Struct, frozen=True):
    """The part of a policy that concerns connections."""

    hosts: tuple[str, ...] = ()
    """Allowed without asking: `api.openai.com`, `*.example.org`, `example.org:8443`. Without a port: 443 and 80."""
    ports: tuple[int, ...] = ()
    """Loopback ports of this machine that are forwarded into the sandbox, for models and tool servers."""
    asks: bool = False
    """Whether a person is asked about other hosts. Otherwise they are refused."""


class Destination(Struct, frozen=True):
    host: str
    """A name in lower case or an address, as the program wrote it."""
    port: int


class Verdict(Struct, frozen=True):
    allowed: bool
    by: str = ""
    """`policy`, `timeout`, or who answered."""
    why: str = ""
    """The text of the response 403: who refused, and what to do."""


class EgressConnection(Struct, frozen=True):
    """A connection that has ended or was refused."""

    target: Destination
    allowed: bool
    by: str = ""
    address: str = ""
    """The address that was checked and used."""
    sent: int = 0
    received: int = 0
    began: float = 0.0
    """Seconds since the epoch."""
    ended: float = 0.0


class EgressGate(Protocol):
    """Decides about hosts that the policy does not name, and records all connections."""

    async def decide(self, target: Destination) -> Verdict:
        """Called only if the policy asks and does not name the host."""

    def record(self, connection: EgressConnection) -> None:
        """Called when a connection ends or is refused."""


def environment() -> dict[str, str]:
    """The variables that direct programs to the relay. curl reads only the lower-case name for http."""
    proxy = f"http://127.0.0.1:{PROXY_PORT}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    around = "127.0.0.1,localhost,::1"
    variables = dict.fromkeys(names, proxy) | {"NO_PROXY": around}
    return variables | {name.lower(): value for name, value in variables.items()}
