"""The door itself: the Agent Host Protocol over WebSocket, on `/` and on `/ahp`.

What speaks the protocol is a sixth of the start and some megabytes, so it is imported when the first client comes; in a
thread, because whoever else is being served must not wait for it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING

import msgspec
from starlette.websockets import WebSocket

from portico.doors.house import House
from portico.doors.route import Socket, Table, caller
from portico.events import HOST
from portico.host.policy import rules_of

if TYPE_CHECKING:
    from portico.doors.ahp.exchange import Exchange


def ahp(house: House) -> Table:
    exchange: Exchange | None = None

    async def meet() -> "Exchange":
        nonlocal exchange
        if exchange is None:
            await asyncio.to_thread(import_module, "portico.doors.ahp.connection")
        if exchange is None:  # still: nobody else came while it was imported
            from portico.doors.ahp.exchange import Exchange

            exchange = Exchange(house)
            _announce(exchange)
        return exchange

    return _table(meet)


async def restore(house: House) -> None:
    """The rules of approval that editors pushed hold from the start, not only when the first editor is back."""
    from portico.doors.ahp.config import ROOT_KEY

    data = await house.host.log.get_note(HOST, ROOT_KEY)
    house.host.rules.clients = rules_of(msgspec.json.decode(data) if data else {})


def build(exchange: "Exchange") -> Table:
    _announce(exchange)

    async def meet() -> "Exchange":
        return exchange

    return _table(meet)


def _announce(exchange: "Exchange") -> None:
    from portico.doors.ahp.notices import Notices

    Notices(exchange)


def _table(meet: Callable[[], Awaitable["Exchange"]]) -> Table:
    async def serve(socket: WebSocket) -> None:
        exchange = await meet()
        from portico.doors.ahp.connection import Connection

        await Connection(exchange, socket, caller(socket)).run()

    words = "Agent Host Protocol, version 1 and 0.5.1 to 1.0"
    return [Socket("/", serve, "drive", words), Socket("/ahp", serve, "drive", words)]
