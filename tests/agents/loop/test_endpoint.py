"""The connection to an endpoint: used again for the next request, and never waited for behind the answer."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from portico.agents.loop import endpoint
from portico.agents.loop.endpoint import ModelEndpoint
from portico.agents.loop.reply import ModelError
from portico.agents.loop.wires.request import CompletionRequest

FRAMES = b'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\ndata: [DONE]\n\n'
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@asynccontextmanager
async def serving(end: bytes, head: bytes = HEAD) -> AsyncIterator[tuple[ModelEndpoint, list[str]]]:
    """A bare endpoint that says one word and ends its body so; the list has one entry for each connection."""
    connections: list[str] = []
    writers: list[asyncio.StreamWriter] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append("opened")
        while asked := await reader.readuntil(b"\r\n\r\n"):
            size = next(int(line.split(b":")[1]) for line in asked.lower().split(b"\r\n") if b"content-length" in line)
            await reader.readexactly(size)
            writer.write(head + f"{len(FRAMES):x}\r\n".encode() + FRAMES + b"\r\n" + end)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await answer(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    where = ModelEndpoint("test", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    try:
        yield where, connections
    finally:
        await where.close()
        for writer in writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        server.close()


async def ask(where: ModelEndpoint) -> str:
    async def drained() -> None:
        pass

    return (
        await where.ask(
            CompletionRequest("m", [{"role": "user", "content": "hello"}]), lambda text, thought: None, drained
        )
    ).text


async def test_the_next_request_uses_the_same_connection() -> None:
    """Each call of the model shook hands anew: the end of the last body had not been read."""
    async with serving(b"0\r\n\r\n") as (where, connections):
        assert [await ask(where) for _ in range(3)] == ["Hi"] * 3
        assert connections == ["opened"]


@pytest.mark.parametrize("end", [b"", b"5\r\nnoise\r\n"], ids=["no end", "noise without an end"])
async def test_an_answer_is_whole_also_when_its_body_never_ends(end: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "END_SECONDS", 0.001)
    async with serving(end) as (where, connections):
        assert [await ask(where) for _ in range(2)] == ["Hi"] * 2
        assert connections == ["opened"] * 2


async def test_a_web_page_is_reported_as_one() -> None:
    """A login page or a wrong address answers 200: "the stream ended" would not lead to the cause."""
    async with serving(b"0\r\n\r\n", HEAD.replace(b"text/event-stream", b"text/html; charset=utf-8")) as (where, _):
        with pytest.raises(ModelError, match=r"answered with a web page, .* Most end in /v1") as raised:
            await ask(where)
    assert not raised.value.again
