"""What a sandbox may reach: the network part of a policy, and how a target is compared with it. Pure.

The attack: another spelling of a name or an address (`2130706433`, `[::ffff:127.0.0.1]`, `GITHUB.com.`) passes a check
that the usual spelling does not pass. So a target has exactly one spelling, and everything else is rejected.
"""

import ipaddress
import re
import socket
from typing import Protocol

from msgspec import Struct

PROXY_PORT = 3128
"""The port of the relay inside of a sandbox: the usual one of a proxy. Each sandbox has its own loopback interface."""

_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*\Z")
_NUMERIC = re.compile(r"(^|\.)(0x[0-9a-f]*|[0-9]+)\Z")
"""The last part of what `inet_aton` reads as an IPv4 address: decimal, octal or hexadecimal."""
_TARGET = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]+)(?::([0-9]{1,5}))?\Z")


class Destination(Struct, frozen=True):
    host: str
    """A lower-case name without a final dot, or an address in its usual form."""
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_address(self) -> bool:
        return is_address(self.host)


class Verdict(Struct, frozen=True):
    allowed: bool
    by: str = ""
    """Who allowed or refused it: a person, a grant, `policy`, `timeout`."""
    why: str = ""
    """For a refusal: the reason and what to do, as one or two sentences."""


class Network(Struct, frozen=True):
    """Plain data, part of `Policy`. By default nothing is reachable."""

    hosts: tuple[str, ...] = ()
    """Allowed without a question: `pypi.org`, `*.npmjs.org` (any name below it), `example.com:8443`."""
    ports: tuple[int, ...] = ()
    """Ports on the loopback interface of this machine that are forwarded: local models, the tool server."""
    asks: bool = False
    """For other hosts a person is asked. False: they are refused."""
    private: tuple[str, ...] = ()
    """Names and addresses that may be private addresses."""
    web: tuple[int, ...] = (80, 443)
    """Ports of a host that is allowed without a port."""

    def covers(self, target: Destination) -> bool:
        """Return whether the target is reachable without a question."""
        return any(_matches(pattern, target, self.web) for pattern in self.hosts)

    def forwards(self, target: Destination) -> bool:
        """Return whether it is a forwarded port of this machine."""
        return target.host == "127.0.0.1" and target.port in self.ports


def _matches(pattern: str, target: Destination, web: tuple[int, ...]) -> bool:
    below = pattern.startswith("*.")
    named = parse_target(pattern.removeprefix("*."), target.port)
    has_port = _TARGET.match(pattern.removeprefix("*."))
    if named is None or has_port is None or target.port not in ((named.port,) if has_port[2] else web):
        return False
    return target.host.endswith(f".{named.host}") if below else target.host == named.host


def parse_target(text: str, port: int = 0) -> Destination | None:
    """Read `host:port`; `port` is the default if the text names none. None: this is no target."""
    parts = _TARGET.match(text)
    host, number = (normal(parts[1]), int(parts[2] or port)) if parts is not None else (None, 0)
    return Destination(host, number) if host is not None and 0 < number < 65536 else None


def normal(host: str) -> str | None:
    """Return the one spelling of a name or an address that this module compares; None if it is neither. An IPv6
    address is in brackets."""
    host = host.lower().removesuffix(".")
    if host.startswith("["):
        return _ipv6(host[1:-1])
    if _NUMERIC.search(host):  # a name never ends with a number
        try:
            return socket.inet_ntoa(socket.inet_aton(host))
        except OSError:
            return None
    return host if len(host) <= 253 and _NAME.match(host) else None


def _ipv6(text: str) -> str | None:
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return None
    if address.scope_id:
        return None
    return str(address.ipv4_mapped or address)


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class EgressGate(Protocol):
    """Decides about hosts that the policy does not name, and records all connections. Each method but `decide` returns
    immediately."""

    async def decide(self, target: Destination) -> Verdict:
        """Called only if the policy asks and does not name the host."""

    def opened(self, target: Destination, by: str) -> None:
        """Called when a connection was allowed."""

    def moved(self, target: Destination, sent: int, received: int) -> None:
        """Called with the bytes that a connection has transferred since the last call."""

    def refused(self, target: Destination, by: str) -> None:
        """Called when a connection was refused."""


def environment() -> dict[str, str]:
    """The variables that direct programs to the relay. curl reads only the lower-case name for http."""
    proxy = f"http://127.0.0.1:{PROXY_PORT}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    around = "127.0.0.1,localhost,::1"
    variables = dict.fromkeys(names, proxy) | {"NO_PROXY": around}
    return variables | {name.lower(): value for name, value in variables.items()}
