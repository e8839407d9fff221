"""The published commands of version 1 (seed 004), sentence by sentence, with its own examples.

Each test quotes the sentences that it proves. `test_labels` (locale), `test_required` (required fields, the model as a
text) and `test_terminals` (what a shell shows) prove the others.
"""

import base64
from pathlib import Path
from typing import Any

import pytest

from portico.doors.ahp.connection import lifecycle
from portico.doors.ahp.view.names import file_uri
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.wire_client import Json, Refused, WireClient

NOT_FOUND, DENIED, EXISTS, INVALID = -32008, -32009, -32010, -32602
VERSION, PROVIDER, SESSION_EXISTS, SESSION, AUTH = -32005, -32002, -32003, -32001, -32007


async def code(client: WireClient, method: str, **params: Any) -> int:
    with pytest.raises(Refused) as refused:
        await client.request(method, **params)
    return int(refused.value.code)


async def talked(client: WireClient, name: str, turns: int) -> str:
    chat = await client.create_session(name)
    for number in range(1, turns + 1):
        await client.say(chat, f"t{number}", f"[[say:answer {number}]]")
        await client.idle(chat)
    return chat


def running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def answers(turns: list[Json]) -> list[str]:
    return [part["content"] for turn in turns for part in turn["responseParts"] if part["kind"] == "markdown"]


async def test_initialize(served: Served, connect: Connect) -> None:
    """Seed: This MUST be the first message sent by the client. URIs to subscribe to during handshake. Snapshots for
    each `initialSubscriptions` URI. Suggested default directory for remote filesystem browsing. If the server does
    not support the client's protocol version, it MUST return error code -32005."""
    first = WireClient(served.url, "early", "1")
    await first.open()
    assert await code(first, "listSessions") < 0
    assert await code(first, "initialize", protocolVersion=99, clientId="early") == VERSION
    await first.close()
    client = await connect("1")
    await client.create_session("scripted:/s1")
    other = WireClient(served.url, "other", "1")
    await other.open()
    result = await other.initialize("agenthost:/root", "scripted:/s1")
    assert (result["protocolVersion"], result["serverSeq"] >= 0) == (1, True)
    assert [each["resource"] for each in result["snapshots"]] == ["agenthost:/root", "scripted:/s1"]
    assert result["defaultDirectory"].startswith("file:///")
    await other.close()


@pytest.mark.parametrize("kept", [True, False])
async def test_reconnect(served: Served, connect: Connect, monkeypatch: pytest.MonkeyPatch, kept: bool) -> None:
    """Seed: The server replays missed actions or provides fresh snapshots. The server MUST include all replayed data
    in the response. Reconnect result when the gap exceeds the replay buffer."""
    client, other = await connect("1"), await connect("1", "other")
    chat = await client.create_session("scripted:/s1")
    await other.subscribe(chat)
    await client.drop()
    seen = client.last_seen
    for number in range(3):
        await other.say(chat, f"t{number}", f"[[say:answer {number}]]")
        await other.idle(chat)
    if not kept:
        monkeypatch.setattr(lifecycle, "_REPLAY_RECORDS", 3)
        served.broker.replay.clear()
    result = await client.reconnect()
    if kept:
        assert result["type"] == "replay"
        assert [each["serverSeq"] for each in result["actions"]] == sorted(
            each["serverSeq"] for each in result["actions"]
        )
        assert all(each["serverSeq"] > seen for each in result["actions"])
    else:
        assert result["type"] == "snapshot"
        assert {each["resource"] for each in result["snapshots"]} == set(client.states)
    assert client.states[chat]["turns"] == other.states[chat]["turns"]


async def test_subscribe_and_unsubscribe(connect: Connect) -> None:
    """Seed: Subscribe to a URI-identified state resource. Snapshot of the subscribed resource. Stop receiving updates
    for a URI."""
    client, other = await connect("1"), await connect("1", "other")
    chat = await client.create_session("scripted:/s1")
    result = await other.subscribe(chat)
    assert set(result) == {"snapshot"}
    assert (result["snapshot"]["resource"], result["snapshot"]["state"]["turns"]) == (chat, [])
    assert await code(client, "subscribe", resource="scripted:/none") == SESSION
    await other.notify("unsubscribe", resource=chat)
    await other.request("listSessions")  # it is answered after the notification
    before = len(other.envelopes)
    await client.say(chat, "t1", "[[say:hello]]")
    await client.idle(chat)
    await other.request("listSessions")
    assert [each["action"]["type"] for each in other.envelopes[before:] if each["action"].get("session") == chat] == []


async def test_create_session(connect: Connect, served: Served) -> None:
    """Seed: If the session URI already exists, the server MUST return an error with code -32003. The server also
    broadcasts a `notify/sessionAdded` notification to all clients. Working directory for the session. Agent-
    specific configuration values, and the example with its three answers."""
    client, other = await connect("1"), await connect("1", "other")
    example: Json = {"session": "scripted:/0b7a", "provider": "scripted", "model": "gpt-4.1"}
    work = served.work / "below"
    work.mkdir()
    given = {**example, "workingDirectory": file_uri(str(work)), "config": {"flavour": "sour"}}
    assert await client.request("createSession", **given) is None
    assert await code(client, "createSession", **example) == SESSION_EXISTS
    assert await code(client, "createSession", session="nobody:/1", provider="nobody") == PROVIDER
    for each in (client, other):
        added = await each.wait(lambda each=each: [n for n in each.notices if n["method"] == "notification"])
        [summary] = [n["params"]["notification"]["summary"] for n in added]
        assert (summary["resource"], summary["workingDirectory"]) == ("scripted:/0b7a", file_uri(str(work)))
    [session] = served.host.list(drafts=True)
    assert (session.cwd, session.model) == (str(work), "gpt-4.1")
    state = (await client.subscribe("scripted:/0b7a"))["snapshot"]["state"]
    assert state["config"]["values"]["flavour"] == "sour"


async def test_fork(connect: Connect) -> None:
    """Seed: The server populates the new session with content from the source session up to and including the response
    of the specified turn."""
    client = await connect("1")
    chat = await talked(client, "scripted:/s1", 3)
    forked = await client.create_session("scripted:/s2", fork={"session": chat, "turnId": "t2"})
    assert answers(client.states[forked]["turns"]) == ["answer 1", "answer 2"]
    assert len(client.states[chat]["turns"]) == 3
    for wrong in ({"session": chat, "turnId": "none"}, {"session": "scripted:/none", "turnId": "t1"}):
        assert await code(client, "createSession", session="scripted:/s3", fork=wrong) == SESSION


async def test_active_client(connect: Connect) -> None:
    """Seed: The server initializes the session with this client as the active client. The `clientId` MUST match the
    `clientId` the creating client supplied in `initialize`."""
    client = await connect("1")
    mine = {"clientId": client.client_id, "tools": []}
    chat = await client.create_session("scripted:/s1", activeClient=mine)
    assert client.states[chat]["activeClient"]["clientId"] == client.client_id
    another = {"clientId": "another", "tools": []}
    assert await code(client, "createSession", session="scripted:/s2", activeClient=another) == INVALID


async def test_dispose_session(connect: Connect, served: Served) -> None:
    """Seed: Disposes a session and cleans up server-side resources. The server broadcasts a `notify/sessionRemoved`
    notification to all clients."""
    client, other = await connect("1"), await connect("1", "other")
    chat = await client.create_session("scripted:/s1")
    await client.say(chat, "t1", "hold")
    assert await client.request("disposeSession", session=chat) is None
    for each in (client, other):
        await each.wait(
            lambda each=each: [
                n
                for n in each.notices
                if n["params"].get("notification", {}).get("type") == "notify/sessionRemoved"
                and n["params"]["notification"]["session"] == chat
            ]
        )
    assert (await client.request("listSessions"))["items"] == []
    assert served.host.turns == {}
    assert await code(client, "subscribe", resource=chat) == SESSION


async def test_terminals(connect: Connect, served: Served) -> None:
    """Seed: The server dispatches `root/terminalsChanged` to update the root terminal list. Initial owner of the
    terminal. Human-readable terminal name. Initial working directory URI. Initial terminal width in columns.
    Disposes a terminal and kills its process if still running."""
    client = await connect("1")
    given = {"claim": client.claim, "name": "Build", "cwd": file_uri(str(served.work)), "cols": 90, "rows": 20}
    assert await client.request("createTerminal", terminal="t:/1", **given) is None
    [entry] = (await client.action("root/terminalsChanged"))["terminals"]
    assert (entry["resource"], entry["title"], entry["claim"]) == ("t:/1", "Build", client.claim)
    state = (await client.subscribe("t:/1"))["snapshot"]["state"]
    assert (state["cols"], state["rows"], state["cwd"]) == (90, 20, file_uri(str(served.work)))
    marker = served.work / "pid"
    await client.dispatch(
        "t:/1", "terminal/input", data=f"echo $$ > {marker.name}.new; mv {marker.name}.new {marker.name}\n"
    )
    await client.wait(lambda: "mv" in str(client.states["t:/1"]))
    while not marker.exists():
        await client.request("listSessions")
    pid = int(marker.read_text())
    assert await client.request("disposeTerminal", terminal="t:/1") is None
    await client.wait(lambda: client.actions("root/terminalsChanged")[-1]["terminals"] == [])
    while running(pid):
        await client.request("listSessions")
    assert await code(client, "disposeTerminal", terminal="t:/none") < 0


async def test_list_sessions(connect: Connect) -> None:
    """Seed: Returns a list of session summaries. The session list is not part of the state tree. Optional filter
    criteria."""
    client = await connect("1")
    await talked(client, "scripted:/s1", 1)
    filters: list[Json] = [{}, {"filter": {}}]
    for params in filters:
        [item] = (await client.request("listSessions", **params))["items"]
        assert (item["resource"], item["provider"], item["title"]) == ("scripted:/s1", "scripted", item["title"])
    assert "scripted:/s1" not in str(client.states[client.root])


HELLO = {"data": "SGVsbG8=", "encoding": "base64", "contentType": "text/plain"}


async def test_resource_write_and_read(connect: Connect, served: Served) -> None:
    """Seed: If the file does not exist, it is created. If the file already exists, it is overwritten unless
    `createOnly` is set. Binary content MUST use base64 encoding. The server SHOULD honor the `encoding` requested
    [or] MUST fall back to either. The errors of both commands."""
    client = await connect("1")
    file, outside = file_uri(str(served.work / "hello.txt")), "file:///etc/portico-test"
    assert await client.request("resourceWrite", uri=file, **HELLO) == {}
    assert (served.work / "hello.txt").read_text() == "Hello"
    assert await client.request("resourceWrite", uri=file, data="Hi", encoding="utf-8") == {}
    again = {"uri": file, "data": "", "encoding": "utf-8", "createOnly": True}
    assert await code(client, "resourceWrite", **again) == EXISTS
    assert (await client.request("resourceRead", uri=file))["data"] == "Hi"
    encoded = await client.request("resourceRead", uri=file, encoding="base64")
    assert (encoded["encoding"], base64.b64decode(encoded["data"])) == ("base64", b"Hi")
    (served.work / "image.png").write_bytes(b"\x89PNG\xff")
    for wanted in ({}, {"encoding": "utf-8"}, {"encoding": "unheard-of"}):
        image = await client.request("resourceRead", uri=file_uri(str(served.work / "image.png")), **wanted)
        assert (image["encoding"], image["contentType"]) == ("base64", "image/png")
        assert base64.b64decode(image["data"]) == b"\x89PNG\xff"
    below = file_uri(str(served.work / "none/x.txt"))
    assert await code(client, "resourceWrite", uri=below, data="", encoding="utf-8") == NOT_FOUND
    assert await code(client, "resourceWrite", uri=outside, data="", encoding="utf-8") == DENIED
    assert await code(client, "resourceRead", uri=below) == NOT_FOUND
    assert await code(client, "resourceRead", uri="file:///etc/passwd") == DENIED


async def test_content_of_a_session(connect: Connect) -> None:
    """Seed: Content references keep the state tree small by storing large data (images, long tool outputs) by
    reference."""
    client = await connect("1")
    chat = await client.create_session("scripted:/s1")
    image = base64.b64encode(b"\x89PNG" * 30_000).decode()
    attached = {"type": "image", "displayName": "a.png", "data": image, "contentType": "image/png"}
    said = {"text": "[[say:seen]]", "attachments": [attached]}
    await client.act(chat, "session/turnStarted", turnId="t1", userMessage=said)
    await client.idle(chat)
    assert image not in str(client.states[chat])
    assert await code(client, "resourceRead", uri=f"{chat}/content/none") == NOT_FOUND


async def test_resource_list(connect: Connect, served: Served) -> None:
    """Seed: The server MUST return success only if the target exists and is a directory. Entries directly contained in
    the requested directory."""
    client = await connect("1")
    (served.work / "folder/deep").mkdir(parents=True)
    (served.work / "a.txt").write_text("a")
    entries = (await client.request("resourceList", uri=file_uri(str(served.work))))["entries"]
    assert sorted((each["name"], each["type"]) for each in entries) == [("a.txt", "file"), ("folder", "directory")]
    assert await code(client, "resourceList", uri=file_uri(str(served.work / "none"))) == NOT_FOUND
    assert await code(client, "resourceList", uri=file_uri(str(served.work / "a.txt"))) < 0
    assert await code(client, "resourceList", uri="file:///etc") == DENIED


async def test_fetch_turns(connect: Connect) -> None:
    """Seed: Fetch the 20 most recent turns, fetch 20 turns before t1, the requested turns, ordered oldest-first,
    whether more turns exist before the returned range, Turn ID to fetch before (exclusive)."""
    client = await connect("1")
    chat = await talked(client, "scripted:/s1", 5)

    async def fetched(**params: Any) -> tuple[list[str], bool]:
        result = await client.request("fetchTurns", session=chat, **params)
        return [each["id"] for each in result["turns"]], result["hasMore"]

    assert await fetched(limit=2) == (["t4", "t5"], True)
    assert await fetched(before="t4", limit=2) == (["t2", "t3"], True)
    assert await fetched(before="t2", limit=20) == (["t1"], False)
    assert await fetched(before="t1", limit=20) == ([], False)
    assert await fetched() == (["t1", "t2", "t3", "t4", "t5"], False)
    assert await code(client, "fetchTurns", session=chat, before="none") < 0
    assert await code(client, "fetchTurns", session="scripted:/none") == SESSION


@pytest.mark.parametrize("method", ["resourceCopy", "resourceMove"])
async def test_resource_copy_and_move(connect: Connect, served: Served, method: str) -> None:
    """Seed: If the destination already exists, it is overwritten unless `failIfExists` is set. PermissionDenied if the
    client is not permitted to read the source or write to the destination."""
    client = await connect("1")
    source, destination = (file_uri(str(served.work / name)) for name in ("source", "destination"))

    def fill() -> None:
        (served.work / "source").write_text("new")
        (served.work / "destination").write_text("old")

    fill()
    ends: Json = {"source": source, "destination": destination}
    assert await code(client, method, **ends, failIfExists=True) == EXISTS
    assert (served.work / "destination").read_text() == "old"
    assert await client.request(method, **ends) == {}
    assert (served.work / "destination").read_text() == "new"
    assert (served.work / "source").exists() is (method == "resourceCopy")
    fill()
    assert await code(client, method, source=file_uri(str(served.work / "none")), destination=destination) == NOT_FOUND
    assert await code(client, method, source="file:///etc/hostname", destination=destination) == DENIED
    assert await code(client, method, source=source, destination="file:///etc/portico-test") == DENIED
    assert ((served.work / "source").read_text(), (served.work / "destination").read_text()) == ("new", "old")


async def test_resource_delete(connect: Connect, served: Served) -> None:
    """Seed: If `true` and the target is a directory, delete it and all its contents recursively. If `false` (default),
    deleting a non-empty directory MUST fail."""
    client = await connect("1")
    folder = served.work / "folder"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep/a.txt").write_text("a")
    (served.work / "empty").mkdir()
    for given in ({}, {"recursive": False}):
        assert await code(client, "resourceDelete", uri=file_uri(str(folder)), **given) < 0
    assert (folder / "deep/a.txt").exists()
    assert await client.request("resourceDelete", uri=file_uri(str(folder / "deep/a.txt"))) == {}
    assert await client.request("resourceDelete", uri=file_uri(str(served.work / "empty"))) == {}
    assert await client.request("resourceDelete", uri=file_uri(str(folder)), recursive=True) == {}
    assert [*served.work.iterdir()] == []
    assert await code(client, "resourceDelete", uri=file_uri(str(folder))) == NOT_FOUND
    assert await code(client, "resourceDelete", uri="file:///etc/portico-test") == DENIED


async def test_authenticate(connect: Connect) -> None:
    """Seed: The `resource` field MUST match a value declared by an agent in `AgentInfo.protectedResources`. If the
    token is invalid or the resource is unrecognized, the server MUST return a JSON-RPC error."""
    client = await connect("1")
    declared = [
        each["resource"]
        for agent in client.states[client.root]["agents"]
        for each in agent.get("protectedResources", [])
    ]
    assert declared == ["https://vendor.example"]
    assert await code(client, "createSession", session="vendor:/s1", provider="vendor") == AUTH
    assert await code(client, "authenticate", resource="https://vendor.example", token="wrong") == AUTH
    assert await code(client, "authenticate", resource="https://unknown.example", token="x") in (AUTH, INVALID)
    assert await client.request("authenticate", resource="https://vendor.example", token="good-token") == {}
    assert await client.request("createSession", session="vendor:/s1", provider="vendor") is None
