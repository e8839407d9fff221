"""SECURITY 10 and 24: sizes, rates and wrong tokens."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import websockets

from portico import limits
from portico.kernel import limits as kernel_limits
from portico.kernel.rate import Bucket
from portico.server.identity import new_token
from portico.server.rate import WrongTokens
from tests.doors import gate_standing
from tests.doors.gate_standing import connect
from tests.doors.standing import Standing, problem, standing

anyio_backend, shared = gate_standing.anyio_backend, gate_standing.shared


async def test_a_body_may_be_as_large_as_its_limit_and_not_one_byte_larger(shared: Standing) -> None:
    async def pieces(size: int) -> AsyncIterator[bytes]:
        for _ in range(size):
            yield b"x"

    assert (await shared.http.post("/test/small", content=b"x" * 10)).text == "10"
    assert (await shared.http.post("/test/small", content=pieces(10))).text == "10"
    problem(await shared.http.post("/test/small", content=b"x" * 11), 413, "too_large", "body")
    problem(await shared.http.post("/test/small", content=pieces(11)), 413, "too_large", "body")


async def test_the_default_body_limit(shared: Standing) -> None:
    full = b"x" * limits.BODY_BYTES
    assert (await shared.http.post("/test/length", content=full)).text == str(limits.BODY_BYTES)
    problem(await shared.http.post("/test/length", content=full + b"x"), 413, "too_large", "body")


async def test_a_frame_may_be_as_large_as_its_limit_and_not_one_byte_larger(shared: Standing) -> None:
    async with await connect(shared, f"/test/echo?tkn={shared.home.token()}") as socket:
        await socket.send("x" * limits.FRAME_BYTES)
        assert await socket.recv() == str(limits.FRAME_BYTES)
        with contextlib.suppress(websockets.ConnectionClosed):  # it may go before all of it is sent
            await socket.send("x" * (limits.FRAME_BYTES + 1))
        await socket.wait_closed()
        assert socket.close_code == 1009


async def test_connections_over_the_limit_are_told_to_come_back(
    shared: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CONNECTIONS", 2)
    token = shared.home.token()
    async with await connect(shared, f"/test/echo?tkn={token}"):
        assert (await shared.http.get("/v1")).status_code == 200
        async with await connect(shared, f"/test/echo?tkn={token}"):
            answer = await shared.http.get("/v1")
            problem(answer, 429, "rate_limited")
            assert answer.headers["retry-after"] == "5"
            with pytest.raises(websockets.InvalidStatus) as refused:
                await connect(shared, f"/test/echo?tkn={token}")
            assert refused.value.response.status_code == 429


async def test_headers_may_be_as_large_as_their_limit_and_not_one_byte_larger(shared: Standing) -> None:
    plain = await shared.http.get("/v1")
    size = len(b"/v1") + sum(len(name) + len(value) + 4 for name, value in plain.request.headers.raw)
    room = limits.HEADER_BYTES - size - len("x-long") - 4
    assert (await shared.http.get("/v1", headers={"X-Long": "x" * room})).status_code == 200
    problem(await shared.http.get("/v1", headers={"X-Long": "x" * (room + 1)}), 413, "too_large", "headers")


async def test_the_head_of_a_stream_is_all_of_it(shared: Standing) -> None:
    """HEAD held the stream open for ever, and whoever sent the next request on that connection waited as long."""
    session = await shared.start()
    routes = [each.path.replace("{id}", session) for each in shared.server.gate.table if getattr(each, "stream", False)]
    assert {"/events", "/v1/events", f"/v1/sessions/{session}/events"} <= set(routes)
    token = f"Host: localhost\r\nAuthorization: Bearer {shared.home.token()}\r\n"
    for path in (*routes, "/events?session=nosuch", "/v1/events?after=x", "/v1/sessions/nosuch/events"):
        reader, writer = await asyncio.open_connection("127.0.0.1", shared.server.port)
        head, following = f"HEAD {path} HTTP/1.1\r\n{token}", f"GET /api/test HTTP/1.1\r\n{token}\r\n"
        writer.write(f"{head}Accept: text/event-stream\r\n\r\n{following}".encode())
        async with asyncio.timeout(30):
            first = await reader.readuntil(b"\r\n\r\n")
            second = await reader.readuntil(b"}")
        assert first.startswith((b"HTTP/1.1 200", b"HTTP/1.1 40")), first
        assert second.startswith(b"HTTP/1.1 200"), (path, second)
        assert b"Hello, world!" in second, (path, second)
        writer.close()
        await writer.wait_closed()


async def test_a_head_that_never_ends_is_cut_off(shared: Standing) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", shared.server.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
    sent = 0
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(30):
            while not reader.at_eof() and sent < 100 * limits.HEADER_BYTES:
                writer.write(b"x" * 8192)
                await writer.drain()
                await asyncio.sleep(0)
                sent += 8192
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    assert sent < 100 * limits.HEADER_BYTES
    assert (await shared.http.get("/v1")).status_code == 200


async def test_too_many_messages_of_one_token_are_slowed_and_nobody_elses(
    shared: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_limits, "REQUESTS_PER_SECOND", 0.001)
    monkeypatch.setattr(kernel_limits, "REQUEST_BURST", 3)
    token = new_token(shared.home, "busy", ["drive"])
    async with shared.client(token) as http:
        assert [(await http.post("/test/limited")).status_code for _ in range(4)] == [200, 200, 200, 429]
        answer = await http.post("/test/limited")
        problem(answer, 429, "rate_limited")
        assert int(answer.headers["retry-after"]) >= 1
        assert (await http.post("/test/length")).status_code == 200  # only what is limited
    assert (await shared.http.post("/test/limited")).status_code == 200


def test_a_bucket_fills_again() -> None:
    bucket = Bucket(rate=2, burst=2)
    assert [bucket.take(10.0) for _ in range(3)] == [0, 0, 0.5]
    assert bucket.take(10.5) == 0
    assert [bucket.take(100.0) for _ in range(3)] == [0, 0, 0.5]  # never more than the burst


# -- wrong tokens (SECURITY 10) --------------------------------------------------------------------------------


def test_wrong_tokens_are_counted_per_address_and_forgotten_after_a_minute() -> None:
    wrong = WrongTokens()
    first = [wrong.count("1.1.1.1", 0.0) for _ in range(limits.WRONG_TOKENS)]
    assert first == [(0.0, True)] * limits.WRONG_TOKENS
    assert wrong.count("1.1.1.1", 1.0) == (1.0, True)  # the first slowed one is worth a line
    assert wrong.count("1.1.1.1", 2.0) == (1.0, False)
    assert wrong.count("2.2.2.2", 2.0) == (0.0, True)
    assert wrong.count("1.1.1.1", 63.0) == (0.0, True)


async def test_a_guesser_is_slowed_and_the_owner_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WrongTokens, "_WAIT", 1.5)
    async with standing(tmp_path) as here:
        async with here.client("guess") as guesser:
            statuses = [(await guesser.get("/v1")).status_code for _ in range(limits.WRONG_TOKENS)]
            assert statuses == [401] * limits.WRONG_TOKENS
            guesses = [asyncio.ensure_future(guesser.get("/v1")) for _ in range(5)]
            login = asyncio.ensure_future(here.stranger.post("/login", data={"tkn": "guess"}))
            assert (await here.http.get("/v1")).status_code == 200  # same address, right token
            assert not any(guess.done() for guess in guesses)  # it was not held up: they all wait still
            for answer in [*await asyncio.gather(*guesses), await login]:
                problem(answer, 429, "rate_limited")
                assert answer.headers["retry-after"] == "60"
        audit = (await here.http.get("/v1/audit")).json()["audit"]
        failures = [each for each in audit if each["action"] == "login.failed"]
        # the guesses are on record, but a guesser cannot fill the disk
        assert len(failures) == limits.WRONG_TOKENS + 1
        assert failures[0]["detail"] == {"address": "127.0.0.1", "slowed": False}
        assert "guess" not in str(failures)
