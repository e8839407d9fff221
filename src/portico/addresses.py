"""Which addresses a webhook or a sandboxed program may reach.

The attack: a host name, IP address or redirect directs a request of this host to a machine that only this host can
reach (169.254.169.254, a router, a database on loopback). So a name is resolved once, every address that it has must be
public, and the connection goes to the address that was checked.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Container
from concurrent.futures import Executor

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_REFUSED = tuple(map(ipaddress.ip_network, ("192.88.99.0/24", "64:ff9b:1::/48", "fec0::/10", "3fff::/20")))
"""6to4 relays, local NAT64, old site-local and documentation addresses: Python classifies them as global."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


Lookup = Callable[[str, int], Awaitable[list[str]]]
"""Returns the addresses of a name. Raises OSError or UnicodeError if it has none."""


class NoAddress(Exception):
    """The name cannot be resolved, or has an address that may not be reached. `str` is the reason."""


class PrivateAddress(NoAddress):
    def __init__(self, host: str, address: str) -> None:
        super().__init__(f"{host!r} is {address}, a private address.")


def is_public(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    return all(
        each.is_global
        and not (each.is_multicast or each.is_reserved)
        and not any(each in network for network in _REFUSED)
        for each in _meant(address)
    )


def _meant(address: _Address) -> list[_Address]:
    """The IPv4 addresses embedded in an IPv6 address, if any: packets are sent to them."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address in _NAT64 or int(address) >> 32 == 0:
        return [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    inside = address.ipv4_mapped or address.sixtofour
    return [inside] if inside is not None else list(address.teredo or [address])


def system_lookup(threads: Executor) -> Lookup:
    """Ask the resolver of the system, in these threads."""

    async def lookup(host: str, port: int) -> list[str]:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(threads, socket.getaddrinfo, host, port, 0, socket.SOCK_STREAM)
        return [str(entry[4][0]) for entry in found]

    return lookup


async def resolve(host: str, port: int, allowed: Container[str], lookup: Lookup) -> list[str]:
    """Return the addresses of a name, all of them public unless the name is allowed. Raises NoAddress."""
    try:
        addresses = list(dict.fromkeys(await lookup(host, port)))
    except (OSError, UnicodeError) as error:
        raise NoAddress(f"{host!r} has no address: {error}") from error
    private = [each for each in addresses if not is_public(each)]
    if private and host not in allowed:
        raise PrivateAddress(host, private[0])
    return addresses
