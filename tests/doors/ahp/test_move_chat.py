"""`moveChat` (1.0): the chats of a session have an order, which all lists show."""

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


@pytest.mark.parametrize(
    ("chat", "destination", "code"),
    [
        (DEFAULT, {"kind": "session", "session": SESSION}, -32602),
        ("ahp-chat://nobody/x", {"kind": "session", "session": SESSION}, -32001),
        (A, {"kind": "session", "session": "scripted:/none"}, -32001),
        (A, {"kind": "session", "session": SESSION, "after": A}, -32602),
        (A, {"kind": "session", "session": SESSION, "after": "ahp-chat://nobody/x"}, -32001),
        (A, {"kind": "session", "session": "scripted:/s2"}, -32602),
        (A, {"kind": "newSession"}, -32602),
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
