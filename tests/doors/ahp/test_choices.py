"""What comes along with a model, a subscription and a client's hello."""

from typing import Any

import pytest

from portico.agents.copilot.option import thinking
from portico.doors.ahp.view import message, snapshots
from portico.doors.ahp.wire.versions import Dialect
from portico.kernel import limits
from portico.kernel.agent import AgentInfo, Model
from portico.kernel.commands import Caller, JoinSession
from portico.kernel.events import Message
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.wire_client import Refused, WireClient, opened


def test_a_model_that_thinks_says_what_can_be_chosen() -> None:
    info = AgentInfo(
        "a", "A", models=[Model("m", "M", config=thinking(["low", "high"])), Model("n", "N", config=thinking([]))]
    )
    first, second = snapshots.agent(info)["models"]
    assert first["configSchema"]["properties"]["reasoningEffort"]["enum"] == ["low", "high"]
    assert "configSchema" not in second


async def test_what_was_chosen_with_a_model_reaches_the_agent(connect: Connect, served: Served) -> None:
    client = await connect("0.9.0")
    chat = await client.create_session("scripted:/s1")
    opened_with: list[Any] = []
    agent = served.host.agents["scripted"]
    open_ = agent.open

    async def spy(opening: Any) -> Any:
        opened_with.append(opening.model_config)
        return await open_(opening)

    agent.open = spy  # type: ignore[method-assign]
    models = [each["id"] for each in client.states[client.root]["agents"][0]["models"]]
    for turn, effort in (("t1", "low"), ("t2", "low"), ("t3", "high")):
        chosen = {"id": models[0], "config": {"reasoningEffort": effort}}
        said = {"text": "hello", "origin": {"kind": "user"}, "model": chosen}
        await client.act(chat, "chat/turnStarted", turnId=turn, message=said, startedAt="2026-01-01T00:00:00.000Z")
        state = await client.idle(chat)
        assert state["turns"][-1]["message"]["model"] == chosen
    assert opened_with == [{"reasoningEffort": "low"}, {"reasoningEffort": "high"}], "anew only where it has changed"


def test_a_message_of_an_older_host_is_shown_as_it_was() -> None:
    old = Message("hi", model="m", meta={"ahp": {"modelConfig": {"tier": "balance"}}})
    assert message.to_modern(old, Dialect("0.9.0", lambda: 0))["model"] == {"id": "m", "config": {"tier": "balance"}}


async def test_nothing_is_held_back_whatever_bound_is_wanted(connect: Connect) -> None:
    client = await connect("1.0.0")
    chat = await client.create_session("scripted:/s1")
    for bound in (0, 12.5, 60_000):
        assert "snapshot" in await client.subscribe(chat, delivery={"maxLatencyMs": bound})
    for wrong in (-1, "soon", True):
        with pytest.raises(Refused, match="maxLatencyMs"):
            await client.subscribe(chat, delivery={"maxLatencyMs": wrong})


@pytest.mark.parametrize(("own", "named"), [(None, "Editor of Ada"), ("VS Code", "VS Code")])
async def test_a_client_is_named_by_its_title(served: Served, own: str | None, named: str) -> None:
    client = WireClient(served.url, "id-of-a-window", "0.9.0")
    async with opened(client):
        about = {"name": "editor", "version": "1", "title": "Editor of Ada"}
        versions = {"protocolVersions": ["0.9.0"], "channel": client.root}
        await client.request("initialize", **versions, clientId=client.client_id, clientInfo=about)
        await client.create_session("scripted:/s1")
        active = {"clientId": client.client_id, "tools": [], **({"displayName": own} if own else {})}
        await client.act("scripted:/s1", "session/activeClientSet", activeClient=active)
        await client.act("scripted:/s1", "session/activeClientRemoved", clientId=client.client_id)
    session = await served.host.get("scripted:/s1")
    assert session.state.client_names == {client.client_id: named}, "also when it has left"


async def test_the_names_of_clients_are_bounded(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CLIENT_NAMES", 2)
    session = await served.host.start(agent="scripted", cwd=str(served.work), by="tester")
    for number in range(4):
        join = JoinSession(session=session.id, client=f"c{number}", name=f"Editor {number}", tools=[])
        await served.host.do(join, Caller.inside("tester"))
    assert session.state.client_names == {"c2": "Editor 2", "c3": "Editor 3"}
