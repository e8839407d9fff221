"""A client attached to a terminal over a WebSocket: sends the output, receives the input.

Sent: `{"terminal": {...}}`, the whole screen, if the client has no cursor, or the events after it are too many or no
longer stored; then `{"events": [...]}`, each with its `pos`, the cursor for a reconnect. Received: `input` and
`resize`. An invalid message is answered with an error in the usual format, and the socket stays open.
"""

import asyncio
from typing import Any

import msgspec
from msgspec import Struct
from starlette.websockets import WebSocket

from portico import limits
from portico.doors.rest.events import wire
from portico.doors.rest.shell import screen
from portico.features.people.view import View
from portico.features.terminals import events as te
from portico.features.terminals.commands import ResizeTerminal, TypeInput
from portico.features.terminals.state import TerminalState
from portico.kernel.errors import BadRequest, PorticoError
from portico.kernel.host import Host
from portico.server.body import ErrorBody, decode_as
from portico.server.exchange import exchange
from portico.server.route import caller

CATCH_UP = 2_000
"""Maximum number of replayed events. With more, the whole screen is smaller."""


class Input(Struct, tag="input", tag_field="type", forbid_unknown_fields=True):
    data: str


class Resize(Struct, tag="resize", tag_field="type", forbid_unknown_fields=True):
    cols: int
    rows: int


_SAID: Any = Input | Resize


class Attachment:
    def __init__(self, host: Host, view: View, terminal: TerminalState, socket: WebSocket) -> None:
        self._host = host
        self._view = view
        self._terminal = terminal
        self._socket = socket
        self._caller = caller(socket)

    async def run(self, after: int | None) -> None:
        await self._socket.accept()
        await exchange(self._socket, self._show(after), self._take())

    # -- out ---------------------------------------------------------------------------------------------------

    async def _show(self, after: int | None) -> None:
        """Send the output until the terminal is removed."""
        if after is None or not await self._whole(after):
            after = await self._send_screen()
        async for records in self._host.log.follow(self._terminal.channel, after=after):
            if not self._view.sees(self._terminal.channel):
                return  # the session is no longer shared with this caller
            await self._send(b'{"events":[%s]}' % b",".join(record.form("rest", wire) for record in records))
            if isinstance(records[-1].event, te.TerminalRemoved):
                return

    async def _whole(self, after: int) -> bool:
        """Return whether all events after the cursor can be replayed. Compaction of old output leaves gaps."""
        head = self._terminal.pos
        if not head - CATCH_UP <= after <= head:
            return False
        records = await self._host.log.read(self._terminal.channel, after, CATCH_UP + 1)
        return sum(record.pos <= head for record in records) == head - after

    async def _send_screen(self) -> int:
        shown = screen(self._terminal, self._host.connected)
        await self._send(b'{"terminal":%s}' % msgspec.json.encode(shown))
        return shown.pos

    async def _send(self, frame: bytes) -> None:
        async with asyncio.timeout(limits.SEND_SECONDS):
            await self._socket.send_text(frame.decode())

    # -- in ----------------------------------------------------------------------------------------------------

    async def _take(self) -> None:
        while (message := await self._socket.receive())["type"] != "websocket.disconnect":
            try:
                await self._do(message.get("text"))
            except PorticoError as error:
                await self._send(msgspec.json.encode(ErrorBody(error.message, error.code, error.field)))

    async def _do(self, text: str | None) -> None:
        if text is None:
            raise BadRequest("Send text frames with one JSON object in each.", field="body")
        match decode_as(text.encode(), _SAID):
            case Input(data=data):
                await self._host.do(TypeInput(terminal=self._terminal.id, data=data), self._caller)
            case Resize(cols=cols, rows=rows):
                await self._host.do(ResizeTerminal(terminal=self._terminal.id, cols=cols, rows=rows), self._caller)
