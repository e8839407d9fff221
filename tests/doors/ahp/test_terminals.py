"""Terminals over the wire."""

from pathlib import Path
from typing import Any

import pytest

from portico.doors.ahp.names import file_uri
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.test_commands import refused
from tests.doors.ahp.wire_client import WireClient

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
        ({"channel": "t:/1", "cols": 0, "rows": 5000}, -32602),
        ({"channel": "t:/1", "cwd": "file:///etc"}, -32009),
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
