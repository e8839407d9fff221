"""A session's chats and the list of sessions: what is folded, what is fetched and what a list says agree."""

import pytest

from portico.doors.ahp.wire import uri
from portico.kernel.events import Message
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.wire_client import Json, Refused, WireClient

SESSION = "scripted:/s1"
CHAT = uri.default_chat(SESSION)
SECOND, THIRD = "ahp-chat:/second", "ahp-chat:/third"


def line(client: WireClient, chat: str = CHAT) -> Json:
    return next(each for each in client.states[SESSION]["chats"] if each["resource"] == chat)


async def listed(client: WireClient) -> Json:
    [found] = (await client.request("listSessions", channel=client.root))["items"]
    return dict(found)


async def test_every_line_of_a_chat_has_a_title_and_an_origin(connect: Connect) -> None:
    """The default chat had no origin, in the list of sessions and elsewhere."""
    client: WireClient = await connect("1.0.0")
    await client.create_session(SESSION)
    await client.say(CHAT, "t1", "child please")
    await client.idle(CHAT)
    source = {"kind": "fork", "chat": CHAT, "turnId": "t1"}
    await client.request("createChat", channel=SESSION, chat=SECOND, source=source)
    await client.request("createChat", channel=SESSION, chat=THIRD)
    await client.wait(lambda: len(client.states[SESSION]["chats"]) == 4)
    found = (await listed(client))["chats"]
    assert all(each["title"] for each in found)
    assert {each["resource"]: each["origin"] for each in found} == {
        each["resource"]: each["origin"] for each in client.states[SESSION]["chats"]
    }
    call = client.actions("chat/toolCallStart")[0]["toolCallId"]
    tool = {"kind": "tool", "chat": CHAT, "toolCallId": call}
    assert [each["origin"] for each in found] == [{"kind": "user"}, tool, source, {"kind": "user"}]
    assert client.states[CHAT]["origin"] == {"kind": "user"}


@pytest.mark.parametrize("version", ["0.9.0", "1.0.0"])
async def test_a_chat_is_as_old_everywhere(connect: Connect, version: str) -> None:
    """Titles, settings and what happens within a turn made a chat newer in snapshots and lists than it is for those
    who fold: since 0.9 only turns that begin or end change `modifiedAt`."""
    client: WireClient = await connect(version)
    await client.create_session(SESSION)
    await client.say(CHAT, "t1", "hello")
    await client.idle(CHAT)
    ended = client.states[CHAT]["modifiedAt"]
    await client.act(SESSION, "session/titleChanged", title="Named")
    await client.act(SESSION, "session/configChanged", config={"flavour": "sweet"})
    await client.say(CHAT, "t2", "write it")
    await client.wait(lambda: client.states[SESSION].get("inputNeeded"))
    began = client.states[CHAT]["activeTurn"]["startedAt"]
    late: WireClient = await connect(version, "late", SESSION, CHAT)
    assert began > ended
    for each in (client, late):
        assert (each.states[CHAT]["modifiedAt"], line(each)["modifiedAt"]) == (began, began)
    assert (await listed(client))["modifiedAt"] == began


async def test_flags_of_a_chat(connect: Connect) -> None:
    """Since 1.0 a chat is read and archived by itself; its line in the session says so. Older versions hear nothing."""
    client, old = await connect("1.0.0"), await connect("0.9.0", "old")
    await client.create_session(SESSION)
    await client.request("createChat", channel=SESSION, chat=SECOND)
    await old.subscribe(SESSION)
    await client.subscribe(SECOND)
    assert (line(client, SECOND)["status"], line(old, SECOND)["status"]) == (33, 1)
    await client.act(SECOND, "chat/isArchivedChanged", isArchived=True)
    await client.act(SECOND, "chat/isReadChanged", isRead=False)
    await old.request("ping")
    late: WireClient = await connect("1.0.0", "late", SESSION, SECOND)
    for each in (client, late):
        assert (line(each, SECOND)["status"], each.states[SECOND]["status"]) == (65, 65)
        assert each.states[SESSION]["status"] == 33
    assert line(old, SECOND)["status"] == 1
    chats = {each["resource"]: each for each in (await listed(client))["chats"]}
    assert chats[SECOND] == {
        "resource": SECOND,
        "title": "New chat",
        "status": 65,
        "interactivity": "full",
        "origin": {"kind": "user"},
    }


@pytest.mark.parametrize(
    ("name", "field", "bit"), [("isReadChanged", "isRead", 32), ("isArchivedChanged", "isArchived", 64)]
)
@pytest.mark.parametrize(
    ("version", "channel", "session_bit", "chat_bit"),
    [
        ("1.0.0", SESSION, True, False),
        ("1.0.0", CHAT, False, True),
        ("0.9.0", SESSION, True, True),  # the only one that it knows stands for both
    ],
)
async def test_the_flags_of_a_session_and_of_its_default_chat(
    connect: Connect, name: str, field: str, bit: int, version: str, channel: str, session_bit: bool, chat_bit: bool
) -> None:
    client: WireClient = await connect("1.0.0")
    await client.create_session(SESSION)
    await client.say(CHAT, "t1", "hello")
    await client.idle(CHAT)
    assert (client.states[SESSION]["status"], client.states[CHAT]["status"]) == (1, 1)
    speaker = client if version == client.version else await connect(version, "old")
    await speaker.act(channel, f"{'chat' if channel == CHAT else 'session'}/{name}", **{field: True})
    found = await listed(client)
    late: WireClient = await connect("1.0.0", "late", SESSION, CHAT)
    session, chat = 1 | bit if session_bit else 1, 1 | bit if chat_bit else 1
    for each in (client, late):
        assert each.states[SESSION]["status"] == session
        assert (line(each)["status"], each.states[CHAT]["status"]) == (chat, chat)
    assert (found["status"], found["chats"][0]["status"]) == (session, chat)
    await client.wait(lambda: told(client).items() >= {"status": session, "chats": found["chats"]}.items())
    await client.say(CHAT, "t2", "hello")
    await client.idle(CHAT)
    assert client.states[SESSION]["status"] & 32 == client.states[CHAT]["status"] & 32 == 0, "news for both"


def told(client: WireClient) -> Json:
    """All that the list has heard of a session's changes, the last word on each field."""
    found: Json = {}
    for each in client.notices:
        if each["method"] == "root/sessionSummaryChanged":
            found |= each["params"]["changes"]
    return found


async def test_a_fork_outlives_what_it_was_made_from(connect: Connect) -> None:
    """Disposing of a chat took the chats with it that had been forked from it."""
    client: WireClient = await connect()
    await client.create_session(SESSION)
    await client.request("createChat", channel=SESSION, chat=SECOND)
    await client.subscribe(SECOND)
    await client.say(SECOND, "t1", "hello")
    await client.idle(SECOND)
    source = {"kind": "fork", "chat": SECOND, "turnId": "t1"}
    await client.request("createChat", channel=SESSION, chat=THIRD, source=source)
    await client.request("disposeChat", channel=SECOND)
    late: WireClient = await connect("0.9.0", "late", SESSION, THIRD)
    for each in (client, late):
        assert [chat["resource"] for chat in each.states[SESSION]["chats"]] == [CHAT, THIRD]
        assert line(each, THIRD)["origin"] == source
    await late.say(THIRD, "t2", "hello")
    assert [turn["id"] for turn in (await late.idle(THIRD))["turns"]] == ["t1", "t2"]


async def test_a_source_of_an_unknown_kind(connect: Connect) -> None:
    """It was taken for a fork."""
    client: WireClient = await connect()
    await client.create_session(SESSION)
    with pytest.raises(Refused, match="'fork' or a 'sideChat'"):
        await client.request(
            "createChat", channel=SESSION, chat=SECOND, source={"kind": "moon", "chat": CHAT, "turnId": "t1"}
        )


async def test_a_turn_that_was_cut_off_has_failed_in_lists_too(served: Served, connect: Connect) -> None:
    """Its chat said so, the list of sessions called it idle."""
    client: WireClient = await connect("1.0.0")
    await client.create_session(SESSION)
    await client.say(CHAT, "t1", "[[hang]]")
    await served.restart()
    late: WireClient = await connect("1.0.0", "late", SESSION, CHAT)
    shown = await listed(late)
    assert (late.states[CHAT]["status"], late.states[SESSION]["status"]) == (2, 2)
    assert (shown["status"], shown["chats"][0]["status"]) == (2, 2)


@pytest.mark.parametrize(("version", "status"), [("0.7.0", 24), ("0.8.0", 8)])
async def test_a_tool_that_a_client_runs(connect: Connect, version: str, status: int) -> None:
    """Up to 0.7 it is something that a session waits for."""
    client: WireClient = await connect(version)
    tools = {"clientId": client.client_id, "tools": [{"name": "pick", "inputSchema": {"type": "object"}}]}
    await client.request("createSession", channel=SESSION, activeClient=tools)
    await client.subscribe(SESSION)
    await client.say(CHAT, "t1", "client tool")
    await client.wait(lambda: client.states[SESSION].get("inputNeeded"))
    late: WireClient = await connect(version, "late", SESSION)
    assert late.states[SESSION]["status"] == status


async def test_a_rename_on_a_chats_channel(connect: Connect) -> None:
    """VS Code renames a session on the channel of its default chat; that was refused."""
    client: WireClient = await connect("0.9.0")
    other: WireClient = await connect("0.9.0", "other")
    chat = await client.create_session(SESSION)
    await other.subscribe(SESSION)
    echo = await client.act(chat, "session/titleChanged", title="Named")
    assert (echo["channel"], echo["action"]["title"]) == (chat, "Named")
    assert "rejectionReason" not in echo
    for each in (client, other):
        assert await each.wait(lambda each=each: each.states[SESSION]["title"] == "Named")  # type: ignore[misc]
    assert len([each for each in client.envelopes if each.get("origin")]) == 1
    await client.request("createChat", channel=SESSION, chat="ahp-chat://two/x")
    echo = await client.act("ahp-chat://two/x", "session/titleChanged", title="Second")
    assert echo["channel"] == "ahp-chat://two/x"
    await other.wait(lambda: [each["title"] for each in other.states[SESSION]["chats"]] == ["Named", "Second"])
    assert other.states[SESSION]["title"] == "Named"
    echo = await client.act(chat, "session/isArchivedChanged", isArchived=True)
    assert "does not belong" in echo["rejectionReason"]


async def test_a_sub_agent_is_found_by_the_name_that_clients_derive(served: Served, connect: Connect) -> None:
    """Editors compute a sub-agent's name from the session and the call; ours had no authority and was not opened."""
    client: WireClient = await connect("1.0.0")
    await client.create_session(SESSION)
    await client.say(CHAT, "t1", "child please")
    done = await client.idle(CHAT)
    call = done["turns"][0]["responseParts"][0]["toolCall"]
    derived = uri.subagent(SESSION, call["toolCallId"])
    assert derived == f"ahp-chat://subagent/{CHAT.rpartition('/')[2]}/{call['toolCallId']}"
    [content] = [each for each in call["content"] if each["type"] == "subagent"]
    assert content["resource"] == derived
    assert call["_meta"] == {"toolKind": "subagent", "subagentChatUri": derived, "subagentDescription": "Looker"}
    await client.wait(lambda: len(client.states[SESSION]["chats"]) == 2)
    shown = line(client, derived)
    origin = {"kind": "tool", "chat": CHAT, "toolCallId": call["toolCallId"]}
    assert (shown["origin"], shown["interactivity"]) == (origin, "read-only")
    [worker] = [each for each in (await listed(client))["chats"] if each["resource"] == derived]
    assert worker == {
        "resource": derived,
        "title": "Looker",
        "status": worker["status"],
        "interactivity": "read-only",
        "origin": origin,
    }
    child = next(each for each in served.host.list() if each.parent is not None)
    for name in (derived, f"ahp-chat:/{child.id}"):  # the second is what an older Portico called it
        await client.subscribe(name)
        assert client.states[name]["turns"][0]["message"]["text"] == "look"
        assert client.states[name]["interactivity"] == "read-only"
    old: WireClient = await connect("1", "old")
    await old.subscribe(SESSION)
    [content] = [
        each
        for each in old.states[SESSION]["turns"][0]["responseParts"][0]["toolCall"]["content"]
        if each["type"] == "subagent"
    ]
    assert content["resource"] == f"{SESSION}/subagent/{call['toolCallId']}"
    for name in (content["resource"], f"ahp-chat:/{child.id}"):
        await old.subscribe(name)
        assert old.states[name]["turns"][0]["userMessage"]["text"] == "look"
    assert old.states[content["resource"]]["summary"]["resource"] == content["resource"]


@pytest.mark.parametrize("version", ["1", "0.9.0"])
async def test_actions_carry_the_name_that_was_subscribed(served: Served, connect: Connect, version: str) -> None:
    client: WireClient = await connect(version)
    chat = await client.create_session(SESSION)
    await client.say(chat, "t1", "hello")
    await client.idle(chat)
    child = await served.host.fork(served.host.list()[0].id, by="test")
    name = f"ahp-chat:/{child.id}"
    await client.subscribe(name)
    turn = await child.send(Message("[[say:more]]"), by="test")
    await client.wait(lambda: len(client.states[name]["turns"]) == 2)
    assert client.states[name]["turns"][1]["id"] == turn
    await client.drop()
    await child.send(Message("[[say:again]]"), by="test")
    await child.wait_until(lambda state: state.active is None)
    await client.reconnect()
    await client.wait(lambda: len(client.states[name]["turns"]) == 3)
