"""An editor makes a session when somebody merely picks an agent: nobody sees it before its first message, and it goes
when its client leaves without one."""

import asyncio

import pytest

from portico.doors.ahp.act import drafts
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.wire_client import Json, Refused, WireClient

SESSION = "scripted:/s1"


async def listed(client: WireClient) -> list[str]:
    root: Json = {} if client.seed else {"channel": client.root}
    return [each["resource"] for each in (await client.request("listSessions", **root))["items"]]


def news(client: WireClient) -> list[str]:
    names = [
        each["params"]["notification"]["type"] if client.seed else each["method"]
        for each in client.notices
        if "method" in each
    ]
    return [name.rpartition("/")[2] for name in names if "session" in name]


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "GRACE_SECONDS", 0.02)


@pytest.mark.parametrize("version", ["0.5.1", "0.9.0", "1.0.0"])
async def test_it_is_being_created_until_it_is_announced(served: Served, connect: Connect, version: str) -> None:
    client: WireClient = await connect(version)
    chat = await client.create_session(SESSION)
    assert (client.states[SESSION]["lifecycle"], client.states[SESSION]["title"]) == ("creating", "")
    await client.drop()
    await client.reconnect()
    await client.say(chat, "t", "hold")
    await client.action("session/ready")
    assert client.states[SESSION]["lifecycle"] == "ready"
    assert client.states[SESSION]["chats"][0]["status"] & 8
    await client.act(chat, "chat/turnCancelled", turnId="t")
    await client.idle(chat)
    await client.say(chat, "t2", "[[say:hello]]")
    await client.idle(chat)
    assert len(client.actions("session/ready")) == 1
    late = await connect(version, "late")
    await late.subscribe(SESSION)
    assert late.states[SESSION]["lifecycle"] == "ready"


async def test_who_was_away_meanwhile_hears_that_it_is_ready(connect: Connect) -> None:
    client, other = await connect("0.9.0"), await connect("0.9.0", "other")
    chat = await client.create_session(SESSION)
    await client.drop()
    await other.subscribe(chat)
    await other.say(chat, "t", "[[say:hello]]")
    await other.idle(chat)
    assert (await client.reconnect())["type"] == "replay"
    assert client.states[SESSION]["lifecycle"] == "ready"


@pytest.mark.parametrize("watching", ["1", "0.9.0", "1.0.0"])
async def test_a_draft_is_seen_with_its_first_message(served: Served, connect: Connect, watching: str) -> None:
    client, other = await connect("0.9.0"), await connect(watching, "other")
    chat = await client.create_session(SESSION)
    await client.act(chat, "chat/draftChanged", draft={"text": "hm", "origin": {"kind": "user"}})
    assert client.states[SESSION]["chats"][0]["resource"] == chat
    for each in (client, other):
        assert await listed(each) == []
    assert served.host.list() == []
    await client.say(chat, "t", "[[say:hello]]")
    await client.idle(chat)
    for each in (client, other):
        assert await listed(each) == [SESSION]
        await each.wait(lambda each=each: "sessionAdded" in news(each))
        assert news(each)[0] == "sessionAdded"
        assert news(each).count("sessionAdded") == 1


async def test_a_waiting_message_or_a_chat_of_its_own_makes_it_seen(served: Served, connect: Connect) -> None:
    client: WireClient = await connect("0.9.0")
    await client.create_session(SESSION)
    await client.request("createChat", channel=SESSION, chat="ahp-chat://two/x")
    assert await listed(client) == [SESSION]


async def test_version_1_announces_at_once(connect: Connect) -> None:
    client, other = await connect("1"), await connect("0.9.0", "other")
    await client.create_session(SESSION)
    assert await listed(client) == await listed(other) == [SESSION]


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("subscribed", [True, False])
async def test_it_goes_when_its_client_leaves(served: Served, connect: Connect, subscribed: bool) -> None:
    client, other = await connect("0.9.0"), await connect("0.9.0", "other")
    if subscribed:
        await client.create_session(SESSION)
    else:
        await client.request("createSession", channel=SESSION)
    gone = asyncio.Event()
    served.host.watch(lambda ident, summary: gone.set() if summary is None else None)
    await client.close()
    await asyncio.wait_for(gone.wait(), 30)
    assert served.host.list(drafts=True) == []
    assert news(other) == []  # nobody knew of it
    with pytest.raises(Refused) as refused:
        await other.subscribe(SESSION)
    assert refused.value.code == -32001


@pytest.mark.usefixtures("soon")
async def test_it_stays_where_something_was_said(served: Served, connect: Connect) -> None:
    client, other = await connect("0.9.0"), await connect("0.9.0", "other")
    chat = await client.create_session(SESSION)
    await client.say(chat, "t", "[[say:hello]]")
    await client.idle(chat)
    second = await connect("0.9.0", "second")
    await second.create_session("scripted:/s2")
    gone = asyncio.Event()
    served.host.watch(lambda ident, summary: gone.set() if summary is None else None)
    await client.close()
    await second.close()
    await asyncio.wait_for(gone.wait(), 30)
    assert await listed(other) == [SESSION]


async def test_a_client_that_comes_back_finds_it(served: Served, connect: Connect) -> None:
    client: WireClient = await connect("0.9.0")
    chat = await client.create_session(SESSION)
    await served.restart()
    client.url = served.url
    await client.reconnect()
    await client.say(chat, "t", "[[say:hello]]")
    await client.idle(chat)
    assert await listed(client) == [SESSION]


async def test_one_that_a_restart_has_left_behind_goes(
    served: Served, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    client: WireClient = await connect("0.9.0")
    await client.create_session(SESSION)
    await served.restart()
    monkeypatch.setattr(drafts, "GRACE_SECONDS", 0.02)
    assert len(served.host.list(drafts=True)) == 1
    gone = asyncio.Event()
    served.host.watch(lambda ident, summary: gone.set() if summary is None else None)
    other = WireClient(served.url, "other", "0.9.0")
    await other.open()
    await other.initialize(other.root)
    await asyncio.wait_for(gone.wait(), 30)
    assert served.host.list(drafts=True) == []
    await other.close()


@pytest.mark.parametrize("version", ["1", "0.5.1", "0.6.0", "0.9.0", "1.0.0"])
@pytest.mark.parametrize(
    ("client_id", "about", "draft"),
    [
        ("c", None, False),
        ("c", {}, False),
        ("c", {"name": "acme-editor"}, False),
        ("c", {"name": 7, "title": "vscode"}, False),
        ("c", "vscode", False),
        ("c", {"name": "vscode-editor-window"}, True),
        ("c", {"name": "vscode-sessions-window", "version": "1.139.1"}, True),
        ("copilot-cli-15532-ec8982d1", None, True),
        ("my-copilot-cli", None, False),
    ],
)
async def test_only_clients_that_create_sessions_early_get_drafts(
    served: Served, connect: Connect, version: str, client_id: str, about: object, draft: bool
) -> None:
    """Every other client lost `root/sessionAdded` and the row in the list until the first message."""
    watching = await connect("0.9.0", "watching")
    client = WireClient(served.url, client_id, version)
    client.about = about  # type: ignore[assignment]  # also what no client should send
    await client.open()
    await client.initialize(client.root)
    await client.create_session(SESSION)
    announced = version == "1" or not draft
    assert await listed(client) == await listed(watching) == ([SESSION] if announced else [])
    assert news(client) == news(watching) == (["sessionAdded"] if announced else [])
    assert client.states[SESSION]["lifecycle"] == ("ready" if announced else "creating")
    await client.close()


async def test_a_client_keeps_its_kind_when_it_reconnects(served: Served, connect: Connect) -> None:
    for about, expected in (({"name": "acme"}, ["scripted:/acme"]), ({"name": "vscode-x"}, ["scripted:/acme"])):
        client = WireClient(served.url, about["name"], "0.9.0")
        client.about = about
        await client.open()
        await client.initialize(client.root)
        await client.drop()
        await served.restart()
        client.url = served.url
        await client.reconnect()
        await client.request("createSession", channel=f"scripted:/{about['name']}")
        assert await listed(client) == expected
        await client.close()
