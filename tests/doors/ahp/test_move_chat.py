"""`moveChat` (1.0): chats are put into another order, into another session, or become a session of their own."""

from typing import Any

import pytest

from portico.doors.ahp.wire import uri
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.wire_client import Refused, WireClient, opened

SESSION = "scripted:/s1"
DEFAULT = uri.default_chat(SESSION)
A, B = "ahp-chat://a/x", "ahp-chat://b/x"


async def begin(connect: Connect) -> WireClient:
    client: WireClient = await connect("1.0.0")
    chat = await client.create_session(SESSION)
    await client.say(chat, "t1", "hello")
    await client.idle(chat)
    for name in (A, B):
        await client.request("createChat", channel=SESSION, chat=name)
    await client.wait(lambda: len(client.states[SESSION]["chats"]) == 3)
    return client


def shown(client: WireClient) -> list[str]:
    return [each["resource"] for each in client.states[SESSION]["chats"]]


async def move(client: WireClient, chat: str, **destination: Any) -> Any:
    return await client.request("moveChat", channel=chat, destination={"kind": "session", **destination})


async def test_chats_are_put_into_another_order(connect: Connect, served: Served) -> None:
    client = await begin(connect)
    assert shown(client) == [DEFAULT, A, B]
    assert [each.get("movable", False) for each in client.states[SESSION]["chats"]] == [False, True, True]
    assert await move(client, B, session=SESSION, after=DEFAULT) == {"session": SESSION}
    await client.wait(lambda: shown(client) == [DEFAULT, B, A])
    await move(client, A, session=SESSION)
    await client.wait(lambda: shown(client) == [A, DEFAULT, B])
    assert client.actions("session/chatsReordered")[-1]["chats"] == [A, DEFAULT, B]
    [line] = (await client.request("listSessions", channel=client.root))["items"]
    assert [each["resource"] for each in line["chats"]] == [A, DEFAULT, B]
    await client.request("createChat", channel=SESSION, chat="ahp-chat://c/x")
    await client.wait(lambda: len(shown(client)) == 4)
    await served.restart()
    async with opened(WireClient(served.url, "again", "1.0.0")) as again:
        await again.initialize(again.root)
        await again.subscribe(SESSION)
        assert shown(again) == [A, DEFAULT, B, "ahp-chat://c/x"]


OTHER = "scripted:/s2"
OTHERS_DEFAULT = uri.default_chat(OTHER)


async def begin_two(connect: Connect) -> WireClient:
    """`A` has a sub-agent and a fork of `B`'s only turn beside it; the other session has only its default chat."""
    client = await begin(connect)
    chat = await client.create_session(OTHER)
    await client.say(chat, "o1", "hello")
    await client.idle(chat)
    await client.subscribe(A)
    await client.say(A, "a1", "child please")
    await client.idle(A)
    return client


def lines(client: WireClient, session: str) -> dict[str, Any]:
    return {each["resource"]: each for each in client.states[session]["chats"]}


async def listed(client: WireClient) -> dict[str, list[str]]:
    found = (await client.request("listSessions", channel=client.root))["items"]
    return {each["resource"]: [chat["resource"] for chat in each.get("chats", [])] for each in found}


async def told(client: WireClient, expected: dict[str, list[str]]) -> None:
    """Returns when the last that the list's notices have said of the chats of these sessions is this."""

    def said() -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for each in client.notices:
            params = each.get("params", {})
            line = params.get("changes") or params.get("summary") or {}
            if "chats" in line:
                found[params.get("session") or line["resource"]] = [chat["resource"] for chat in line["chats"]]
        return found

    await client.wait(lambda: said().items() >= expected.items())


async def test_a_chat_is_moved_into_another_session(connect: Connect, served: Served) -> None:
    client = await begin_two(connect)
    old: WireClient = await connect("0.9.0", "old", SESSION, OTHER, A)
    seed: WireClient = await connect("1", "seed", A)
    before, origin = client.states[A], lines(client, SESSION)[A]["origin"]
    [worker] = [each for each in shown(client) if each not in (DEFAULT, A, B)]
    moved = [OTHERS_DEFAULT, A, worker]
    await told(client, {SESSION: [DEFAULT, A, B, worker]})

    assert await move(client, A, session=OTHER, after=OTHERS_DEFAULT) == {"session": OTHER}

    removed, added = client.actions("session/chatRemoved"), client.actions("session/chatAdded")
    assert [each["chat"] for each in removed] == [A, worker]
    assert [each["summary"]["resource"] for each in added[-2:]] == [A, worker]
    assert await listed(client) == {SESSION: [DEFAULT, B], OTHER: moved}
    await told(client, {SESSION: [DEFAULT, B], OTHER: moved})
    late: WireClient = await connect("1.0.0", "late", SESSION, OTHER, A)
    for each in (client, old, late):
        assert [*lines(each, SESSION)] == [DEFAULT, B]
        assert [*lines(each, OTHER)] == moved
        assert lines(each, OTHER)[A]["origin"] == origin
        assert lines(each, OTHER)[worker]["origin"]["chat"] == A
    assert late.states[A] == client.states[A] == before

    await client.say(A, "a2", "hello")
    for each in (client, old, late):
        assert len((await each.idle(A))["turns"]) == 2
    assert len((await seed.idle(A))["turns"]) == 2, "in version 1 it is the session that it was"
    await move(client, A, session=OTHER)
    await client.wait(lambda: [*lines(client, OTHER)] == [A, OTHERS_DEFAULT, worker])
    await move(client, A, session=SESSION, after=B)
    assert await listed(client) == {SESSION: [DEFAULT, B, A, worker], OTHER: [OTHERS_DEFAULT]}
    await served.restart()
    async with opened(WireClient(served.url, "again", "1.0.0")) as again:
        await again.initialize(again.root, SESSION, OTHER)
        assert await listed(again) == {SESSION: [DEFAULT, B, A, worker], OTHER: [OTHERS_DEFAULT]}
        assert [*lines(again, SESSION)] == [DEFAULT, B, A, worker]


async def test_a_chat_becomes_a_session_of_its_own(connect: Connect, served: Served) -> None:
    client = await begin_two(connect)
    [worker] = [each for each in shown(client) if each not in (DEFAULT, A, B)]
    seed: WireClient = await connect("1", "seed", A)
    found = (await client.request("moveChat", channel=A, destination={"kind": "newSession"}))["session"]
    assert found not in (SESSION, OTHER, A)
    added = [each["params"]["summary"] for each in client.notices if each["method"] == "root/sessionAdded"][-1]
    assert (added["resource"], added["defaultChat"]) == (found, A)
    assert [each["resource"] for each in added["chats"]] == [A, worker]
    await told(client, {SESSION: [DEFAULT, B], found: [A, worker]})
    assert client.actions("chat/movableChanged") == [{"type": "chat/movableChanged", "movable": False}]
    await client.subscribe(found)
    expected = {SESSION: [DEFAULT, B], OTHER: [OTHERS_DEFAULT], found: [A, worker]}
    assert await listed(client) == expected
    assert (client.states[found]["defaultChat"], client.states[found]["lifecycle"]) == (A, "ready")
    await client.say(A, "a2", "hello")
    assert len((await client.idle(A))["turns"]) == 2
    assert len((await seed.idle(A))["turns"]) == 2
    assert A in await listed(seed)
    await client.act(found, "session/titleChanged", title="On its own")
    with pytest.raises(Refused, match="own conversation"):
        await move(client, A, session=SESSION)
    await client.request("disposeSession", channel=SESSION)
    await served.restart()
    async with opened(WireClient(served.url, "again", "1.0.0")) as again:
        await again.initialize(again.root, found, A)
        assert await listed(again) == {OTHER: [OTHERS_DEFAULT], found: [A, worker]}
        assert again.states[found]["title"] == "On its own"
        assert len(again.states[A]["turns"]) == 2


async def test_a_fork_on_its_own_is_still_one(connect: Connect) -> None:
    client = await begin(connect)
    source = {"kind": "fork", "chat": DEFAULT, "turnId": "t1"}
    await client.request("createChat", channel=SESSION, chat="ahp-chat://fork/x", source=source)
    found = (await client.request("moveChat", channel="ahp-chat://fork/x", destination={"kind": "newSession"}))[
        "session"
    ]
    await client.subscribe(found)
    await client.subscribe("ahp-chat://fork/x")
    assert client.states["ahp-chat://fork/x"]["origin"] == source
    assert [each["origin"] for each in client.states[found]["chats"]] == [source]
    items = (await client.request("listSessions", channel=client.root))["items"]
    assert [chat["origin"] for each in items for chat in each["chats"] if each["resource"] == found] == [source]


@pytest.mark.parametrize("restart", [False, True])
async def test_who_was_away_hears_of_a_move(connect: Connect, served: Served, restart: bool) -> None:
    """Also of what the chat did before: the approval that it waited for is gone from its old session."""
    client = await begin_two(connect)
    await client.say(A, "a2", "write please")
    await client.wait(lambda: client.states[SESSION].get("inputNeeded"))
    away: WireClient = await connect("1.0.0", "away", SESSION, OTHER, A)
    await away.drop()
    [needed] = client.states[SESSION]["inputNeeded"]
    said = {
        "turnId": "a2",
        "toolCallId": needed["toolCall"]["toolCallId"],
        "approved": True,
        "confirmed": "user-action",
    }
    await client.act(A, "chat/toolCallConfirmed", **said)
    await client.idle(A)
    await move(client, A, session=OTHER)
    assert [(await served.host.get(each)).state.children for each in (SESSION, OTHER)] == [
        [(await served.host.get(B)).id],
        [(await served.host.get(A)).id],
    ]
    if restart:
        await served.restart()
        away.url = served.url
    await away.reconnect()
    async with opened(WireClient(served.url, "late", "1.0.0")) as late:
        await late.initialize(SESSION, OTHER)
        for session in (SESSION, OTHER):
            assert without_status(away.states[session]) == without_status(late.states[session])


def without_status(state: dict[str, Any]) -> dict[str, Any]:
    """No action folds the activity of a session back to idle."""
    return {key: value for key, value in state.items() if key != "status"}


@pytest.mark.parametrize(
    ("said", "destination", "code", "words"),
    [
        ("hold", {"kind": "session", "session": OTHER}, -32004, "A turn is running"),
        ("hold", {"kind": "newSession"}, -32004, "A turn is running"),
        ("hello", {"kind": "session", "session": "vendor:/s3"}, -32602, "conversation with 'scripted'"),
        ("hello", {"kind": "session", "session": "scripted:/elsewhere"}, -32602, "works in .*; give that to"),
        ("hello", {"kind": "session", "session": "scripted:/draft"}, -32602, "Nothing was said"),
        ("hello", {"kind": "session", "session": OTHER, "after": B}, -32602, "no other conversation"),
    ],
)
async def test_where_a_chat_cannot_go(
    connect: Connect, served: Served, said: str, destination: dict[str, Any], code: int, words: str
) -> None:
    client = await begin_two(connect)
    (served.work / "sub").mkdir()
    await client.request("authenticate", channel=client.root, resource="https://vendor.example", token="good-token")
    for name, more in (
        ("vendor:/s3", {}),
        ("scripted:/elsewhere", {"workingDirectories": [f"file://{served.work}/sub"]}),
    ):
        chat = await client.create_session(name, **more)
        await client.say(chat, "t1", "hello")
        await client.idle(chat)
    await client.request("createSession", channel="scripted:/draft")
    await client.say(A, "a2", said)
    if said != "hold":
        await client.idle(A)
    before = await listed(client)
    with pytest.raises(Refused, match=words) as refused:
        await client.request("moveChat", channel=A, destination=destination)
    assert refused.value.code == code
    assert await listed(client) == before
    assert A in shown(client)


@pytest.mark.parametrize(
    ("chat", "destination", "code"),
    [
        (DEFAULT, {"kind": "session", "session": SESSION}, -32602),
        ("ahp-chat://nobody/x", {"kind": "session", "session": SESSION}, -32001),
        (A, {"kind": "session", "session": "scripted:/none"}, -32001),
        (A, {"kind": "session", "session": SESSION, "after": A}, -32602),
        (A, {"kind": "session", "session": SESSION, "after": "ahp-chat://nobody/x"}, -32001),
        (A, {"kind": "of-the-future"}, -32602),
        (A, {}, -32602),
    ],
)
async def test_what_is_refused_changes_nothing(
    connect: Connect, chat: str, destination: dict[str, Any], code: int
) -> None:
    client = await begin(connect)
    await client.request("createSession", channel="scripted:/s2")
    with pytest.raises(Refused) as refused:
        await client.request("moveChat", channel=chat, destination=destination)
    assert refused.value.code == code
    await client.subscribe(SESSION)
    assert shown(client) == [DEFAULT, A, B]
