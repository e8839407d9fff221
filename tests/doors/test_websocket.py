"""The short way for text frames must judge and order everything as the long way does: frames are sent by hand here."""

import asyncio
import base64
import contextlib
import os
import struct
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.types import Receive, Scope, Send

from portico.server.websocket import WsProtocol, line

TEXT, BINARY, CLOSE, PING, PONG, CONT = 1, 2, 8, 9, 10, 0
LARGEST = 100_000


def frame(payload: bytes, opcode: int = TEXT, *, fin: bool = True, masked: bool = True, rsv: int = 0) -> bytes:
    head = bytes(((0x80 if fin else 0) | rsv | opcode,))
    mask = os.urandom(4)
    flag = 0x80 if masked else 0
    if len(payload) < 126:
        head += bytes((flag | len(payload),))
    elif len(payload) < 1 << 16:
        head += bytes((flag | 126,)) + struct.pack("!H", len(payload))
    else:
        head += bytes((flag | 127,)) + struct.pack("!Q", len(payload))
    if not masked:
        return head + payload
    return head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))


class Peer:
    """The other side, which can be rude."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def shake_hands(self, port: int, *early: bytes) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        lines = ["GET / HTTP/1.1", f"Host: 127.0.0.1:{port}", "Upgrade: websocket", "Connection: Upgrade"]
        lines += [f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "", ""]
        self.writer.write("\r\n".join(lines).encode() + b"".join(early))
        assert b" 101 " in await self.reader.readuntil(b"\r\n\r\n")

    async def take(self) -> tuple[int, bytes]:
        first, size = await self.reader.readexactly(2)
        if size == 126:
            size = struct.unpack("!H", await self.reader.readexactly(2))[0]
        elif size == 127:
            size = struct.unpack("!Q", await self.reader.readexactly(8))[0]
        return first & 0x0F, await self.reader.readexactly(size)

    async def end(self) -> int:
        """The code of the close frame that must come, whatever comes before it."""
        while True:
            opcode, payload = await self.take()
            if opcode == CLOSE:
                return int(struct.unpack("!H", payload[:2])[0])


class Heard:
    """An application that keeps what it hears and answers each message with `you said ...`."""

    def __init__(self) -> None:
        self.messages: list[tuple[bytes, bool]] = []
        self.ends = 0
        self.lines: list[WsProtocol] = []
        self.hold: Callable[[], Any] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        mine = line(scope)
        self.lines.append(mine)

        def hear(data: bytes, is_text: bool) -> None:
            self.messages.append((data, is_text))
            mine.write([b"you said ", data])

        if self.hold is not None:
            await self.hold()
        mine.listen(hear)
        await mine.over()
        self.ends += 1


class Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


@contextlib.asynccontextmanager
async def serving(heard: Heard) -> AsyncIterator[int]:
    config = uvicorn.Config(
        heard,
        port=0,
        ws=WsProtocol,
        lifespan="off",
        log_config=None,
        ws_max_size=LARGEST,
        ws_per_message_deflate=False,
    )
    server = Uvicorn(config)
    task = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110  (uvicorn tells nobody)
        await asyncio.sleep(0.001)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    await task


@contextlib.asynccontextmanager
async def peer_of(heard: Heard, *early: bytes) -> AsyncIterator[Peer]:
    async with serving(heard) as port, asyncio.timeout(60):
        peer = Peer(*await asyncio.open_connection("127.0.0.1", port))
        try:
            await peer.shake_hands(port, *early)
            yield peer
        finally:
            peer.writer.close()


async def test_messages_and_their_answers() -> None:
    heard = Heard()
    async with peer_of(heard) as peer:
        peer.writer.write(frame(b"one") + frame("zwei ✓".encode()) + frame(b"x" * 70_000) + frame(b""))
        answers = [(await peer.take())[1] for _ in range(8)]
    assert answers[:4] == [b"you said ", b"one", b"you said ", "zwei ✓".encode()]
    assert answers[5:] == [b"x" * 70_000, b"you said ", b""]


PIECES = st.lists(
    st.tuples(
        st.sampled_from(["text", "binary", "fragments", "ping"]),
        st.integers(0, 300) | st.sampled_from([125, 126, 66_000]),
    ),
    max_size=12,
)


@settings(max_examples=30, deadline=None)
@given(PIECES, st.lists(st.integers(1, 40_000), max_size=12))
def test_however_the_bytes_are_cut(pieces: list[tuple[str, int]], cuts: list[int]) -> None:
    sent, expected = b"", []
    for kind, size in pieces:
        payload = os.urandom(size) if kind == "binary" else b"t" * size
        if kind == "fragments":
            third = size // 3
            sent += frame(payload[:third], fin=False) + frame(b"hello", PING) + frame(payload[third:], CONT)
        elif kind == "ping":
            sent += frame(payload[:125], PING)
        else:
            sent += frame(payload, BINARY if kind == "binary" else TEXT)
        if kind != "ping":
            expected.append((payload, kind != "binary"))

    async def play() -> None:
        heard = Heard()
        async with peer_of(heard) as peer:
            reading = asyncio.create_task(_until_closed(peer))
            at = 0
            for cut in cuts:
                peer.writer.write(sent[at : at + cut])
                at += cut
                await peer.writer.drain()
                await asyncio.sleep(0)
            peer.writer.write(sent[at:] + frame(struct.pack("!H", 1000), CLOSE))
            await reading
        assert heard.messages == expected

    asyncio.run(play())


async def _until_closed(peer: Peer) -> None:
    while (await peer.take())[0] != CLOSE:
        pass


@pytest.mark.parametrize(
    ("rude", "code"),
    [
        (frame(b"naked", masked=False), 1002),
        (frame(b"reserved", rsv=0x40), 1002),
        (frame(b"half", fin=False) + frame(b"another"), 1002),
        (frame(b"no beginning", CONT), 1002),
        (frame(b"unknown", 5), 1002),
        (frame(b"x" * 126, PING), 1002),
        (frame(b"\xff\xfe"), 1007),
        (frame(b"\xff", fin=False) + frame(b"\xfe", CONT), 1007),
        (frame(b"x" * (LARGEST + 1)), 1009),
        (frame(b"x" * LARGEST, fin=False) + frame(b"x", CONT), 1009),
        (b"\x81\xff" + struct.pack("!Q", 1 << 62) + b"mask", 1009),
    ],
    ids=range(11),  # masks are random, and every process must name the tests alike
)
async def test_who_breaks_the_rules_is_told_and_closed(rude: bytes, code: int) -> None:
    heard = Heard()
    async with peer_of(heard) as peer:
        peer.writer.write(frame(b"before") + rude + frame(b"after"))
        assert await peer.end() == code
    assert heard.messages == [(b"before", True)]


async def test_a_ping_is_answered_and_a_close_is_returned() -> None:
    heard = Heard()
    async with peer_of(heard) as peer:
        peer.writer.write(frame(b"are you there", PING))
        assert await peer.take() == (PONG, b"are you there")
        peer.writer.write(frame(struct.pack("!H", 1000), CLOSE) + frame(b"too late"))
        assert await peer.end() == 1000
    assert heard.messages == []
    assert heard.ends == 1


async def test_what_comes_before_anybody_listens_is_not_lost() -> None:
    heard, listening = Heard(), asyncio.Event()
    heard.hold = listening.wait
    async with peer_of(heard) as peer:
        peer.writer.write(frame(b"early") + frame(b"\x01", BINARY) + frame(b"cut in two")[:9])
        await peer.writer.drain()
        while not heard.lines[0].read_paused:  # noqa: ASYNC110  (nobody tells that bytes have arrived)
            await asyncio.sleep(0.001)
        listening.set()
        peer.writer.write(frame(b"late"))
        assert await peer.take() == (TEXT, b"you said ")
    assert heard.messages[:2] == [(b"early", True), (b"\x01", False)]


async def test_a_paused_line_reads_on_when_it_is_resumed() -> None:
    heard = Heard()
    async with peer_of(heard) as peer:
        peer.writer.write(frame(b"one"))
        await peer.take()
        heard.lines[0].pause()
        peer.writer.write(frame(b"two"))
        await peer.writer.drain()
        assert heard.messages == [(b"one", True)]
        heard.lines[0].resume()
        await peer.take()
        assert await peer.take() == (TEXT, b"you said ")
    assert heard.messages == [(b"one", True), (b"two", True)]


async def test_a_full_line_says_when_there_is_room() -> None:
    heard, room = Heard(), asyncio.Event()
    async with peer_of(heard) as peer:
        peer.writer.write(frame(b"one"))
        await peer.take()
        mine = heard.lines[0]
        mine.on_room = room.set
        count = 0
        while not mine.full:
            mine.write([b"x" * 100_000])
            count += 1
        await peer.take()
        for _ in range(count):
            await peer.take()
        await room.wait()
        assert not mine.full
