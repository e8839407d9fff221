"""Terminals over the wire."""

import asyncio
import re
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from portico.doors.ahp.connection.connection import Connection
from portico.doors.ahp.view.names import file_uri
from portico.doors.ahp.wire import uri
from portico.features.terminals.terminals import Terminals
from portico.kernel import limits
from portico.server.identity import new_token
from portico.server.route import SCOPES
from portico.workspace.scrollback import SCROLLBACK_MAX
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.test_commands import refused
from tests.doors.ahp.test_conversation import waiting_call
from tests.doors.ahp.wire_client import WireClient
from tests.features import feature
from tests.free import FREE
from tests.workspace.living import alive

Json = dict[str, Any]
NAME = "my-terminals:/1"


@pytest.fixture(autouse=True)
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A plain bash: what the user's own start-up files do, and how long they take, is not ours to test."""
    monkeypatch.setenv("SHELL", "/bin/bash")
    monkeypatch.setenv("HOME", str(tmp_path))


async def opened_terminal(client: WireClient, **more: Any) -> None:
    field = "terminal" if client.seed else "channel"
    claim = {"kind": "client", "clientId": client.client_id}
    await client.request("createTerminal", **{field: NAME, "claim": claim, "cols": 100, "rows": 30, **more})
    await client.subscribe(NAME)


def shown(client: WireClient) -> str:
    return "".join(part.get("value", "") + part.get("output", "") for part in client.states[NAME]["content"])


async def test_a_shell(connect: Connect, served: Served, version: str) -> None:
    client = await connect(version)
    await opened_terminal(client, cwd=file_uri(str(served.work)))
    assert (client.states[NAME]["cols"], client.states[NAME]["claim"]["clientId"]) == (100, "tester")
    await client.wait(lambda: client.states[NAME].get("supportsCommandDetection"))
    echo = await client.act(NAME, "terminal/input", data="echo $((40 + 2))\n")
    assert "rejectionReason" not in echo

    def finished() -> Any:
        parts = [each for each in client.states[NAME]["content"] if each["type"] == "command" and each["isComplete"]]
        return parts[0] if parts else None

    command = await client.wait(finished)
    assert (command["exitCode"], "42" in command["output"]) == (0, True)
    await client.act(NAME, "terminal/resized", cols=120, rows=40)
    await client.act(NAME, "terminal/titleChanged", title="mine")
    assert (client.states[NAME]["cols"], client.states[NAME]["title"]) == (120, "mine")
    await client.wait(lambda: client.states[client.root]["terminals"][0]["title"] == "mine")
    await client.dispatch(NAME, "terminal/input", data="exit 3\n")
    await client.wait(lambda: client.actions("terminal/exited"))
    state = client.states[NAME]
    code = state["lifecycle"]["exitCode"] if client.dialect.since("0.9.0") else state["exitCode"]
    assert code == 3
    field = "terminal" if client.seed else "channel"
    await client.request("disposeTerminal", **{field: NAME})
    await client.wait(lambda: client.states[client.root]["terminals"] == [])


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed here")
async def test_zsh_tells_its_commands_too(
    connect: Connect, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", str(shutil.which("zsh")))
    (tmp_path / ".zshrc").touch()  # without one it asks a newcomer what to do
    client = await connect("0.9.0")
    await opened_terminal(client, cwd=file_uri(str(served.work)))
    await client.wait(lambda: client.states[NAME].get("supportsCommandDetection"))
    await client.act(NAME, "terminal/input", data="mkdir sub; cd sub\n")
    await client.wait(lambda: client.states[NAME]["cwd"] == file_uri(str(served.work / "sub")))
    await client.act(NAME, "terminal/input", data="echo $((40 + 2)); (exit 7)\n")
    commands = await client.wait(lambda: complete(client, 2))
    assert [each["commandLine"] for each in commands] == ["mkdir sub; cd sub", "echo $((40 + 2)); (exit 7)"]
    assert [each["exitCode"] for each in commands] == [0, 7]
    assert "42" in commands[1]["output"]


def complete(client: WireClient, count: int) -> list[Json]:
    """The commands that have ended, when there are so many."""
    parts = [each for each in client.states[NAME]["content"] if each["type"] == "command" and each["isComplete"]]
    return parts if len(parts) >= count else []


async def test_the_program_sees_the_new_size(connect: Connect) -> None:
    client = await connect("0.9.0")
    await opened_terminal(client)
    await client.act(NAME, "terminal/resized", cols=123, rows=45)
    await client.act(NAME, "terminal/input", data="stty size\n")
    await client.wait(lambda: "45 123" in shown(client))


async def test_what_is_shown_to_a_newcomer_is_bounded(connect: Connect) -> None:
    client = await connect("0.9.0")
    await opened_terminal(client)
    del client.states[NAME]  # nobody folds so much for a test
    await client.act(NAME, "terminal/input", data="yes 0123456789 | head -c 2000000; echo done-$((1 + 1))\n")
    await client.wait(lambda: just_said(client, "done-2"), 60)
    newcomer = await connect("0.9.0", "newcomer")
    await newcomer.subscribe(NAME)
    assert SCROLLBACK_MAX // 2 < len(shown(newcomer)) <= 1.2 * SCROLLBACK_MAX
    assert "done-2" in shown(newcomer)


async def test_all_that_a_terminal_started_ends_with_it(connect: Connect) -> None:
    client = await connect("0.9.0")
    await opened_terminal(client)
    line = "sleep 900 & JOB=$!; (setsid sleep 901 & echo pids: $JOB $! .)\n"
    await client.act(NAME, "terminal/input", data=line)
    found = await client.wait(lambda: re.search(r"pids: (\d+) (\d+) \.", shown(client)))
    pids = [int(each) for each in found.groups()]
    assert all(alive(pid) for pid in pids)
    await client.request("disposeTerminal", channel=NAME)
    assert not any(alive(pid) for pid in pids)


async def test_a_program_waits_for_whoever_looks(
    connect: Connect, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that read slower than a program printed was closed as too slow, again and again."""
    monkeypatch.setattr(limits, "FOLLOWER_BYTES", 3_000_000)
    held, room = asyncio.Event(), Connection.room

    async def watched(connection: Connection) -> None:
        if connection._out_bytes > limits.MIB // 2:
            held.set()
        await room(connection)

    monkeypatch.setattr(Connection, "room", watched)
    client = await connect("0.9.0")
    await opened_terminal(client)
    assert client.socket is not None
    mine, theirs = client.socket.transport, served.broker.clients["tester"]._line.transport
    mine.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    theirs.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
    del client.states[NAME]
    size = 5_000_000
    await client.act(NAME, "terminal/input", data=f"yes 0123456789 | head -c {size}; echo done-$((1 + 1))\n")
    mine.pause_reading()
    await asyncio.wait_for(held.wait(), 60)
    mine.resume_reading()
    await client.wait(lambda: just_said(client, "done-2"), 60)
    assert sum(len(each["data"]) for each in client.actions("terminal/data")) >= size
    assert client.socket.close_code is None


def just_said(client: WireClient, words: str) -> bool:
    return any(words in each["action"].get("data", "") for each in client.envelopes[-20:])


async def test_claims(connect: Connect, version: str) -> None:
    owner, other = await connect(version, "owner"), await connect(version, "other")
    await opened_terminal(owner)
    await other.subscribe(NAME)
    mine = {"kind": "client", "clientId": "other"}
    tries: list[tuple[str, Json]] = [("input", {"data": "rm\n"}), ("claimed", {"claim": mine}), ("cleared", {})]
    for kind, fields in tries:
        echo = await other.act(NAME, f"terminal/{kind}", **fields)
        assert "Another client" in echo["rejectionReason"]
    await owner.act(NAME, "terminal/claimed", claim=mine)
    echo = await other.act(NAME, "terminal/input", data="\n")
    assert "rejectionReason" not in echo
    assert "rejectionReason" in await owner.act(NAME, "terminal/input", data="\n")
    field = "terminal" if owner.seed else "channel"
    assert await refused(owner, "disposeTerminal", **{field: NAME}) == -32009


async def test_a_terminal_outlives_its_client(connect: Connect) -> None:
    client = await connect("0.9.0")
    await opened_terminal(client)
    await client.dispatch(NAME, "terminal/input", data="echo before-$((1 + 1))\n")
    await client.wait(lambda: "before-2" in shown(client))
    await client.act(NAME, "terminal/input", data="sleep 0.3; echo after-$((1 + 2))\n")
    await client.drop()
    other = await connect("0.9.0", "other")
    await other.subscribe(NAME)
    await other.wait(lambda: "after-3" in shown(other))
    assert (await client.reconnect())["type"] == "replay"
    await client.wait(lambda: "after-3" in shown(client))
    until = [shown(each).partition("after-3")[0] for each in (client, other)]  # the prompt behind it may still come
    assert until[0] == until[1]


async def test_bad_terminals(connect: Connect, served: Served) -> None:
    client = await connect("0.9.0")
    tries: list[tuple[Json, int]] = [
        ({"channel": "t:/1", "claim": client.claim, "cols": 80, "rows": 5000}, -32602),
        ({"channel": "t:/1", "claim": client.claim, "cols": 0}, -32602),
        ({"channel": "t:/1", "claim": client.claim, "cwd": "file:///etc"}, -32009),
        ({"channel": "t:/1", "claim": {"kind": "client", "clientId": "somebody"}}, -32602),
        ({"channel": "t:/1", "claim": {"kind": "session", "session": "scripted:/none"}}, -32001),
        ({}, -32602),
    ]
    for params, code in tries:
        assert await refused(client, "createTerminal", **params) == code
    assert await refused(client, "disposeTerminal", channel="t:/1") == -32008
    await opened_terminal(client)
    assert await refused(client, "createTerminal", channel=NAME) == -32010
    echo = await client.act(NAME, "terminal/resized", cols=100_000, rows=1)
    assert "rejectionReason" in echo
    echo = await client.act(NAME, "terminal/claimed", claim={"kind": "session", "session": "scripted:/none"})
    assert "scripted:/none" in echo["rejectionReason"]


async def test_without_the_terminal_scope_a_terminal_is_neither_seen_nor_used_nor_closed(
    connect: Connect, served: Served
) -> None:
    owner = await connect("0.9.0")
    await owner.create_session("scripted:/s1")
    # Claimed by no client: only the scope stands before it.
    await opened_terminal(owner, claim={"kind": "session", "session": "scripted:/s1", "chat": "x"})
    token = new_token(served.home, "no-shell", [scope for scope in SCOPES if scope != "terminal"])
    small = WireClient(served.url.partition("?")[0] + f"?tkn={token}", "small", "0.9.0")
    await small.open()
    await small.initialize()
    assert await refused(small, "subscribe", channel=NAME) == -32009
    assert await refused(small, "disposeTerminal", channel=NAME) == -32009
    echo = await small.act(NAME, "terminal/input", data="exit\n")
    assert "no scope 'terminal'" in echo["rejectionReason"]
    await small.drop()
    small.states[NAME] = {}
    assert (await small.reconnect())["missing"] == [NAME]
    await small.close()
    hasty = WireClient(small.url, "hasty", "0.9.0")
    await hasty.open()
    assert (await hasty.initialize(NAME))["snapshots"] == []
    await hasty.close()
    assert "exitCode" not in owner.states[NAME]


async def test_a_claim_of_a_call_becomes_its_sessions(connect: Connect, version: str) -> None:
    client = await connect(version)
    me = {"clientId": "tester", "tools": [{"name": "pick"}]}
    chat = await client.create_session("scripted:/s1", activeClient=me)
    await client.say(chat, "t", "client tool")
    call = await waiting_call(client, chat, "running")
    where = {"turnId": "t", "toolCallId": call["toolCallId"]}
    claim = {"kind": "session", "session": "scripted:/s1", "chat": uri.default_chat("scripted:/s1")}
    await opened_terminal(client, claim={**claim, **where})
    result = {"success": True, "pastTenseMessage": "Picked"}
    await client.act(chat, client.verb("toolCallComplete"), **where, result=result)
    await client.wait(lambda: client.states[NAME]["claim"] == claim)
    await client.wait(lambda: client.states[client.root]["terminals"][0]["claim"] == claim)


@pytest.mark.parametrize("later", [False, True])
async def test_a_terminal_of_a_session_ends_with_it(connect: Connect, served: Served, later: bool) -> None:
    """Through whichever door the session goes, and also when it was claimed only later."""
    client = await connect("0.9.0")
    await client.create_session("scripted:/s1")
    claim = {"kind": "session", "session": "scripted:/s1", "chat": "x"}
    await opened_terminal(client, **({} if later else {"claim": claim}))
    if later:
        await client.act(NAME, "terminal/claimed", claim=claim)
    await served.host.delete("scripted:/s1", by="somebody")
    await client.wait(lambda: client.states[client.root]["terminals"] == [])
    assert await refused(client, "disposeTerminal", channel=NAME) == -32008


async def test_a_terminal_that_was_taken_over_outlives_the_session(connect: Connect, served: Served) -> None:
    client = await connect("0.9.0")
    await client.create_session("scripted:/s1")
    await opened_terminal(client, claim={"kind": "session", "session": "scripted:/s1", "chat": "x"})
    await client.act(NAME, "terminal/claimed", claim={"kind": "client", "clientId": "tester"})
    await served.host.delete("scripted:/s1", by="somebody")
    assert "rejectionReason" not in await client.act(NAME, "terminal/input", data="\n")


@pytest.mark.parametrize("version", ["1", "0.7.0", "1.0.0"])
async def test_a_name_that_looks_like_ours(connect: Connect, version: str) -> None:
    """`ahp-terminal:/ANYTHING` is what the protocol itself suggests; it could be created and never found again."""
    client: WireClient = await connect(version)
    name, field = "ahp-terminal:/mine", "terminal" if client.seed else "channel"
    await client.request("createTerminal", **{field: name, "claim": client.claim})
    await client.subscribe(name)
    await client.act(name, "terminal/titleChanged", title="mine")
    assert [each["resource"] for each in client.states[client.root]["terminals"]] == [name]
    assert await refused(client, "createTerminal", **{field: name, "claim": client.claim}) == -32010
    await client.request("disposeTerminal", **{field: name})
    await client.wait(lambda: client.states[client.root]["terminals"] == [])


async def test_our_own_names_are_taken(connect: Connect, served: Served) -> None:
    client: WireClient = await connect()
    ours = await feature(served.host, Terminals).start(
        policy=FREE, claim={"kind": "session", "session": "x"}, cwd=str(served.work), by="host"
    )
    assert await refused(client, "createTerminal", channel=f"ahp-terminal:/{ours.id}") == -32010
    await client.subscribe(f"ahp-terminal:/{ours.id}")


async def test_a_session_claims_by_a_chat(connect: Connect) -> None:
    """Since 0.9 the chat must be named; older clients do not know that."""
    client: WireClient = await connect("0.7.0")
    chat = await client.create_session("scripted:/s1")
    await opened_terminal(client)
    await client.act(NAME, "terminal/claimed", claim={"kind": "session", "session": "scripted:/s1"})
    claim = {"kind": "session", "session": "scripted:/s1", "chat": chat}
    assert client.states[NAME]["claim"] == claim
    later: WireClient = await connect("0.9.0", "later", NAME, "ahp-root://")
    assert (later.states[NAME]["claim"], later.states["ahp-root://"]["terminals"][0]["claim"]) == (claim, claim)
