"""The server that the doors, the tools of sessions, the link between hosts and the scripted model share."""

import asyncio
import logging
import socket

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from portico.server.embedded import EmbeddedServer


class App:
    def __init__(self) -> None:
        self.entered, self.proceed = asyncio.Event(), asyncio.Event()
        self.proceed.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.entered.set()
        await self.proceed.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


def opened() -> tuple[socket.socket, str]:
    listening = socket.create_server(("127.0.0.1", 0))
    return listening, f"http://127.0.0.1:{listening.getsockname()[1]}"


async def test_it_answers_until_it_is_closed() -> None:
    listening, url = opened()
    server = EmbeddedServer(App(), [listening], "test")
    await server.started()
    async with httpx.AsyncClient() as client:
        answer = await client.get(url)
        assert (answer.text, {*answer.headers}) == ("ok", {"content-length", "date"})
        await server.close()
        with pytest.raises(httpx.ConnectError):
            await client.get(url)


async def test_a_running_request_is_answered_before_the_close_returns() -> None:
    listening, url = opened()
    app = App()
    app.proceed.clear()
    server = EmbeddedServer(app, [listening], "test", timeout_graceful_shutdown=None)
    await server.started()
    async with httpx.AsyncClient() as client:
        request = asyncio.create_task(client.get(url))
        await app.entered.wait()
        server.refuse()
        closing = asyncio.create_task(server.close())
        app.proceed.set()
        assert (await request).text == "ok"
        await closing


async def test_a_server_that_cannot_listen_reports_it(caplog: pytest.LogCaptureFixture) -> None:
    listening, _ = opened()
    listening.close()
    server = EmbeddedServer(App(), [listening], "test")
    with pytest.raises(OSError, match="Bad file descriptor"):
        await server.started()
    with caplog.at_level(logging.ERROR, "portico.tasks"):
        await server.close()
    assert "test failed" in caplog.text


async def test_it_installs_no_signal_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("a signal handler")

    monkeypatch.setattr("signal.signal", refused)
    listening, _ = opened()
    server = EmbeddedServer(App(), [listening], "test")
    await server.started()
    await server.close()
