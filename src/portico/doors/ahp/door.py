"""The AHP door: the Agent Host Protocol over WebSocket, on `/` and on `/ahp`.

The protocol code takes a sixth of the startup time and some megabytes, so it is imported when the first client
connects, in a thread so that other requests do not wait for it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING

from starlette.websockets import WebSocket

from portico.doors.ahp.view.names import child_uri
from portico.server.app import App
from portico.server.door import Door
from portico.server.route import Socket, Table, caller

if TYPE_CHECKING:
    from portico.doors.ahp.connection.broker import Broker


class AhpDoor(Door):
    def __init__(self, app: App) -> None:
        super().__init__(app)
        app.host.name_child = child_uri
        self._broker: Broker | None = None
        self.routes = _routes(self._meet)

    async def _meet(self) -> "Broker":
        if self._broker is None:
            await asyncio.to_thread(import_module, "portico.doors.ahp.connection.connection")
        if self._broker is None:  # check again: another client may have connected during the import
            from portico.doors.ahp.connection.broker import Broker

            self._broker = Broker(self.app)
            _announce(self._broker)
        return self._broker


def build(broker: "Broker") -> Table:
    broker.host.name_child = child_uri
    _announce(broker)

    async def meet() -> "Broker":
        return broker

    return _routes(meet)


def _announce(broker: "Broker") -> None:
    from portico.doors.ahp.act.documents import document_tools
    from portico.doors.ahp.connection.notices import CatalogueNotices

    CatalogueNotices(broker)
    broker.host.tools.update(document_tools(broker))


def _routes(meet: Callable[[], Awaitable["Broker"]]) -> Table:
    async def serve(socket: WebSocket) -> None:
        broker = await meet()
        from portico.doors.ahp.connection.connection import Connection

        await Connection(broker, socket, caller(socket)).run()

    words = "Agent Host Protocol, version 1 and 0.5.1 to 1.0"
    return [Socket("/", serve, "drive", words), Socket("/ahp", serve, "drive", words)]
