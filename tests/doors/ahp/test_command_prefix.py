"""A message that begins with `!` runs a command line in place of the agent, and stays in the history."""

from pathlib import Path
from typing import Any

import pytest

from portico.features.people.view import View
from portico.kernel.commands import Caller, RunCommand, SendMessage
from portico.kernel.context import history, transcript
from portico.kernel.errors import BadRequest, Forbidden
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.wire_client import WireClient, opened

Json = dict[str, Any]


def the_call(state: Json) -> Json:
    [part] = [part for part in state["turns"][-1]["responseParts"] if part["kind"] == "toolCall"]
    call: Json = part["toolCall"]
    return call


@pytest.mark.parametrize("version", ["0.5.2", "0.7.0", "0.9.0", "1.0.0"])
async def test_a_command_runs_without_the_agent(connect: Connect, served: Served, version: str) -> None:
    client = await connect(version)
    chat = await client.create_session("scripted:/s1")
    await client.say(chat, "t1", "!echo $((40 + 2)); pwd")
    state = await client.idle(chat)
    call = the_call(state)
    assert (call["status"], call["toolInput"], call["confirmed"]) == (
        "completed",
        "echo $((40 + 2)); pwd",
        "not-needed",
    )
    assert call["_meta"]["toolKind"] == "terminal"
    shown = next(each for each in call["content"] if each["type"] == "text")["text"]
    assert shown.splitlines() == ["42", str(served.work)]
    assert state["turns"][-1]["message"]["text"] == "!echo $((40 + 2)); pwd"
    assert client.states["scripted:/s1"]["title"] == "echo $((40 + 2)); pwd"


async def test_its_terminal_can_be_looked_at_when_it_is_gone(connect: Connect, served: Served) -> None:
    client = await connect("1.0.0")
    chat = await client.create_session("scripted:/s1")
    await client.say(chat, "t1", "!echo kept; exit 3")
    call = the_call(await client.idle(chat))
    assert (call["success"], call["error"]["message"]) == (False, "It ended with exit code 3.")
    [resource] = [each["resource"] for each in call["content"] if each["type"] == "terminal"]
    await client.wait(lambda: client.states[client.root]["terminals"] == [])
    await served.restart()
    again = WireClient(served.url, "again", "1.0.0")
    async with opened(again):
        await again.initialize(again.root)
        state = (await again.subscribe(resource))["snapshot"]["state"]
        assert state["lifecycle"] == {"status": "exited", "exitCode": 3}
        assert "".join(each["value"] for each in state["content"]).strip() == "kept"
        assert state["claim"] == {"kind": "session", "session": "scripted:/s1", "chat": chat}
        echo = await again.act(resource, "terminal/input", data="x")
        assert "rejectionReason" in echo


async def test_who_may_not_use_terminals_says_it_to_the_agent(connect: Connect, served: Served) -> None:
    client = await connect("0.9.0")
    [connection] = served.broker.connections
    assert (await client.subscribe(client.root)) is not None
    connection.caller = Caller(connection.caller.id, "plain", frozenset({"read", "drive"}), "ahp")
    connection.view = View(served.host, connection.caller)
    chat = await client.create_session("scripted:/s1")
    await client.say(chat, "t1", "!echo hello")
    state = await client.idle(chat)
    assert not [part for part in state["turns"][-1]["responseParts"] if part["kind"] == "toolCall"]
    with pytest.raises(Forbidden):
        await served.host.do(RunCommand(session="session-1", line="true"), connection.caller)


async def test_the_prefix_is_offered_from_0_5_2_on(connect: Connect, served: Served) -> None:
    offered = {}
    for version in ("1", "0.5.1", "0.5.2", "1.0.0"):
        client = WireClient(served.url, f"client-{version}", version)
        async with opened(client):
            offered[version] = (await client.initialize(client.root)).get("terminalCommandPrefix")
    assert offered == {"1": None, "0.5.1": None, "0.5.2": "!", "1.0.0": "!"}


async def test_a_cancel_ends_the_program(connect: Connect, served: Served) -> None:
    client = await connect("1.0.0")
    chat = await client.create_session("scripted:/s1")
    mark = Path(served.work) / "mark"
    await client.say(chat, "t1", f"!echo begun; sleep 1000; touch {mark}")
    await client.action("chat/toolCallContentChanged")
    await client.act(chat, "chat/turnCancelled", turnId="t1")
    state = await client.idle(chat)
    assert state["turns"][-1]["state"] == "cancelled"
    await client.wait(lambda: client.states[client.root]["terminals"] == [])
    assert not mark.exists()


async def test_an_agent_is_not_told_of_it(served: Served) -> None:
    """It is in the history of people, and neither in the agent's nor the first thing it is told."""
    host, caller = served.host, Caller.inside("tester")
    session = await host.start(agent="scripted", cwd=str(served.work), by="tester")
    await host.do(RunCommand(session=session.id, line="true"), caller)
    await session.wait_until(lambda state: state.active is None and len(state.turns) == 1)
    with pytest.raises(BadRequest):
        await host.do(RunCommand(session=session.id, line=" "), caller)
    await host.do(SendMessage(session=session.id, text="hello"), caller)
    await session.wait_until(lambda state: state.active is None and len(state.turns) == 2)
    assert [turn.message.text for turn in history(session.state.turns, session.state)] == ["hello"]
    assert "true" not in transcript(session.state.turns)
