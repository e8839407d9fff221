"""The transport to model endpoints, against raw bytes of servers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest

from portico.agents.loop.http_transport import FastTransport, needs_proxy

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Serve = Callable[[Handler], Awaitable[str]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    servers: list[asyncio.Server] = []

    writers: list[asyncio.StreamWriter] = []

    async def start(handler: Handler) -> str:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writers.append(writer)
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                await handler(reader, writer)

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        servers.append(server)
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/x?y=1"

    yield start
    for writer in writers:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
    for server in servers:
        server.close()


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=FastTransport(), timeout=5) as client:
        yield client


async def request(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    size = next(int(line.split(":")[1]) for line in head.split("\r\n") if line.lower().startswith("content-length"))
    return head, await reader.readexactly(size)


def answers(data: bytes, *, close: bool = True, times: int = 1) -> Handler:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(times):
            await request(reader)
            writer.write(data)
            await writer.drain()
        if close:
            writer.close()

    return handler


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("data", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (CHUNKED + b"1\r\no\r\n1\r\nk\r\n0\r\n\r\n", b"ok"),
        (CHUNKED + b"1;x=y\r\no\r\n1\r\nk\r\n0\r\nTrailer: t\r\n\r\n", b"ok"),
        (b"HTTP/1.1 200 OK\r\n\r\nok", b"ok"),
        (b"HTTP/1.0 200 OK\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", b""),
    ],
)
async def test_bodies(serve: Serve, http: httpx.AsyncClient, data: bytes, body: bytes) -> None:
    answer = await http.post(await serve(answers(data)), content=b"x")
    assert answer.content == body
    assert "link" not in answer.headers


async def test_the_request_is_sent_as_it_is(serve: Serve, http: httpx.AsyncClient) -> None:
    seen: list[tuple[str, bytes]] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await request(reader))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    url = await serve(handler)
    await http.post(url, json={"a": "ü"}, headers={"Authorization": "Bearer k"})
    [(head, body)] = seen
    lines = head.lower().split("\r\n")
    assert lines[0] == "post /v1/x?y=1 http/1.1"
    assert f"host: {httpx.URL(url).netloc.decode()}" in lines
    assert "authorization: bearer k" in lines
    assert lines.count(f"content-length: {len(body)}") == 1
    assert body == '{"a":"ü"}'.encode()


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", httpx.ReadError),
        (b"nonsense\r\n\r\n", httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", httpx.RemoteProtocolError),
        (CHUNKED + b"5\r\nok", httpx.RemoteProtocolError),
    ],
)
async def test_broken_answers(
    serve: Serve, http: httpx.AsyncClient, data: bytes, error: type[httpx.TransportError]
) -> None:
    with pytest.raises(error):
        await http.post(await serve(answers(data)), content=b"x")


async def test_a_silent_server_times_out_and_a_refused_connection_is_named(serve: Serve) -> None:
    url = await serve(answers(CHUNKED, close=False))
    async with httpx.AsyncClient(transport=FastTransport(), timeout=0.1) as http:
        with pytest.raises(httpx.ReadTimeout):
            await http.post(url, content=b"x")
        with pytest.raises(httpx.ConnectError):
            await http.post("http://127.0.0.1:1/", content=b"x")


async def test_a_connection_is_used_again_and_replaced_when_the_server_has_closed_it(
    serve: Serve, http: httpx.AsyncClient
) -> None:
    ok = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    connections: list[asyncio.StreamWriter] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await answers(ok, times=2)(reader, writer)

    url = await serve(handler)
    for _ in range(3):
        assert (await http.post(url, content=b"x")).content == b"ok"
    assert len(connections) == 2


async def test_an_answer_that_is_not_read_to_its_end_is_not_used_again(serve: Serve, http: httpx.AsyncClient) -> None:
    url = await serve(answers(CHUNKED + b"2\r\nok\r\n", close=False))
    for _ in range(2):
        async with http.stream("POST", url, content=b"x") as answer:
            assert [piece async for piece in _first(answer)] == [b"ok"]


async def _first(answer: httpx.Response) -> AsyncIterator[bytes]:
    async for piece in answer.aiter_bytes():
        yield piece
        return


async def test_a_body_that_nobody_reads_pauses_the_connection(serve: Serve, http: httpx.AsyncClient) -> None:
    size = 20 * 1024 * 1024
    sent = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        for _ in range(20):
            writer.write(b"x" * (size // 20))
            await writer.drain()
        sent.set()

    async with http.stream("POST", await serve(handler), content=b"x") as answer:
        pieces = answer.aiter_bytes()
        got = len(await anext(pieces))
        assert not sent.is_set()
        async for piece in pieces:
            got += len(piece)
    assert got == size


async def test_what_arrived_since_the_last_read_is_one_piece(serve: Serve, http: httpx.AsyncClient) -> None:
    pieces = b"".join(b"3\r\nab\n\r\n" for _ in range(100))
    async with http.stream("POST", await serve(answers(CHUNKED + pieces + b"0\r\n\r\n")), content=b"x") as answer:
        assert [piece async for piece in answer.aiter_bytes()] == [b"ab\n" * 100]


@pytest.mark.parametrize(
    ("environ", "url", "needed"),
    [
        ({}, "https://a.example/", False),
        ({"HTTPS_PROXY": "http://p:1"}, "https://a.example/", True),
        ({"HTTPS_PROXY": "http://p:1"}, "http://a.example/", False),
        ({"ALL_PROXY": "http://p:1"}, "http://a.example/", True),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a.example"}, "https://a.example/", False),
    ],
)
def test_proxies_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], url: str, needed: bool
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert needs_proxy(httpx.URL(url)) is needed


async def test_a_secure_address_is_never_reached_in_plain_text(serve: Serve) -> None:
    """An endpoint at http:// may redirect to https:// on the same host: the key would have been sent unencrypted."""
    seen: list[bytes] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.read(100))
        writer.close()

    url = (await serve(handler)).replace("http:", "https:")
    async with httpx.AsyncClient(transport=FastTransport(), timeout=5) as http:
        with pytest.raises(httpx.ConnectError):
            await http.post(url, content=b"x", headers={"Authorization": "Bearer k"})
    assert [each[:1] for each in seen] == [b"\x16"], "the first byte of TLS"
