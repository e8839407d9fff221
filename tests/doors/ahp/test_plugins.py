"""Plugins of clients: read from the client that brings them, shown to all, told to the agent, and gone with it."""

from collections.abc import Callable

import pytest

from portico.doors.ahp.act import clients
from portico.doors.ahp.wire import uri
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.test_conversation import text_of
from tests.doors.ahp.wire_client import Json, WireClient

SESSION = "scripted:/s1"
CHAT = uri.default_chat(SESSION)
TOP = "virtual://editor/tools"
FILES = {
    f"{TOP}/rules/style.md": "---\ndescription: How to write\nalwaysApply: true\n---\nWrite short lines.",
    f"{TOP}/rules/sql.md": "---\nalwaysApply: false\n---\nOnly for SQL.",
    f"{TOP}/skills/review/SKILL.md": '---\nname: review\ndescription: "Reviews code"\n---\nLook twice.',
    f"{TOP}/commands/greet.md": "context of greeting",
}
PLUGIN = {"type": "plugin", "id": "p1", "uri": TOP, "name": "Tools", "enabled": True, "nonce": "1"}


def serving(files: dict[str, str]) -> Callable[[Json], Json]:
    """The client's side: a few files of its own."""

    def answer(message: Json) -> Json:
        wanted = message["params"]["uri"]
        if message["method"] == "resourceRead":
            return {"data": files[wanted], "encoding": "utf-8"}
        below = [name.removeprefix(f"{wanted}/").split("/") for name in files if name.startswith(f"{wanted}/")]
        kinds = {path[0]: "file" if len(path) == 1 else "directory" for path in below}
        return {"entries": [{"name": name, "type": kind} for name, kind in kinds.items()]}

    return answer


def active(client: WireClient, *plugins: Json) -> Json:
    return {"clientId": client.client_id, "tools": [], "customizations": list(plugins)}


def own(client: WireClient) -> list[Json]:
    """What clients contributed, as this one has folded it."""
    return [each for each in client.states[SESSION].get("customizations", []) if each.get("clientId")]


async def read(client: WireClient) -> Json:
    return next(each for each in await client.wait(lambda: _read(client)) if each["id"].startswith("p1"))


def _read(client: WireClient) -> list[Json]:
    return [each for each in own(client) if each["load"]["kind"] != "loading"]


async def test_a_plugin_is_read_and_shown(connect: Connect) -> None:
    client, other = await connect("0.9.0"), await connect("0.7.0", "other")
    client.answer = serving(FILES)
    await client.create_session(SESSION)
    await other.subscribe(SESSION)
    await client.act(SESSION, "session/activeClientSet", activeClient=active(client, PLUGIN))
    for each in (client, other):
        shown = await read(each)
        assert (shown["clientId"], shown["load"]) == ("tester", {"kind": "loaded"})
        children = {child["name"]: (child["type"], child.get("description")) for child in shown["children"]}
        assert children == {
            "style": ("rule", "How to write"),
            "sql": ("rule", None),
            "review": ("skill", "Reviews code"),
            "greet": ("prompt", None),
        }
        assert "texts" not in shown
        again = (await each.subscribe(SESSION))["snapshot"]["state"]["customizations"]
        assert [item for item in again if item.get("clientId")] == [shown]
    asked = len(client.asked)
    await client.act(SESSION, "session/activeClientSet", activeClient=active(client, PLUGIN))
    assert len(client.asked) == asked, "the same nonce is the same plugin"
    await client.drop()
    await other.wait(lambda: not own(other))


async def test_the_agent_is_told(connect: Connect) -> None:
    client = await connect("1.0.0")
    client.answer = serving(FILES)
    await client.request("createSession", channel=SESSION, activeClient=active(client, PLUGIN))
    await client.subscribe(SESSION)
    await client.subscribe(CHAT)
    await client.say(CHAT, "t1", "context?")
    told = text_of((await client.idle(CHAT))["turns"][0])
    assert "Write short lines." in told
    assert "Skill 'review': Reviews code\nLook twice." in told
    assert "Only for SQL." not in told
    found = await client.request("completions", channel=CHAT, kind="userMessage", text="/gr", offset=3)
    assert [each["insertText"] for each in found["items"]] == ["/greet "]
    await client.say(CHAT, "t2", "/greet Ada")
    assert text_of((await client.idle(CHAT))["turns"][1]) == "|context of greeting\n\nAda|"
    # A chat that is made later has the same.
    await client.request("createChat", channel=SESSION, chat="ahp-chat:/side")
    await client.subscribe("ahp-chat:/side")
    await client.say("ahp-chat:/side", "t1", "context?")
    assert "Write short lines." in text_of((await client.idle("ahp-chat:/side"))["turns"][0])


async def test_what_is_switched_off_is_not_told(connect: Connect) -> None:
    client = await connect("0.9.0")
    client.answer = serving(FILES)
    await client.create_session(SESSION)
    await client.act(SESSION, "session/activeClientSet", activeClient=active(client, PLUGIN))
    shown = await read(client)
    [rule] = [child["id"] for child in shown["children"] if child["name"] == "style"]
    await client.act(
        SESSION, "session/customizationToggled", id=rule, enablement=[{"kind": "session", "enabled": False}]
    )
    [toggled] = [child for child in own(client)[0]["children"] if child["id"] == rule]
    assert toggled["enabled"] is False
    await client.say(CHAT, "t1", "context?")
    told = text_of((await client.idle(CHAT))["turns"][0])
    assert "Write short lines." not in told
    assert "Look twice." in told


async def test_programs_of_a_plugin_are_not_run(connect: Connect) -> None:
    client = await connect("0.9.0")
    client.answer = serving({**FILES, f"{TOP}/.mcp.json": "{}", f"{TOP}/hooks/hooks.json": "{}"})
    await client.create_session(SESSION)
    await client.act(SESSION, "session/activeClientSet", activeClient=active(client, PLUGIN))
    assert (await read(client))["load"] == {"kind": "degraded", "message": "Not run on this host: hooks, .mcp.json."}


async def test_a_client_that_gives_nothing_is_no_harm(connect: Connect) -> None:
    client = await connect("0.9.0")
    client.answer = lambda message: {"entries": [{"name": "../../etc", "type": "file"}, {"name": 3}, "x"]}
    await client.create_session(SESSION)
    await client.act(SESSION, "session/activeClientSet", activeClient=active(client, PLUGIN))
    assert (await read(client))["children"] == []
    assert [each["params"]["uri"] for each in client.asked] == [TOP]


async def test_version_1(connect: Connect) -> None:
    client = await connect("1")
    client.answer = serving(FILES)
    await client.create_session(SESSION)
    given = {"uri": TOP, "displayName": "Tools", "nonce": "1"}
    await client.act(SESSION, "session/activeClientChanged", activeClient=active(client, given))
    shown = {"customization": {"uri": TOP, "displayName": "Tools"}, "enabled": True, "clientId": "tester"}
    await client.wait(lambda: {**shown, "status": "loaded"} in own(client))
    await client.act(SESSION, "session/activeClientChanged", activeClient=None)
    await client.wait(lambda: not own(client))


async def test_two_clients_may_bring_the_same(connect: Connect) -> None:
    client, other = await connect("0.9.0"), await connect("0.9.0", "other")
    client.answer = other.answer = serving(FILES)
    await client.create_session(SESSION)
    await other.subscribe(SESSION)
    await client.act(SESSION, "session/activeClientSet", activeClient=active(client, PLUGIN))
    await other.act(SESSION, "session/activeClientSet", activeClient=active(other, PLUGIN))
    await client.wait(lambda: {each["id"] for each in _read(client)} == {"p1", "p1@other"})
    await client.act(SESSION, "session/activeClientRemoved", clientId="tester")
    await other.wait(lambda: [each["id"] for each in own(other)] == ["p1@other"])


async def test_after_a_crash_who_is_not_back_has_left(
    connect: Connect, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that never came back after a restart was shown as active for ever."""
    client, other = await connect("0.9.0"), await connect("0.9.0", "other")
    client.answer = serving(FILES)
    await client.create_session(SESSION)
    await other.subscribe(SESSION)
    await client.act(SESSION, "session/activeClientSet", activeClient=active(client, PLUGIN))
    await other.act(SESSION, "session/activeClientSet", activeClient=active(other))
    await read(other)
    with monkeypatch.context() as crash:
        crash.setattr(clients, "left", lambda connection: None)  # nobody writes down who goes
        await served.restart()
    other.url = served.url
    assert (await other.reconnect())["type"] == "replay"
    assert [each["clientId"] for each in other.states[SESSION]["activeClients"]] == ["other"]
    assert own(other) == []
    # It is still known as active itself, and goes when it goes.
    third = WireClient(served.url, "third", "0.9.0")
    await third.open()
    await third.initialize(SESSION)
    await other.drop()
    await third.wait(lambda: third.states[SESSION]["activeClients"] == [])
    await third.close()


async def test_who_listens_no_more_is_not_active(connect: Connect) -> None:
    client, other = await connect("0.9.0"), await connect("0.9.0", "other")
    await client.create_session(SESSION)
    await other.subscribe(SESSION)
    await client.act(SESSION, "session/activeClientSet", activeClient=active(client))
    await other.wait(lambda: other.states[SESSION]["activeClients"])
    await client.notify("unsubscribe", channel=SESSION)
    await other.wait(lambda: not other.states[SESSION]["activeClients"])


async def test_a_plugin_that_comes_later_is_told_with_the_next_message(connect: Connect, served: Served) -> None:
    """Only the first message of a chat told the agent what plugins say."""
    client: WireClient = await connect()
    client.answer = serving(FILES)
    await client.create_session(SESSION)
    await client.say(CHAT, "t1", "hello")
    await client.idle(CHAT)
    await client.act(SESSION, "session/activeClientSet", activeClient=active(client, PLUGIN))
    await read(client)
    told = []
    for turn in ("t2", "t3"):
        await client.say(CHAT, turn, "context please")
        told.append(text_of((await client.idle(CHAT))["turns"][-1]))
    assert ["Write short lines." in each for each in told] == [True, False]
    await served.restart()
    client.url = served.url
    await client.reconnect()
    await client.act(SESSION, "session/activeClientSet", activeClient=active(client, {**PLUGIN, "nonce": "2"}))
    await client.wait(lambda: [each for each in _read(client) if each["nonce"] == "2"])
    await client.say(CHAT, "t4", "context please")  # the same words again
    assert "Write short lines." not in text_of((await client.idle(CHAT))["turns"][-1])
    client.answer = serving({**FILES, f"{TOP}/rules/style.md": "Write long lines."})
    await client.act(SESSION, "session/activeClientSet", activeClient=active(client, {**PLUGIN, "nonce": "3"}))
    await client.wait(lambda: [each for each in _read(client) if each["nonce"] == "3"])
    await client.say(CHAT, "t5", "context please")
    assert "Write long lines." in text_of((await client.idle(CHAT))["turns"][-1])
