"""What must not hang, crash or be believed: broken frames, forged actions, wrong places."""

import asyncio
import contextlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed

from portico.doors.ahp.connection import connection
from portico.doors.ahp.connection.commands import COMMANDS
from portico.doors.ahp.wire import rpc, uri
from portico.doors.ahp.wire.actions import ACTIONS
from portico.doors.ahp.wire.rpc import WireError
from tests.doors.ahp.conftest import Connect, Served, run_served
from tests.doors.ahp.test_conversation import waiting_call
from tests.doors.ahp.wire_client import Refused, WireClient, opened

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("{", -32700),
        ("", -32700),
        ("[" * 10_000, -32700),
        ('{"a":' * 10_000 + "1" + "}" * 10_000, -32700),
        (b"\x00\x01", -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', -32600),
        ('[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        ("7", -32600),
        ('{"id":1}', -32600),
        ('{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        ('{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        ('{"jsonrpc":"2.0","id":1,"method":"subscribe","params":[1]}', -32602),
        ('{"jsonrpc":"2.0","id":1,"method":"noSuchThing"}', -32601),
        ('{"jsonrpc":"2.0","id":1,"method":"subscribe","params":{}}', -32602),
        ('{"jsonrpc":"2.0","id":1,"method":"subscribe","params":{"channel":7}}', -32602),
    ],
)
async def test_broken_frames(connect: Connect, frame: str | bytes, code: int) -> None:
    client = await connect("0.9.0")
    await client.send_raw(frame)
    [answer] = await client.wait(lambda: [each for each in client.notices if "error" in each])
    assert answer["error"]["code"] == code
    assert "Traceback" not in json.dumps(answer)
    assert await client.request("ping") is None


async def test_a_huge_frame_closes_the_connection(connect: Connect) -> None:
    client = await connect("0.9.0")
    assert client.socket is not None
    with contextlib.suppress(ConnectionClosed):
        await client.send_raw("x" * (9 * 1024 * 1024))
    await client.socket.wait_closed()
    assert client.socket.close_code == 1009


@pytest.mark.parametrize("bound", ["_INBOX", "_INBOX_BYTES"])
async def test_who_asks_faster_than_we_answer_is_slowed_down(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    """Not collected without end: reading stops at the bound and goes on behind it, and every request is answered."""
    monkeypatch.setattr(connection, bound, 3)
    client = await connect("0.9.0")
    asked = [await client.start_request("listSessions", channel=uri.ROOT) for _ in range(200)]
    async with asyncio.timeout(30):
        answers = await asyncio.gather(*asked)
    assert all("result" in each for each in answers)


async def test_unknown_notifications_and_channels_are_ignored(connect: Connect) -> None:
    client = await connect("0.9.0")
    await client.notify("setClientManagedSettingsPermissions", x=1)
    await client.dispatch("scripted:/nobody", "session/titleChanged", title="x")
    await client.dispatch("", "chat/turnStarted", turnId="t", message={"text": "x"})
    await client.notify("dispatchAction", channel=uri.ROOT, clientSeq="x", action={"type": "root/configChanged"})
    await client.notify("dispatchAction", channel=uri.ROOT, clientSeq=1, action="x")
    await client.notify("dispatchAction")
    await client.notify("unsubscribe", channel="nowhere:/")
    assert await client.request("ping") is None
    assert client.envelopes == []


async def test_actions_in_the_wrong_place(connect: Connect, version: str) -> None:
    client = await connect(version)
    chat = await client.create_session("scripted:/s1")
    bad: list[tuple[str, Json]] = [
        (client.verb("turnStarted"), {"turnId": "t"}),
        (client.verb("turnStarted"), {"turnId": 7, "message": {}, "userMessage": {}}),
        (client.verb("toolCallConfirmed"), {"turnId": "t", "toolCallId": "c", "approved": "yes"}),
        (client.verb("toolCallConfirmed"), {"turnId": "t", "toolCallId": "c", "approved": True}),
        (client.verb("toolCallComplete"), {"turnId": "t", "toolCallId": "c", "result": {}}),
        (client.verb("turnComplete"), {"turnId": "t", "duration": 1}),
        (client.verb("truncated"), {"turnId": "unknown"}),
        (client.verb("inputCompleted"), {"requestId": "q", "response": "accept"}),
        (client.verb("pendingMessageRemoved"), {"kind": "queued", "id": "m"}),
        ("x/unknown", {}),
        ("session/ready", {}),
        ("root/agentsChanged", {"agents": []}),
    ]
    for kind, fields in bad:
        echo = await client.act(chat, kind, **fields)
        assert echo["rejectionReason"], kind
        assert echo["action"]["type"] == kind
    state = client.states[chat]
    assert state["turns"] == []
    assert "activeTurn" not in state


async def test_nothing_runs_that_was_not_approved(connect: Connect, served: Served) -> None:
    """A confirmation for another turn's call, twice, or with an option that is not there."""
    client = await connect("0.9.0")
    chat = await client.create_session("scripted:/s1")
    await client.say(chat, "t", "write it")
    call = await waiting_call(client, chat, "pending-confirmation")
    right = {"turnId": "t", "toolCallId": call["toolCallId"], "approved": True, "confirmed": "user-action"}
    for wrong in (
        {**right, "turnId": "other"},
        {**right, "toolCallId": "other"},
        {**right, "selectedOptionId": "nonsense"},
        {**right, "selectedOptionId": "deny"},
    ):
        assert (await client.act(chat, "chat/toolCallConfirmed", **wrong))["rejectionReason"]
    assert (await client.act(chat, "chat/toolCallResultConfirmed", **right))["rejectionReason"]
    await waiting_call(client, chat, "pending-confirmation")
    assert "rejectionReason" not in await client.act(chat, "chat/toolCallConfirmed", **right)
    assert (await client.act(chat, "chat/toolCallConfirmed", **right))["rejectionReason"]
    await client.idle(chat)


async def test_speaking_for_another_client(connect: Connect) -> None:
    client = await connect("0.9.0")
    await client.create_session("scripted:/s1")
    other = {"clientId": "other", "tools": []}
    assert (await client.act("scripted:/s1", "session/activeClientSet", activeClient=other))["rejectionReason"]
    with pytest.raises(Refused) as refused:
        await client.request("createSession", channel="scripted:/s2", activeClient=other)
    assert refused.value.code == -32602


async def test_errors_of_create_session(connect: Connect, version: str) -> None:
    client = await connect(version)
    field = "session" if client.seed else "channel"
    await client.request("createSession", **{field: "scripted:/s1"})
    codes = []
    for params in (
        {field: "scripted:/s1"},
        {field: "scripted:/s2", "provider": "nobody"},
        {field: "scripted:/s3", "fork": {"session": "scripted:/none", "turnId": "t"}},
        {field: "scripted:/s4", "workingDirectories": ["file:///no/such/folder"]},
        {field: "no uri"},
        {},
    ):
        with pytest.raises(Refused) as refused:
            await client.request("createSession", **params)
        codes.append(refused.value.code)
    assert codes == [-32003, -32002, -32001, -32602, -32602, -32602]


@settings(max_examples=300, deadline=None)
@given(
    st.text().map(lambda text: text.encode("utf-8", "replace"))
    | st.binary()
    | st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists).map(msgspec.json.encode)
)
def test_every_frame_is_parsed_or_refused(data: bytes) -> None:
    code = 0
    try:
        rpc.parse(data)
    except WireError as error:
        code = error.rpc
    assert code in (0, -32700, -32600, -32602)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "t", "scripted:/s1", "queued", "accept"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["text", "id", "kind", "turnId", "toolCallId", "approved", "value", "state"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
_FIELDS = ["turnId", "message", "toolCallId", "approved", "result", "title", "config", "order", "kind", "id", "answer"]
_FIELDS += ["requestId", "response", "activeClient", "draft", "annotation", "data", "channel", "uri", "params", "claim"]


_STEPS = st.tuples(
    st.sampled_from(sorted(set(COMMANDS) - {"reconnect", "initialize", "createTerminal"}) + sorted(ACTIONS)),
    st.sampled_from([uri.ROOT, "scripted:/s1", uri.default_chat("scripted:/s1")]),
    st.dictionaries(st.sampled_from(_FIELDS), _VALUES, max_size=4),
)


@settings(max_examples=15, deadline=None)
@given(steps=st.lists(_STEPS, max_size=40))
def test_fuzzed_commands_and_actions(steps: list[tuple[str, str, Json]]) -> None:
    """Every request is answered, every action leaves the host standing."""

    async def play(served: Served) -> None:
        async with opened(WireClient(served.url, "fuzz", "1.0.0")) as client:
            await client.initialize(uri.ROOT)
            await client.create_session("scripted:/s1")
            for name, where, fields in steps:
                if name in ACTIONS:
                    action = {**fields, "type": name}
                    await client.notify("dispatchAction", channel=where, clientSeq=1, action=action)
                    continue
                answer = await (await client.start_request(name, **{"channel": where, **fields}))
                assert answer.get("error", {}).get("code") != -32603, answer
            assert await client.request("ping") is None
            assert not [each for each in client.envelopes if "went wrong" in each.get("rejectionReason", "")]

    run_served(play)
