"""Whole servers on one log: clients go on at another host with what they have from the first."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from portico.cluster.cluster import Cluster
from portico.doors.ahp.wire import uri
from portico.doors.portal.callbacks import coalesce
from portico.doors.portal.live import Live
from portico.features.board.activity import waiting_of
from portico.features.people.people import add_person
from portico.kernel.commands import SCOPES
from portico.server.identity import new_token, revoke_token
from tests.doors.ahp.wire_client import WireClient
from tests.doors.rest.test_terminals import viewing
from tests.doors.standing import Standing, problem, read_events, standing
from tests.features import feature
from tests.jobs.playing import make, task
from tests.postgres import Databases


def flags(url: str, name: str) -> dict[str, Any]:
    return {"log.url": url, "cluster.host": name, "cluster.place": "here", "cluster.lease_seconds": 60.0}


@pytest.fixture
async def servers(databases: Databases, tmp_path: Path) -> AsyncIterator[tuple[Standing, Standing]]:
    url = await databases.new()
    async with AsyncExitStack() as stack:
        found = []
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            found.append(await stack.enter_async_context(standing(tmp_path / name, flags=flags(url, name))))
        yield found[0], found[1]
    databases.give_back(url)


async def test_a_client_goes_on_at_another_host(servers: tuple[Standing, Standing]) -> None:
    a, b = servers
    assert a.home.token() == b.home.token()
    session = await a.start(title="shared")
    await a.say(session, "[[say:first]]")
    page = (await a.http.get(f"/v1/sessions/{session}/events")).json()
    answer = await b.http.post(f"/v1/sessions/{session}/messages", json={"text": "[[say:second]]"})
    assert answer.status_code == 202
    await (await b.server.host.get(session)).wait(answer.json()["turn"])
    more = (await b.http.get(f"/v1/sessions/{session}/events", params={"after": page["events"][-1]["pos"]})).json()
    whole = (await a.http.get(f"/v1/sessions/{session}/events")).json()
    assert [*page["events"], *more["events"]] == whole["events"]
    states = [(await each.http.get(f"/v1/sessions/{session}")).json() for each in servers]
    assert states[0] == states[1]


async def test_a_call_of_mcp_is_cancelled_at_the_other_host(servers: tuple[Standing, Standing]) -> None:
    """A load balancer sends the notification to any host. It had an effect only at the host that runs the call."""
    a, b = servers
    ident = await a.start()
    session = await a.server.host.get(ident)
    call = {"name": "send_message", "arguments": {"session": ident, "text": "[[hang]]"}}
    sent = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call}
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    mine, other = {"Mcp-Session-Id": "one"}, {"Mcp-Session-Id": "two"}
    async with asyncio.TaskGroup() as group:
        sending = group.create_task(a.http.post("/mcp", json=sent, headers=mine))
        await session.wait_until(lambda state: state.active is not None)
        for headers in (other, mine):
            assert session.state.active is not None, "the call of another client"
            assert (await b.http.post("/mcp", json=cancel, headers=headers)).status_code == 202
    assert sending.result().json()["error"]["code"] == -32800
    assert [turn.outcome for turn in session.state.turns] == ["cancelled"]


async def test_an_event_stream_goes_on_at_another_host(servers: tuple[Standing, Standing]) -> None:
    a, b = servers
    session = await a.start()
    await a.say(session, "[[say:first]]")
    for path in (f"/v1/sessions/{session}/events", "/v1/events"):
        whole = (await a.http.get(path, params={"after": 0, "limit": 1000})).json()["events"]
        seen: list[Any] = []
        cursor: dict[str, str] = {}
        half = len(whole) // 2
        for host, count in ((a, half), (b, len(whole) - half)):
            async with host.http.stream("GET", path, headers={"Accept": "text/event-stream", **cursor}) as answer:
                seen += (await read_events(answer, count))[:count]
            cursor = {"Last-Event-ID": str(seen[-1][0])}
        assert [data for _, data in seen] == whole, path


async def test_the_long_poll_of_a_page_goes_on_at_another_host(servers: tuple[Standing, Standing]) -> None:
    a, b = servers
    session = (await a.http.post("/api/copilot/session/start/gpt-5-mini")).json()["sessionId"]

    async def heard(host: Standing, page: str, turns: int) -> list[Any]:
        found: list[Any] = []
        while sum(each.get("callback") == "onIdle" for each in found) < turns:
            answer = await host.http.get(f"/api/copilot/session/{session}/live/{page}?seq=1&prompts=1")
            found += answer.json().get("responses", [])
        return coalesce(found)  # a delta is told only where its message ends in a later answer

    for text, host, other in (("[[say:first]]", a, b), ("[[say:second]]", b, a)):
        assert (await other.http.post(f"/api/copilot/session/{session}/query", content=text)).json() == {}
        await heard(host, "moving", 1)
    assert (await a.http.post(f"/api/copilot/session/{session}/query", content="[[say:third]]")).json() == {}
    rest = await heard(a, "moving", 1)
    whole = await heard(b, "late", 3)
    assert len(rest) < len(whole)
    assert whole[-len(rest) :] == rest


@pytest.mark.parametrize("where", ["_patiently", "_store"])
async def test_a_late_answer_to_a_page_does_not_take_its_cursor_back(
    servers: tuple[Standing, Standing], monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """A host that stood still answered a call that its page had given up, and the page heard again what another host
    had told it meanwhile: also one that stood still just before it stored the cursor."""
    a, b = servers
    session = (await a.http.post("/api/copilot/session/start/gpt-5-mini")).json()["sessionId"]
    path = f"/api/copilot/session/{session}/live/moving?seq=1"
    stands, goes_on, step = asyncio.Event(), asyncio.Event(), getattr(Live, where)

    async def stand(self: Live, *given: Any) -> Any:
        found = await step(self, *given) if where == "_patiently" else None
        if self._host is a.server.host:
            stands.set()
            await goes_on.wait()
        return found if where == "_patiently" else await step(self, *given)

    async def say(text: str) -> list[Any]:
        assert (await b.http.post(f"/api/copilot/session/{session}/query", content=text)).json() == {}
        found: list[Any] = []
        while not any(each.get("callback") == "onIdle" for each in found):
            found += (await b.http.get(path)).json().get("responses", [])
        return [*dict.fromkeys(each["seq"] for each in found)]  # one event may be told in several elements

    monkeypatch.setattr(Live, where, stand)
    late = asyncio.create_task(a.http.get(path))
    heard = await say("[[say:first]]")
    await asyncio.wait_for(stands.wait(), 30)
    heard += await say("[[say:second]]")
    goes_on.set()
    assert (await late).json() == {"error": "ParallelCallNotSupported"}
    heard += await say("[[say:third]]")
    assert heard == sorted(set(heard))


async def test_an_editor_goes_on_at_another_host(servers: tuple[Standing, Standing]) -> None:
    a, b = servers
    session, version = "scripted:/moving", "0.9.0"
    chat = uri.default_chat(session)
    at = {host: f"{host.url}/ahp?tkn={host.home.token()}".replace("http", "ws", 1) for host in servers}
    editor, other = WireClient(at[a], "editor", version), WireClient(at[b], "other", version)
    await editor.open()
    await editor.initialize()
    await editor.request("createSession", channel=session)
    await editor.subscribe(chat)

    async def say(client: WireClient, turn: str) -> None:
        message = {"text": f"[[say:{turn}]]", "origin": {"kind": "user"}}
        fields = {"turnId": turn, "startedAt": "2026-01-01T00:00:00.000Z", "message": message}
        await client.dispatch(chat, "chat/turnStarted", **fields)
        await client.wait(lambda: [each["id"] for each in client.states[chat]["turns"]][-1:] == [turn])

    await say(editor, "first")
    await editor.drop()
    await other.open()
    await other.initialize()
    await other.subscribe(chat)
    await say(other, "second")
    editor.url = at[b]
    await editor.open()
    known = {"lastSeenServerSeq": editor.last_seen, "subscriptions": [*editor.states]}
    answer = await editor.request("reconnect", clientId="editor", **known)
    assert answer["type"] == "replay"
    # A chat's title changes in its session's list only.
    await editor.wait(lambda: editor.states[chat] == {**other.states[chat], "title": editor.states[chat]["title"]})
    await say(editor, "third")
    for client in (editor, other):
        await client.close()


async def test_a_bound_counts_what_runs_at_every_host(databases: Databases, tmp_path: Path) -> None:
    """A person had one turn at each host where one in all was the bound; and a change of two things did the first."""
    url = await databases.new()
    async with AsyncExitStack() as stack:
        found = []
        for name in "ab":
            (tmp_path / name).mkdir()
            bound = {**flags(url, name), "quotas.turns": 1}
            found.append(await stack.enter_async_context(standing(tmp_path / name, flags=bound)))
        a, b = found
        add_person(a.home, "ann", SCOPES[:-1])
        token = new_token(a.home, "laptop", list(SCOPES), "ann")
        await a.server.gate.share()  # type: ignore[misc]
        async with a.client(token) as here, b.client(token) as there:
            first, second = [
                (await each.post("/v1/sessions", json={"agent": "scripted"})).json()["id"] for each in (here, there)
            ]
            assert (await here.post(f"/v1/sessions/{first}/messages", json={"text": "[[hang]]"})).status_code == 202
            refused = await there.post(f"/v1/sessions/{second}/messages", json={"text": "hello"})
            assert problem(refused, 429, "quota_exceeded", "quotas.turns")
            assert (await there.get("/v1")).json()["running"] == 1
            change = {"title": "mine", "model": "nosuch"}
            assert (await here.patch(f"/v1/sessions/{second}", json=change)).status_code == 404
            assert (await there.get(f"/v1/sessions/{second}")).json().get("title", "") == ""
    databases.give_back(url)


@pytest.fixture
async def places(databases: Databases, tmp_path: Path) -> AsyncIterator[tuple[Standing, Standing]]:
    """Two hosts of two places: each has one folder."""
    url = await databases.new()
    async with AsyncExitStack() as stack:
        found = []
        for name in "ab":
            (tmp_path / name).mkdir()
            given = {**flags(url, name), "cluster.place": name}
            found.append(await stack.enter_async_context(standing(tmp_path / name, flags=given)))
        yield found[0], found[1]
    databases.give_back(url)


async def test_what_is_made_of_a_sessions_files_is_asked_where_they_are(
    places: tuple[Standing, Standing], tmp_path: Path
) -> None:
    """A host of another place showed its own files under the same path, and no host but the owner what a yes covers."""
    a, b = places
    (tmp_path / "a" / "attic.txt").write_text("x", "utf-8")
    session = await a.start(agent="demo", cwd=str(tmp_path / "a"))
    one = f"/v1/sessions/{session}"
    before = a.server.gate.requests[200]
    shown = [(await host.http.get(f"{one}/suggestions?q=@attic")).json() for host in (b, a)]
    assert shown[0] == shown[1]
    assert "attic.txt" in str(shown[0])
    assert a.server.gate.requests[200] == before + 2, "both were answered by the host with the files"
    for path in ("changes", "uncommitted/file?path=attic.txt", "suggestions?q=x"):
        here, there = [await host.http.get(f"{one}/{path}") for host in (a, b)]
        assert (here.status_code, here.text) == (there.status_code, there.text), path
        assert here.headers["content-type"] == there.headers["content-type"]
        assert here.headers.get("content-disposition") == there.headers.get("content-disposition")
    await b.http.post(f"{one}/messages", json={"text": "write something"})
    elsewhere = await b.server.host.get(session)
    async with asyncio.timeout(30):
        state = await elsewhere.wait_until(lambda state: bool(waiting_of(state)))
    address = f"/v1/approvals/{waiting_of(state)[0].id}/covers"
    covers = [(await host.http.get(address)).json() for host in (a, b)]
    assert covers[0] == covers[1]
    assert covers[0]["covers"], "what a yes can be remembered for"
    async with b.client(new_token(b.home, "driver", ["drive"])) as driver:
        assert (await driver.get(f"{one}/changes")).status_code == 403
    cluster = feature(a.server.host, Cluster)
    for each in (*cluster.log._tasks, *cluster._tasks):
        each.cancel()
    await cluster.link.close()
    gone = "UPDATE hosts SET expires = clock_timestamp() WHERE name = 'a'"
    await feature(b.server.host, Cluster).log.run(lambda db: db.execute(gone))
    async with asyncio.timeout(30):
        while (await b.http.get(f"{one}/changes")).json().get("code") != "place_away":  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    assert (await b.http.get(one)).status_code == 200, "its state can be read all the same"


async def test_whatever_begins_in_a_folder_begins_where_that_is(
    places: tuple[Standing, Standing], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs and terminals began at the host that was asked, which may have no such folder, or another one."""
    monkeypatch.setenv("SHELL", "/bin/sh")
    a, b = places
    folder = str(tmp_path / "a")
    job = {"job": "main", "entry": msgspec.to_builtins(make({"step": task()}))}
    for kind, body in (("session", {"agent": "scripted"}), ("job", job), ("terminal", {})):
        made = await b.http.post(f"/v1/{kind}s", json={**body, "cwd": folder})
        assert made.status_code == 201, made.text
        ident = made.json().get("id") or made.json()["job"]
        assert a.server.host.members.owns(f"{kind}/{ident}"), kind
        shown = (await b.http.get(f"/v1/{kind}s/{ident}")).json()
        assert shown["cwd"] == folder, "and it is known where it was asked for"


async def test_two_editors_at_two_hosts_are_both_there(servers: tuple[Standing, Standing]) -> None:
    """Each host took the clients of the other for gone, and let them leave with their tools."""
    session, version = "scripted:/both", "0.9.0"
    clients = []
    for host, name in zip(servers, ("one", "two"), strict=True):
        await host.server.host.members.look()  # type: ignore[attr-defined]
        url = f"{host.url}/ahp?tkn={host.home.token()}".replace("http", "ws", 1)
        client = WireClient(url, name, version)
        await client.open()
        await client.initialize()
        if name == "one":
            await client.request("createSession", channel=session)
        await client.subscribe(session)
        here = {"clientId": name, "displayName": name, "tools": [{"name": f"tool-{name}", "inputSchema": {}}]}
        await client.dispatch(session, "session/activeClientSet", activeClient=here)
        clients.append(client)

    def present(client: WireClient) -> list[str]:
        return sorted(each["clientId"] for each in client.states[session].get("activeClients", []))

    for client in clients:
        await client.wait(lambda client=client: present(client) == ["one", "two"])  # type: ignore[misc]
    await clients[1].close()
    await clients[0].wait(lambda: present(clients[0]) == ["one"])
    await clients[0].close()


async def test_a_project_and_its_conversation_are_the_same_at_every_host(
    servers: tuple[Standing, Standing], tmp_path: Path
) -> None:
    """Each host knew the projects and conversations of its start, and began a second conversation."""
    a, b = servers
    (tmp_path / "code").mkdir()
    assert (await b.http.get("/sessions")).status_code == 200  # it has read what there was
    async with b.http.stream("GET", "/events", headers={"Accept": "text/event-stream"}) as stream:
        added = await a.http.post("/sessions", json={"path": str(tmp_path / "code")})
        assert added.status_code == 201, added.text
        ident = added.json()["id"]
        for host in servers:
            assert ident in [each["id"] for each in (await host.http.get("/sessions")).json()]
        for host, text in ((a, "first"), (b, "second")):
            body = {"sessionId": ident, "agent": "scripted", "text": f"[[say:{text}]]"}
            sent = await host.http.post("/message", json=body)
            assert sent.status_code in (200, 202), sent.text
        frames = b""
        async with asyncio.timeout(30):
            async for data in stream.aiter_bytes():
                frames += data
                if b"first" in frames and b"second" in frames:
                    break
    sessions = (await b.http.get("/v1/sessions")).json()["sessions"]
    assert len(sessions) == 1
    assert (await b.http.request("DELETE", f"/sessions/{ident}")).status_code == 204
    assert ident not in [each["id"] for each in (await a.http.get("/sessions")).json()]


async def test_the_hosts_are_listed_and_say_who_they_are(servers: tuple[Standing, Standing]) -> None:
    a, b = servers
    listed = (await b.http.get("/v1/hosts")).json()["hosts"]
    assert [(each["name"], each["place"], each["state"], each.get("here", False)) for each in listed] == [
        ("a", "here", "up", False),
        ("b", "here", "up", True),
    ]
    session = (await a.http.post("/v1/sessions", json={})).json()["id"]
    own = (await b.http.get("/v1/hosts", params={"session": session})).json()["hosts"]
    command = ("portico", "hosts", "list", "--session", session, "--json", "--home", str(b.home.path))
    asking = await asyncio.create_subprocess_exec(sys.executable, "-m", *command, stdout=asyncio.subprocess.PIPE)
    told, _ = await asking.communicate()
    assert [[each["name"] for each in found] for found in (own, json.loads(told))] == [["a"], ["a"]]
    assert (await b.http.get("/v1/hosts?session=nosuch")).status_code == 404
    assert (await a.stranger.get("/healthz")).json() == {"ok": True, "host": "a", "place": "here"}
    await b.server.host.members.look()  # type: ignore[attr-defined]
    metrics = (await b.http.get("/metrics")).text
    assert 'host="b",place="here"' in metrics
    assert 'portico_hosts{state="up"} 2' in metrics
    assert (b.home.endpoint().host, b.home.endpoint().place) == ("b", "here")  # type: ignore[union-attr]
    drained = await a.http.post("/v1/hosts/b/drain")
    assert drained.json()["state"] == "draining"
    async with asyncio.timeout(30):
        while (await b.stranger.get("/readyz")).status_code == 200:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    refused = await a.http.post("/v1/hosts/b/give-up")
    assert (refused.status_code, "drain it" in refused.text) == (409, True)


async def test_a_token_holds_at_every_host_and_ends_at_every_host(servers: tuple[Standing, Standing]) -> None:
    a, b = servers

    async def known(token: str, wanted: bool) -> None:
        """Not over HTTP: a door that hears wrong tokens again and again answers ever later."""
        async with asyncio.timeout(60):
            while (b.server.tokens.by_token(token) is not None) is not wanted:  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    token = new_token(a.home, "phone", ["read"])
    async with b.client(token) as phone:
        await known(token, True)
        assert (await phone.get("/v1/sessions")).status_code == 200
        revoke_token(a.home, "phone")
        await known(token, False)
        assert (await phone.get("/v1/sessions")).status_code == 401


async def test_a_terminal_is_shown_and_driven_at_every_host(
    servers: tuple[Standing, Standing], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", "/bin/sh")
    a, b = servers
    session = await a.start()
    made = await b.http.post("/v1/terminals", json={"session": session, "title": "shared"})
    assert (made.status_code, made.json()["title"]) == (201, "shared")
    ident = made.json()["id"]
    assert a.server.host.members.owns(f"terminal/{ident}"), "it runs where its session does"
    assert not b.server.host.members.owns(f"terminal/{ident}")
    async with viewing(a, ident) as near, viewing(b, ident) as far:
        await far.type("echo $((40 + 2))\n")
        await far.until("42")
        await near.until("42")
        resized = await b.http.post(f"/v1/terminals/{ident}/resize", json={"cols": 90, "rows": 20})
        assert (resized.json()["cols"], resized.json()["rows"]) == (90, 20)
        (tmp_path / "c").mkdir()
        url = b.server.host.log.opening.url  # type: ignore[attr-defined]
        async with standing(tmp_path / "c", flags=flags(url, "c")) as late:  # it was open before this host began
            shown = (await late.http.get(f"/v1/terminals/{ident}")).json()
            assert (shown["cols"], "42" in shown["shown"]) == (90, True)
            assert (await late.http.delete(f"/v1/terminals/{ident}")).status_code == 204
        for viewer in (near, far):
            while "terminal.removed" not in [each["type"] for each in viewer.events]:
                await viewer.next()
    assert [(await each.http.get("/v1/terminals")).json()["terminals"] for each in servers] == [[], []]
