"""Codes that log in one device, such as a phone: `portico pair` and *Add a phone*.

The attack: somebody guesses a code, or uses one that another person has scanned. So a code has 8 letters (34 bits), is
valid for five minutes and one use, only its hash is kept, in memory, and only 20 wrong codes are checked per minute. It
is in the fragment of the link, which browsers do not send. The device gets a separate token that can be revoked.
"""

import asyncio
import hashlib
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from msgspec import Struct

from portico import limits
from portico.features.pairing.commands import PairDevice, PairingCode
from portico.features.people.people import check_scopes
from portico.kernel.commands import SCOPES, Caller
from portico.kernel.errors import BadRequest, Conflict, Forbidden, RateLimited
from portico.kernel.host import Host
from portico.server.home import Home
from portico.server.identity import new_device

_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
"""No vowels, so no words; and no letters that look like digits or like each other."""
_COUNT = 8
SECONDS = 300
"""To find the phone and scan the code; a photograph of the screen is worth nothing later."""
_WRONG_PER_MINUTE = 20
"""Wrong codes of all addresses: in five minutes 100 of 25 billion."""
_DEVICE_CHARS = 60


class PhoneAddress(NamedTuple):
    url: str
    note: str = ""
    """What was set up to get it, and how to undo that."""


class PairingOffer(Struct, frozen=True):
    scopes: list[str]
    person: str
    by: str
    until: float


class Pairing:
    def __init__(self, host: Host, home: Home, address: Callable[[], Awaitable[PhoneAddress]]) -> None:
        """`address` returns the URL at which a phone reaches this host, or raises Conflict with the ways to get one."""
        self._host = host
        self._home = home
        self._address = address
        self._open: dict[str, PairingOffer] = {}
        self._wrong: deque[float] = deque(maxlen=_WRONG_PER_MINUTE)
        host.commands.take(self._start, lock=asyncio.Lock())

    async def _start(self, command: PairDevice, caller: Caller) -> PairingCode:
        scopes = check_scopes(command.scopes) if command.scopes is not None else _default(caller)
        if not caller.scopes.issuperset(scopes):
            raise Forbidden(f"Choose from your own scopes: {', '.join(sorted(caller.scopes))}.", field="scopes")
        address = await self._address()
        code, now = "".join(secrets.choice(_LETTERS) for _ in range(_COUNT)), time.monotonic()
        self._open = {each: offer for each, offer in self._open.items() if offer.until > now}
        if len(self._open) >= limits.PAIRINGS:
            raise Conflict(f"{limits.PAIRINGS} codes are open, which are the most; wait five minutes.")
        self._open[_hash(code)] = PairingOffer(scopes, caller.person, caller.by, now + SECONDS)
        shown = f"{code[:4]}-{code[4:]}"
        url = f"{address.url}/pair#{shown}"
        expires = int((time.time() + SECONDS) * 1000)
        await self._host.audit("device.offered", caller.by, scopes=scopes)
        return PairingCode(shown, url, expires, scopes, await asyncio.to_thread(qr_rows, url), address.note)

    async def redeem(self, code: str, device: str) -> str | None:
        """Return the id of the device's new token; None: the code is wrong, was used or has expired."""
        now = time.monotonic()
        if len(self._wrong) == _WRONG_PER_MINUTE and now - self._wrong[0] < 60:
            wait = 60 - (now - self._wrong[0])
            raise RateLimited("Too many wrong codes; try again in a minute.", retry_after=wait)
        offer = self._open.pop(_hash(_plain(code)), None)
        if offer is None or offer.until <= now:
            self._wrong.append(now)
            return None
        name = " ".join(device.split())[:_DEVICE_CHARS]
        if not name:
            raise BadRequest("Give the device a name.", field="device")
        ident = await asyncio.to_thread(new_device, self._home, name, offer.scopes, offer.person)
        await self._host.audit("device.paired", offer.by, device=name, scopes=offer.scopes)
        return ident


def _default(caller: Caller) -> list[str]:
    """What the owner's page may do, without `admin`."""
    return [scope for scope in SCOPES if scope in caller.scopes and scope != "admin"]


def _plain(code: str) -> str:
    return "".join(each for each in code.upper() if each.isalpha())


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()


def qr_rows(text: str) -> list[str]:
    """The modules of a QR code, one row of 0 and 1 per line, with the quiet border."""
    import segno  # late: few pair a device

    return ["".join("1" if dark else "0" for dark in row) for row in segno.make(text, error="m").matrix_iter(border=2)]
