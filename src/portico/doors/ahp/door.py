"""The door itself: the Agent Host Protocol over WebSocket, on `/` and on `/ahp`."""

from starlette.websockets import WebSocket

from portico.doors.ahp.connection import Connection
from portico.doors.ahp.exchange import Exchange
from portico.doors.ahp.notices import Notices
from portico.doors.house import House
from portico.doors.route import Socket, Table, caller


def ahp(house: House) -> Table:
    return build(Exchange(house))


def build(exchange: Exchange) -> Table:
    Notices(exchange)

    async def serve(socket: WebSocket) -> None:
        await Connection(exchange, socket, caller(socket)).run()

    words = "Agent Host Protocol, version 1 and 0.5.1 to 1.0"
    return [Socket("/", serve, "drive", words), Socket("/ahp", serve, "drive", words)]
