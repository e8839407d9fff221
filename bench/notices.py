"""Do 1,000 webhooks of which half hang slow a session, and do the others hear at once?

One failed turn is told to all of them; while 500 calls hang, messages are sent to other sessions. The same host
without webhooks is the baseline. Receivers are on loopback, in this process.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import uvloop

from bench.automation import _serve, _token
from bench.http import Connection
from bench.portal import Server, running
from bench.row import Row, ms, p50, verdict

QUESTION = "1,000 webhooks of which half hang"

TARGETS = 1_000
MESSAGES = 20


def measure() -> list[Row]:
    return uvloop.run(_measure())


async def _measure() -> list[Row]:
    got: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with _receiver(got) as good, _receiver(None) as bad, running(_serve(folder / "bare")) as bare:
            base = p50(await _messages(bare, _token(folder / "bare")))
            (folder / "full").mkdir()
            (folder / "full" / "settings.toml").write_text(_settings(good, bad))
            async with running(_serve(folder / "full")) as host:
                began = time.monotonic()
                await _send(Connection(host.port, _token(folder / "full")), "[[crash]]")
                took = p50(await _messages(host, _token(folder / "full")))
                while len(got) < TARGETS // 2:  # noqa: ASYNC110 - the slowest of them is asked for, not the moment
                    await asyncio.sleep(0.1)
    return [
        Row(
            f"a message, while {TARGETS // 2} of {TARGETS:,} webhooks hang",
            f"p50 {ms(took)}",
            f"without webhooks {ms(base)}",
            f"{took / base:.1f}x",
            verdict("50 ms", took < 0.05),
        ),
        Row(f"the {TARGETS // 2} others hear of it", f"all within {max(got) - began:.1f} s", "", "", ""),
    ]


def _settings(good: int, bad: int) -> str:
    head = '[notices]\nallow_private = ["127.0.0.1"]\n'
    return head + "".join(
        f'[[notices.webhooks]]\nname = "w{number}"\nurl = "http://127.0.0.1:{bad if number % 2 else good}/{number}"\n'
        f'secret = "whsec_{"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"}"\nkinds = ["turn_failed"]\n'
        for number in range(TARGETS)
    )


@asynccontextmanager
async def _receiver(got: list[float] | None) -> AsyncIterator[int]:
    """Its port; without a list it takes every call and never answers."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if got is None:
            await reader.read()
        else:
            got.append(time.monotonic())
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=TARGETS)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def _messages(host: Server, token: str) -> list[float]:
    """Seconds from a message to its durable turn."""
    ours, found = Connection(host.port, token), []
    for _ in range(MESSAGES):
        began = time.monotonic()
        await _send(ours, "[[say:x]]")
        found.append(time.monotonic() - began)
        await asyncio.sleep(0.1)
    return found


async def _send(ours: Connection, text: str) -> None:
    body = msgspec.json.encode({"agent": "scripted"}).decode()
    session = msgspec.json.decode(await ours("/v1/sessions", "POST", body))["id"]
    answer = await ours(f"/v1/sessions/{session}/messages", "POST", msgspec.json.encode({"text": text}).decode())
    assert b"turn" in answer, answer
