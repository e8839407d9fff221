"""What an agent brings along, and how clients switch it: shown, kept, told to everybody, and left out by the agent."""

from pathlib import Path
from typing import Any

from portico.kernel.agent import Opening
from portico.kernel.customization import KEY
from portico.kernel.events import Message
from portico.kernel.turn import Turn
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.wire_client import WireClient

SESSION = "scripted:/s1"
SERVER, PLUGIN, SKILL = "mcp:search", "tools", "tools/review"


def entries(client: WireClient) -> dict[str, Any]:
    top = client.states[SESSION]["customizations"]
    return {each["id"]: each for item in top for each in (item, *item.get("children", []))}


async def test_they_are_shown_and_switched(served: Served, connect: Connect) -> None:
    one, two = await connect("0.9.0", "one"), await connect("0.7.0", "two")
    [agent] = [each for each in one.states[one.root]["agents"] if each["provider"] == "scripted"]
    assert [each["id"] for each in agent["customizations"]] == [SERVER, PLUGIN]
    await one.request("createSession", channel=SESSION, provider="scripted")
    await one.subscribe(SESSION)
    await two.subscribe(SESSION)
    assert {key: each["enabled"] for key, each in entries(one).items()} == dict.fromkeys((SERVER, PLUGIN, SKILL), True)
    assert entries(one)[SERVER]["state"] == {"kind": "ready"}
    decisions = [{"kind": "session", "enabled": False}, {"kind": "global", "enabled": True}]
    await one.act(SESSION, "session/customizationToggled", id=SERVER, enablement=decisions)
    await two.act(SESSION, "session/customizationToggled", id=SKILL, enabled=False)
    await one.wait(lambda: entries(one)[SKILL]["enabled"] is False)
    await two.wait(lambda: entries(two)[SERVER]["state"] == {"kind": "stopped"})
    assert (entries(two)[SERVER]["enabled"], entries(one)[SERVER]["enablement"]) == (False, decisions)
    await one.act(SESSION, "session/mcpServerStartRequested", id=SERVER)
    assert entries(one)[SERVER]["state"] == {"kind": "stopped"}  # it is still switched off
    await one.act(SESSION, "session/customizationToggled", id=SERVER, enablement=[{"kind": "session", "enabled": True}])
    await one.wait(lambda: entries(one)[SERVER]["state"] == {"kind": "ready"})
    await one.act(SESSION, "session/mcpServerStopRequested", id=SERVER)
    await one.wait(lambda: entries(one)[SERVER]["state"] == {"kind": "stopped"})
    folded = {key: one.states[SESSION][key] for key in ("customizations",)}
    await one.subscribe(SESSION)
    assert {key: one.states[SESSION][key] for key in folded} == folded
    await one.close()
    await served.restart()
    again = await connect("1.0.0", "three")
    await again.subscribe(SESSION)
    assert {key: again.states[SESSION][key] for key in folded} == folded


async def test_version_1_knows_them_by_their_uris(connect: Connect) -> None:
    client = await connect("1")
    await client.request("createSession", session=SESSION, provider="scripted")
    await client.subscribe(SESSION)
    shown = client.states[SESSION]["customizations"]
    assert shown[0] == {
        "customization": {"uri": "settings:/search", "displayName": "search"},
        "enabled": True,
        "status": "loaded",
    }
    await client.act(SESSION, "session/customizationToggled", uri="settings:/search", enabled=False)
    assert client.states[SESSION]["customizations"][0]["enabled"] is False
    folded = client.states[SESSION]["customizations"]
    await client.subscribe(SESSION)
    assert client.states[SESSION]["customizations"] == folded


async def test_what_is_not_there_is_refused(connect: Connect) -> None:
    client = await connect()
    await client.request("createSession", channel=SESSION, provider="scripted")
    for kind, ident in (
        ("customizationToggled", "x"),
        ("mcpServerStopRequested", PLUGIN),
        ("mcpServerStartRequested", "x"),
    ):
        echo = await client.act(SESSION, f"session/{kind}", id=ident)
        assert "rejectionReason" in echo, kind


async def test_an_agent_leaves_out_what_is_switched_off(open_host: HostOpener, tmp_path: Path) -> None:
    openings: list[Opening] = []

    class Agent(PlayAgent):
        async def open(self, opening: Opening) -> Any:
            openings.append(opening)
            return await super().open(opening)

    async def play(message: Message, turn: Turn) -> None:
        turn.text("ok")

    host = await open_host(Agent(play))
    session = await host.start(by="test", cwd=str(tmp_path))
    await session.keep(KEY + "mcp:search", {"enabled": False}, by="test")
    await session.keep(KEY + "mcp:other", {"enabled": True, "running": True}, by="test")
    await session.wait(await session.send(Message("go"), by="test"))
    assert openings[0].off == {"mcp:search"}
