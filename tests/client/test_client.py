"""The Python client: typed calls, and streams that come back from their cursor."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import httpx
import pytest

from portico.client import Client, RemoteRecord
from portico.client.client import RemoteError
from portico.kernel.errors import Forbidden, Unreachable
from portico.kernel.events import PartDelta, PartEnded, TurnEnded, TurnStarted
from portico.server.home import HostEndpoint
from tests.doors.standing import Standing, standing
from tests.process import HostProcess


@pytest.fixture
async def client(shared: Standing) -> AsyncIterator[Client]:
    async with Client.local(shared.home.path) as client:
        yield client


async def test_the_calls(client: Client, tmp_path: Path) -> None:
    assert (await client.about())["name"] == "portico"
    assert [agent.id for agent in await client.agents()] == ["scripted", "demo"]
    session = await client.start(agent="scripted", model="gpt-4.1", cwd=str(tmp_path), title="One", config={"a": 1})
    state = await session.state()
    assert (state.agent, state.model, state.cwd, state.title, state.config) == (
        "scripted",
        "gpt-4.1",
        str(tmp_path),
        "One",
        {"a": 1},
    )
    await session.rename("Two")
    assert [each.title for each in await client.sessions(limit=1)] == ["Two"]
    assert b"# Two" in await session.export()
    assert await session.head() == 2
    await session.delete()
    with pytest.raises(RemoteError) as error:
        await session.state()
    assert (error.value.code, error.value.status) == ("not_found", 404)


async def test_sending_gives_the_events_of_the_turn_through_its_end(client: Client) -> None:
    session = await client.start(agent="scripted")
    async with aclosing(session.send("[[say:hi]]")) as records:
        events = [record.event async for record in records]
    assert isinstance(events[0], TurnStarted)
    assert isinstance(events[-1], TurnEnded)
    assert "hi" in [event.text for event in events if isinstance(event, PartEnded)]


async def test_a_queued_message_waits_for_its_own_turn(client: Client) -> None:
    session = await client.start(agent="scripted")
    await session.post("[[delay:100]][[say:first]]")
    async with aclosing(session.send("[[say:second]]")) as records:
        texts = [record.event.text async for record in records if isinstance(record.event, PartEnded)]
    assert "second" in texts
    assert "first" not in texts


async def test_cancel_and_resume(client: Client) -> None:
    session = await client.start(agent="scripted")
    await session.post("[[hang]]")
    await session.cancel()
    assert (await session.state()).turns[0].outcome == "cancelled"
    with pytest.raises(RemoteError) as error:
        await session.resume()
    assert error.value.code == "conflict"


async def test_errors_carry_the_hosts_code_and_field(client: Client) -> None:
    with pytest.raises(RemoteError) as error:
        await client.start(cwd="relative")
    assert (error.value.code, error.value.field, error.value.status) == ("bad_request", "cwd", 400)
    async with Client(client.url, "wrong") as stranger:
        with pytest.raises(RemoteError) as refused:
            await stranger.about()
    assert refused.value.code == "unauthenticated"


async def test_texts_with_strange_line_ends_arrive_whole(client: Client) -> None:
    """U+2028 and U+0085 in an agent's text used to cut a record in two and end the stream."""
    text = "one\u2028two\u2029three\x85four\x0bfive\x1csix\r\nseven"
    session = await client.start(agent="scripted")
    async with aclosing(session.send(f"[[say:{text}]]")) as records:
        texts = [record.event.text async for record in records if isinstance(record.event, PartEnded)]
    assert text in texts


async def test_a_missing_host_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match=f"portico serve --home {re.escape(str(tmp_path))}$"):
        Client.local(tmp_path)
    async with Client("http://127.0.0.1:1") as client:
        with pytest.raises(Unreachable, match="does not answer"):
            await client.about()


async def test_an_endpoint_file_cannot_choose_which_secret_is_sent(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        endpoint = here.home.endpoint()
        assert endpoint is not None
        (tmp_path / "other-secret").write_text("x" * 50)
        here.home.announce(HostEndpoint(endpoint.url, endpoint.pid, str(tmp_path / "other-secret"), "1"))
        with pytest.raises(Forbidden, match="strange token file"):
            Client.local(here.home.path)


async def test_a_home_folder_has_many_names(tmp_path: Path) -> None:
    """`--home ../home` was called strange."""
    (tmp_path / "sub").mkdir()
    async with standing(tmp_path) as here:
        (tmp_path / "link").symlink_to(here.home.path)
        for name in (tmp_path / "sub/../home", tmp_path / "link"):
            async with Client.local(name) as client:
                await client.about()


async def test_a_stream_over_a_graceful_restart_has_no_gap_and_no_repeat(tmp_path: Path) -> None:
    """The host comes back on another port: a local client finds it by its endpoint file."""
    found: list[RemoteRecord] = []
    async with standing(tmp_path) as here:
        ident = await here.start()
        client = Client.local(here.home.path)
        reading = asyncio.ensure_future(_collect(client, ident, found))
        await here.say(ident, "[[deltas:20]]")
        first = here.server.port
    async with standing(tmp_path) as here:
        assert here.server.port != first
        await here.say(ident, "[[deltas:20]][[say:end]]")
        await asyncio.wait_for(reading, 60)
        stored = (await here.http.get(f"/v1/sessions/{ident}/events?limit=10000")).json()["events"]
    await client.close()
    assert [record.pos for record in found] == [each["pos"] for each in stored]
    assert [record.seq for record in found] == [each["seq"] for each in stored]


async def test_a_stream_over_kill_9_has_no_gap_and_no_repeat(tmp_path: Path) -> None:
    home = tmp_path / "home"
    found: list[RemoteRecord] = []
    host = await asyncio.to_thread(HostProcess, home)
    async with Client.local(home) as client:
        session = await client.start(agent="scripted", cwd=str(tmp_path))
        await session.post("[[gap:5]][[deltas:10000]]")
        reading = asyncio.ensure_future(_collect(client, session.id, found, ends=1))
        async with asyncio.timeout(30):
            while not any(isinstance(record.event, PartDelta) for record in found):  # noqa: ASYNC110 - a list has no event
                await asyncio.sleep(0.01)
        await asyncio.to_thread(host.kill)
        seen = [record.pos for record in found]
        again = await asyncio.to_thread(HostProcess, home, port=host.port)
        await asyncio.wait_for(reading, 60)
        assert isinstance(found[-1].event, TurnEnded)
        assert found[-1].event.outcome == "interrupted"
        positions = [record.pos for record in found]
        assert positions[: len(seen)] == seen
        assert positions == list(range(1, len(positions) + 1))
        await asyncio.to_thread(again.stop)


@pytest.mark.parametrize(("patience", "failures", "told"), [(0.1, 0, 0), (60, 1, 1), (60, 3, 1)])
async def test_a_quiet_time_is_no_outage(patience: float, failures: int, told: int) -> None:
    """A follower of an idle session gave up at once when the host restarted: the quiet time before it counted."""
    calls: list[str] = []
    lost: list[str] = []

    async def quiet() -> AsyncIterator[bytes]:
        yield b": beat\n\n"
        await asyncio.sleep(0.2)  # longer than the client's patience in the first case
        raise httpx.ReadError("gone")

    async def answer(request: httpx.Request) -> httpx.Response:
        calls.append(request.headers["Last-Event-ID"])
        if len(calls) == 1:
            return httpx.Response(200, content=quiet())
        if len(calls) <= 1 + failures:
            raise httpx.ConnectError("nobody there")
        return httpx.Response(200, content=b'data: {"seq":8,"channel":"host","pos":8,"time":1,"event":{}}\n\n')

    client = Client("http://host.test", reconnect_timeout=patience)
    client.on_trouble = lost.append
    client._http = httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url=client.url)
    async with client, aclosing(client.follow("/v1/events", 7)) as records:
        assert (await anext(records)).pos == 8
    assert (calls, len(lost)) == (["7"] * (failures + 2), told)


async def test_a_host_that_cannot_write_says_so_once() -> None:
    """Whoever watched a turn while the disk was full saw nothing at all."""
    said: list[str] = []
    down = b': down "The disk is full."\n\n'
    data = b'data: {"seq":8,"channel":"host","pos":8,"time":1,"event":{}}\n\n'
    client = Client("http://host.test")
    client.on_trouble = said.append
    transport = httpx.MockTransport(lambda request: httpx.Response(200, content=down + b": beat\n\n" + down + data))
    client._http = httpx.AsyncClient(transport=transport, base_url=client.url)
    async with client, aclosing(client.follow("/v1/events", 7)) as records:
        assert (await anext(records)).pos == 8
    assert said == ["The disk is full."]


async def test_patience_ends(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        ident = await here.start()
        client = Client(here.url, here.home.token(), reconnect_timeout=0.1)
        reading = asyncio.ensure_future(_collect(client, ident, []))
        await asyncio.sleep(0)
    with pytest.raises(Unreachable, match="does not come back"):
        await asyncio.wait_for(reading, 60)
    await client.close()


async def test_a_deleted_session_ends_its_stream_with_the_reason(shared: Standing, client: Client) -> None:
    with pytest.raises(RemoteError) as error:
        await _collect(client, "session-999", [])
    assert error.value.code == "not_found"


async def _collect(client: Client, ident: str, found: list[RemoteRecord], ends: int = 2) -> None:
    """Follows until so many turns have ended."""
    async with aclosing(client.session(ident).follow()) as records:
        async for record in records:
            found.append(record)
            ends -= isinstance(record.event, TurnEnded)
            if not ends:
                return
