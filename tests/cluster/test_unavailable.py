"""What a client gets while hosts change: 503 and when to try again, in the form of its door; never an address."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from portico.cluster import cluster as cluster_module
from portico.cluster import forward
from portico.cluster.forward import away
from portico.cluster.link import HostLink
from portico.cluster.postgres.log import PostgresLog
from portico.doors.ahp.wire import uri
from portico.kernel import commands as c
from portico.kernel.errors import LogUnavailable, PorticoError, Unreachable
from portico.kernel.log.log import NotOwner
from tests.cluster.conftest import Nodes
from tests.cluster.test_cluster import ADA, eventually
from tests.doors.ahp.wire_client import Refused, WireClient
from tests.doors.standing import Standing, problem, standing
from tests.postgres import Databases

Servers = tuple[Standing, Standing]


@pytest.fixture
async def servers(databases: Databases, tmp_path: Path) -> AsyncIterator[Servers]:
    url = await databases.new()
    async with AsyncExitStack() as stack:
        found = []
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            flags = {"log.url": url, "cluster.host": name, "cluster.place": "here", "cluster.lease_seconds": 60.0}
            found.append(await stack.enter_async_context(standing(tmp_path / name, flags=flags)))
        yield found[0], found[1]
    databases.give_back(url)


# -- errors between hosts, at every door ---------------------------------------------------------------------------


async def _unreachable() -> PorticoError:
    link = HostLink("127.0.0.1", 0, "key", None)  # type: ignore[arg-type]
    try:
        await link.ask("http://127.0.0.1:1", c.CancelTurn(session="x"), ADA, "")
    except Unreachable as error:
        return error
    finally:
        await link.close()
    raise AssertionError


async def _command(session: str, text: str) -> dict[str, Any]:
    return {"command": "message.send", "arguments": {"session": session, "text": text}}


async def test_an_error_between_hosts_is_503_at_every_door(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were 409 (NotOwner), 500 at the portal, and named the address of the other host's private port."""
    a, b = servers
    session = await a.start()
    await b.server.host.members.catch_up()
    editor = WireClient(f"{b.url}/ahp?tkn={b.home.token()}".replace("http", "ws", 1), "editor", "0.9.0")
    await editor.open()
    await editor.initialize()
    named = f"scripted:/{session}"
    call = {"name": "send_message", "arguments": {"session": session, "text": "x"}}
    tool = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    errors: dict[str, PorticoError] = {
        "unreachable": await _unreachable(),
        "place_away": away("cellar", []),
        "not owner": NotOwner(f"session/{session}"),
    }
    wrong: dict[tuple[str, str], str] = {}
    for name, error in errors.items():

        async def fails(error: PorticoError = error) -> Any:
            raise error.copy()

        async def elsewhere(*_: Any, fails: Any = fails) -> Any:
            return fails

        monkeypatch.setattr(b.server.host.members, "elsewhere", elsewhere)
        posts: dict[str, Any] = {
            "rest": (f"/v1/sessions/{session}/messages", {"json": {"text": "x"}}),
            "rest, any command": ("/v1/commands", {"json": await _command(session, "x")}),
            "portal": (f"/api/copilot/session/{session}/query", {"content": "x"}),
            "anywhere": ("/message", {"json": {"text": "x", "agent": "scripted"}}),
        }
        for door, (path, body) in posts.items():
            answer = await b.http.post(path, **body)
            shown = (answer.status_code, "retry-after" in answer.headers)
            if shown != (503, True) or "127.0.0.1" in answer.text or "session/" in answer.text:
                wrong[name, door] = f"{answer.status_code} {answer.headers.get('retry-after')} {answer.text}"
        with pytest.raises(Refused) as refused:
            await editor.request("disposeSession", channel=named)
        told = {"mcp": (await b.http.post("/mcp", json=tool)).text, "ahp": str(refused.value)}
        for door, text in told.items():
            if error.message not in text.replace('\\"', '"').replace("\\'", "'") or "127.0.0.1" in text:
                wrong[name, door] = text
    await editor.close()
    assert wrong == {}


async def test_a_session_that_moves_again_and_again_is_503(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    a = await nodes("a")
    session = await a.host.start(by="test", agent="play")

    async def moved(*_: Any) -> Any:
        raise NotOwner(session.channel)

    monkeypatch.setattr(a.host.commands, "do_here", moved)
    with pytest.raises(Unreachable, match="Another host has taken this over; try again"):
        await a.host.do(c.RenameSession(session=session.id, title="x"), ADA)


# -- a host that lags ----------------------------------------------------------------------------------------------


def _lag(host: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets to know nothing that others write."""
    log = host.server.host.log
    assert isinstance(log, PostgresLog)
    monkeypatch.setattr(log, "_read_on", lambda: None)
    monkeypatch.setattr(cluster_module, "HEAR_SECONDS", 0.5)


async def test_a_host_that_lags_rejects_nothing_that_was_acknowledged(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answered 404 for sessions that another host had acknowledged, and 410 for cursors of that host: a browser then
    stops to reconnect."""
    a, b = servers
    known = await a.start()
    await b.server.host.members.catch_up()
    _lag(b, monkeypatch)
    new = await a.start()
    await a.say(known, "[[say:more]]")
    pos = (await a.http.get(f"/v1/sessions/{known}/events")).json()["head"]
    seq = (await a.http.get("/v1/events")).json()["head"]
    stream = {"Accept": "text/event-stream"}
    asked: dict[str, dict[str, Any]] = {
        f"/v1/sessions/{new}": {},
        f"/v1/sessions/{new}/events": {},
        f"/v1/sessions/{known}/events?after={pos}": {},
        f"/v1/sessions/{known}/events": {"headers": {**stream, "Last-Event-ID": f"{pos}.{a.server.host.log.epoch}"}},
        f"/v1/events?after={seq}": {},
        "/v1/events": {"headers": {**stream, "Last-Event-ID": str(seq)}},
        f"/api/copilot/session/{new}/live/page": {},
    }
    for database_away in (False, True):
        if database_away:
            b.server.host.log._down = LogUnavailable("away")  # type: ignore[attr-defined]
        answers = {path: await b.http.get(path, **more) for path, more in asked.items()}
        found = {path: (each.status_code, each.headers.get("retry-after")) for path, each in answers.items()}
        assert found == dict.fromkeys(found, (503, "1")), {path: each.text for path, each in answers.items()}
    b.server.host.log._down = None  # type: ignore[attr-defined]
    monkeypatch.undo()
    b.server.host.log._read_on()  # type: ignore[attr-defined]
    assert (await b.http.get(f"/v1/sessions/{new}")).status_code == 200
    beyond = await b.http.get(f"/v1/sessions/{known}/events?after={pos + 1}")
    problem(beyond, 410, "cursor_lost", "after")
    problem(await b.http.get(f"/v1/sessions/{known}/events?after=1.deadbeef"), 410, "cursor_lost", "after")
    problem(await b.http.get("/v1/sessions/session-99"), 404, "not_found")


async def test_an_editor_finds_what_another_host_has_just_begun(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = servers
    editor = WireClient(f"{b.url}/ahp?tkn={b.home.token()}".replace("http", "ws", 1), "editor", "0.9.0")
    await editor.open()
    await editor.initialize()
    log = b.server.host.log
    assert isinstance(log, PostgresLog)
    read_on = log._read_on
    monkeypatch.setattr(log, "_read_on", lambda: None)  # the bell is lost
    other = WireClient(f"{a.url}/ahp?tkn={a.home.token()}".replace("http", "ws", 1), "other", "0.9.0")
    await other.open()
    await other.initialize()
    await other.request("createSession", channel="scripted:/new")
    subscribing = asyncio.create_task(editor.subscribe(uri.default_chat("scripted:/new")))
    await eventually(lambda: log._heard > log.seq)
    monkeypatch.setattr(log, "_read_on", read_on)
    read_on()
    await asyncio.wait_for(subscribing, 30)
    assert editor.states[uri.default_chat("scripted:/new")]["turns"] == []
    await editor.close()
    await other.close()


# -- a host that stops ---------------------------------------------------------------------------------------------


async def test_a_host_that_stops_still_forwards(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its link was closed before its doors: requests that it had to forward were answered with 500."""
    a, b = servers
    session = await a.start()
    await b.server.host.members.catch_up()
    await b.server.host.close()
    answer = await b.http.patch(f"/v1/sessions/{session}", json={"title": "renamed"})
    assert (answer.status_code, answer.json().get("title")) == (200, "renamed"), answer.text


async def test_a_command_for_a_host_that_stops_is_done_by_the_next_one(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = await nodes("a"), await nodes("b")
    session = await a.host.start(by="test", agent="play")
    await b.cluster.catch_up()
    await a.host.close()
    asked, ask = asyncio.Event(), b.cluster.ask

    async def asking(*given: Any) -> Any:
        asked.set()
        return await ask(*given)

    monkeypatch.setattr(b.cluster, "ask", asking)
    doing = asyncio.create_task(b.host.do(c.RenameSession(session=session.id, title="renamed"), ADA))
    await asyncio.wait_for(asked.wait(), 30)
    a.dead = True
    await a.cluster.close_link()
    await a.log.close()
    assert (await asyncio.wait_for(doing, 30)).title == "renamed"
    assert b.cluster.owns(session.channel)


async def test_a_new_session_for_a_host_that_stops_begins_at_another_one(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forward, "PAUSE", 0.01)
    a, b, d = await nodes("a", labels=["gpu"]), await nodes("b"), await nodes("d", labels=["gpu"], capacity=1)
    await asyncio.gather(*(node.log.renew_now() for node in (a, b, d)))
    a.host.stopping = True
    command = c.StartSession(agent="play", label="gpu")
    starting = asyncio.create_task(b.host.do(command, ADA))
    await a.log.run(lambda db: db.execute("UPDATE hosts SET state = 'draining' WHERE name = 'a'"))
    started = await asyncio.wait_for(starting, 30)
    assert (await b.cluster.owner(f"session/{started.id}"))[0] == d.log.lease.host
    a.host.stopping = False
