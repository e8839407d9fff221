"""The log from a cursor: streams that come back without gap or repeat, pages, blobs, the audit record."""

import asyncio
import contextlib
import socket
from pathlib import Path
from typing import Any

import pytest

from portico import limits
from portico.kernel import limits as kernel_limits
from portico.kernel.errors import LogUnavailable
from portico.kernel.events import PartDelta
from portico.kernel.log.sqlite import SqliteLog
from portico.server.identity import new_token
from tests.doors.standing import Standing, problem, read_events, standing

SSE = {"Accept": "text/event-stream"}


async def _stream(here: Standing, path: str, count: int, **headers: str) -> list[tuple[int, dict[str, Any]]]:
    async with here.http.stream("GET", path, headers={**SSE, **headers}) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        return await read_events(answer, count)


async def test_a_stream_resumes_from_any_position(shared: Standing) -> None:
    ident = await shared.start()
    state = await shared.say(ident, "[[deltas:5]]")
    path, head = f"/v1/sessions/{ident}/events", state["pos"]
    whole = await _stream(shared, path, head)
    assert [pos for pos, _ in whole] == list(range(1, head + 1))
    assert [data["pos"] for _, data in whole] == list(range(1, head + 1))
    for cut in range(head):
        rest = await _stream(shared, path, head - cut, **{"Last-Event-ID": str(cut)})
        assert rest == whole[cut:]
    assert await _stream(shared, f"{path}?after={head - 1}", 1) == whole[-1:]


async def test_a_stream_goes_from_old_to_new_without_a_seam(shared: Standing) -> None:
    ident = await shared.start()
    path = f"/v1/sessions/{ident}/events"
    async with shared.http.stream("GET", path, headers=SSE) as answer:
        reading = asyncio.ensure_future(read_events(answer, 10))
        for i in range(3):
            state = await shared.say(ident, f"[[say:{i}]]")
        found = await reading
    assert [pos for pos, _ in found] == list(range(1, len(found) + 1))
    assert state["pos"] >= len(found)


async def test_everything_is_streamed_in_the_order_of_seq(shared: Standing) -> None:
    first, second = await shared.start(), await shared.start()
    since = (await shared.http.get("/v1")).json()["log"]["seq"]
    await asyncio.gather(shared.say(first, "[[say:a]]"), shared.say(second, "[[say:b]]"))
    head = (await shared.http.get("/v1")).json()["log"]["seq"]
    all_of_it = await _stream(shared, f"/v1/events?after={since}", head - since)
    assert [seq for seq, _ in all_of_it] == [data["seq"] for _, data in all_of_it] == list(range(since + 1, head + 1))
    two = f"/v1/events?channel=session/{first}&channel=session/{second}&after={since}"
    assert await _stream(shared, two, head - since) == [each for each in all_of_it if each[1]["channel"] != "host"]


async def test_a_page_of_events(shared: Standing) -> None:
    ident = await shared.start()
    head = (await shared.say(ident, "[[say:x]]"))["pos"]
    path = f"/v1/sessions/{ident}/events"
    page = (await shared.http.get(f"{path}?after=2&limit=3")).json()
    assert [event["pos"] for event in page["events"]] == [3, 4, 5]
    assert page["head"] == head
    epoch = shared.server.host.log.epoch
    assert (await shared.http.get(f"{path}?after={head}")).json() == {"events": [], "head": head, "epoch": epoch}
    problem(await shared.http.get(f"{path}?after={10**17}"), 410, "cursor_lost", "after")
    everything = (await shared.http.get("/v1/events?limit=5")).json()
    assert len(everything["events"]) == 5


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("after=x", "after"),
        ("after=-1", "after"),
        ("after=%C2%B2", "after"),
        ("after=" + "9" * 30, "after"),
        ("limit=0", "limit"),
        (f"limit={kernel_limits.READ_EVENTS + 1}", "limit"),
        ("limit=%C2%B2", "limit"),
    ],
)
async def test_a_wrong_cursor_or_limit_is_refused(shared: Standing, query: str, field: str) -> None:
    ident = await shared.start()
    for path in (f"/v1/sessions/{ident}/events", "/v1/events"):
        problem(await shared.http.get(f"{path}?{query}"), 400, "bad_request", field)


async def test_wrong_cursors_in_the_header_and_wrong_channels_are_refused(shared: Standing) -> None:
    ident = await shared.start()
    path = f"/v1/sessions/{ident}/events"
    problem(await shared.http.get(path, headers={**SSE, "Last-Event-ID": "x"}), 400, "bad_request", "after")
    for channel in ("nosuch", "session/", "session/../x", "host/x", "", "session/a/b"):
        problem(await shared.http.get("/v1/events", params={"channel": channel}), 400, "bad_request", "channel")


async def test_channels_of_one_stream_are_bounded(shared: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SUBSCRIPTIONS", 5)
    names = [f"session/session-{i}" for i in range(6)]
    assert (await shared.http.get("/v1/events", params={"channel": names[:5]})).status_code == 200
    problem(await shared.http.get("/v1/events", params={"channel": names}), 400, "bad_request", "channel")


async def test_a_silent_stream_beats(shared: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HEARTBEAT_SECONDS", 0.02)
    async with shared.http.stream("GET", "/v1/events?channel=job/none", headers=SSE) as answer:
        async with asyncio.timeout(30):
            async for line in answer.aiter_lines():
                if line == ": beat":
                    return


async def test_a_slow_reader_is_ended_alone_and_comes_back_without_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_limits, "FOLLOWER_BYTES", 500_000)
    async with standing(tmp_path) as here:
        ident = await here.start()
        channel, path = f"session/{ident}", f"/v1/sessions/{ident}/events"
        log = here.server.host.log
        plug = socket.socket()
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)  # so that the pipe is full soon
        plug.connect(("127.0.0.1", here.server.port))
        reader, writer = await asyncio.open_connection(sock=plug, limit=1024)
        token = here.home.token()
        writer.write(
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
            "Accept: text/event-stream\r\nConnection: close\r\n\r\n".encode()
        )
        assert b"retry" in await reader.readuntil(b"retry: 1000\n\n")  # and then it reads nothing any more
        async with here.http.stream("GET", path, headers=SSE) as brisk:
            reading = asyncio.ensure_future(read_events(brisk, 81))
            assert isinstance(log, SqliteLog)
            while log.followers < 2:  # noqa: ASYNC110 - who still replays is not too slow, only behind
                await asyncio.sleep(0.01)
            for _ in range(80):  # much more than all the buffers between here and there
                await log.append(channel, PartDelta(turn="t", part="p", text="x" * 100_000))
            assert [pos for pos, _ in await reading][-1] == 81  # the other reader was not held up
        data = await asyncio.wait_for(reader.read(), 60)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        assert b'event: end\ndata: {"code":"too_slow"}' in data
        seen = [
            int(line.removeprefix(b"id: ").partition(b".")[0]) for line in data.split(b"\n") if line.startswith(b"id: ")
        ]
        assert seen == list(range(seen[0], seen[-1] + 1))  # a prefix: nothing is dropped in between
        assert seen[-1] < 81
        rest = await _stream(here, path, 81 - seen[-1], **{"Last-Event-ID": str(seen[-1])})
        assert [pos for pos, _ in rest] == list(range(seen[-1] + 1, 82))


async def test_a_stream_says_that_nothing_can_be_written(shared: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HEARTBEAT_SECONDS", 0.01)
    monkeypatch.setattr(shared.server.host.log, "_down", LogUnavailable("The disk is full."))
    async with asyncio.timeout(30), shared.http.stream("GET", "/v1/events?channel=job/none", headers=SSE) as answer:
        async for line in answer.aiter_lines():
            if line == ': down "The disk is full."':
                return


async def test_blobs_go_out_as_downloads(shared: Standing) -> None:
    digest = await shared.server.host.log.put_blob(b"<svg onload=alert(1)>")
    answer = await shared.http.get(f"/v1/blobs/{digest}")
    assert answer.content == b"<svg onload=alert(1)>"
    assert answer.headers["content-disposition"] == "attachment"
    assert answer.headers["content-type"] == "application/octet-stream"
    problem(await shared.http.get(f"/v1/blobs/{'0' * 64}"), 404, "not_found")


async def test_the_audit_record_is_read_from_a_position(shared: Standing) -> None:
    host = shared.server.host
    await host.audit("test.one", "tester", note=1)
    await host.audit("test.two", "tester")
    audit = (await shared.http.get("/v1/audit")).json()["audit"]
    assert [each["action"] for each in audit[-2:]] == ["test.one", "test.two"]
    assert audit[-2]["detail"] == {"note": 1}
    later = (await shared.http.get(f"/v1/audit?after={audit[-2]['pos']}")).json()["audit"]
    assert later == audit[-1:]
    problem(await shared.http.get("/v1/audit?after=x"), 400, "bad_request", "after")
    problem(await shared.http.get("/v1/audit?limit=0"), 400, "bad_request", "limit")


async def test_the_audit_record_comes_in_pages(shared: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request read the whole channel of the host. A page reads as much as one read has, also where it finds
    nothing."""
    host = shared.server.host
    for number in range(3):
        await host.audit(f"page.{number}", "tester")
        await host.start(by="tester", cwd="/")
    whole = (await shared.http.get("/v1/audit")).json()
    monkeypatch.setattr("portico.kernel.limits.READ_EVENTS", 2)
    found: list[Any] = []
    after: int | None = 0
    while after is not None:
        page = (await shared.http.get(f"/v1/audit?after={after}&limit=1")).json()
        assert len(page["audit"]) <= 1
        found += page["audit"]
        after = page["next"]
    assert found == whole["audit"]


async def test_the_audit_record_is_the_admins_and_its_places_are_everybodys(shared: Standing) -> None:
    """A token that may only read saw in channel `host` what `GET /v1/audit` kept from it."""
    await shared.server.host.audit("token.made", "ada", name="secret-name")
    async with shared.client(new_token(shared.home, "reader", ["read"])) as reader:
        for query in ("?channel=host", "?channel=host&channel=task/x", ""):
            answer = await reader.get(f"/v1/events{query}")
            assert "secret-name" not in answer.text
        seen = (await reader.get("/v1/events?channel=host")).json()["events"]
        async with reader.stream("GET", "/v1/events?channel=host", headers=SSE) as stream_:
            streamed = await read_events(stream_, len(seen))
    everything = (await shared.http.get("/v1/events?channel=host")).json()["events"][: len(seen)]  # more may follow
    assert [each["pos"] for each in seen] == [each["pos"] for each in everything] == [pos for pos, _ in streamed]
    kept = [each["event"] for each in seen if each["event"]["type"] == "audit"]
    assert kept
    assert {(each["action"], each["by"], each.get("detail", "")) for each in kept} == {("withheld", "", "")}
    assert "secret-name" not in str(streamed)
