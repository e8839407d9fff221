"""What we send is what the 0.7.0 schemas ask for."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.fixtures import AHP
from tests.doors.ahp.test_conversation import waiting_call
from tests.doors.ahp.test_terminals import opened_terminal

Json = dict[str, Any]
SCHEMAS = AHP / "v0.7.0" / "schema"


def validator(file: str, name: str) -> Any:
    jsonschema = pytest.importorskip("jsonschema")
    path = SCHEMAS / file
    if not path.exists():
        pytest.skip("the protocol's schemas are not here")
    schema = json.loads(path.read_text())
    # Two slips of the published files: the status is a set of bits, and one reference names nothing.
    schema["$defs"] |= {"SessionStatus": {"type": "integer"}, "": False}
    return jsonschema.Draft202012Validator({**schema, "$ref": f"#/$defs/{name}"})


def check(file: str, name: str, value: Json) -> None:
    errors = [f"{list(each.absolute_path)}: {each.message[:300]}" for each in validator(file, name).iter_errors(value)]
    assert not errors, (name, value, errors)


async def test_everything_sent_is_valid(
    connect: Connect, served: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SHELL", "/bin/bash")
    monkeypatch.setenv("HOME", str(tmp_path))
    client = await connect("0.7.0", "c")
    me = {"clientId": "c", "tools": [{"name": "pick", "inputSchema": {"type": "object"}}]}
    chat = await client.create_session("scripted:/s1", activeClient=me)
    for index, text in enumerate(["usage", "child", "fail", "[[tool:nothing|x]]"]):
        await client.say(chat, f"t{index}", text)
        await client.idle(chat)
    await client.say(chat, "w", "write it")
    call = await waiting_call(client, chat, "pending-confirmation")
    states = [dict(client.states)]
    where = {"turnId": "w", "toolCallId": call["toolCallId"]}
    await client.act(chat, "chat/toolCallConfirmed", **where, approved=True, confirmed="user-action")
    await client.idle(chat)
    await client.say(chat, "q", "ask me")
    request = (await client.action("chat/inputRequested"))["request"]
    fresh = await connect("0.7.0", "other", chat, "scripted:/s1", client.root)
    states.append(fresh.states)
    await client.act(chat, "chat/inputCompleted", requestId=request["id"], response="decline")
    await client.idle(chat)
    await opened_terminal(client)
    await client.dispatch("my-terminals:/1", "terminal/input", data="exit\n")
    await client.action("terminal/exited")
    states.append(client.states)
    names = {"root": "RootState", "session": "SessionState", "chat": "ChatState", "terminal": "TerminalState"}
    for group in states:
        for name, state in group.items():
            kind = "chat" if "turns" in state else client.kinds[name]
            check("state.schema.json", names[kind], state)
    for envelope in client.envelopes:
        check("actions.schema.json", "ActionEnvelope", envelope)
    listed = await client.request("listSessions", channel=client.root)
    check("commands.schema.json", "ListSessionsResult", listed)
    resolved = await client.request("resolveSessionConfig", channel=client.root, provider="scripted")
    check("commands.schema.json", "ResolveSessionConfigResult", resolved)


def test_the_schemas_are_where_we_look(tmp_path: Path) -> None:
    if not AHP.exists():
        pytest.skip("the protocol's data is not here")
    assert (SCHEMAS / "actions.schema.json").exists()
