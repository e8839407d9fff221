"""A command of an agent that goes on when its turn is over is background work of its chat (1.0)."""

from portico.features.terminals.terminals import LiveTerminal, Terminals
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.wire_client import WireClient, opened
from tests.features import feature
from tests.free import FREE

SESSION = "scripted:/s1"


async def left_running(served: Served) -> LiveTerminal:
    """As an agent leaves one behind."""
    session = await served.host.get(SESSION)
    return await feature(served.host, Terminals).start(
        policy=FREE,
        claim={"kind": "session", "session": session.id},
        cwd=str(served.work),
        by="agent",
        title="serve it",
        session=session.id,
        command=["sleep", "1000"],
    )


async def test_it_is_listed_until_it_ends(connect: Connect, served: Served) -> None:
    client, older = await connect("1.0.0"), await connect("0.7.0", "older")
    chat = await client.create_session(SESSION)
    await older.subscribe(chat)
    terminal = await left_running(served)
    await client.say(chat, "t1", "hello")
    await client.idle(chat)
    [work] = await client.wait(lambda: client.states[chat].get("backgroundWork"))
    assert (work["kind"], work["label"], work["terminal"]) == ("shell", "serve it", f"ahp-terminal:/{terminal.id}")
    async with opened(WireClient(served.url, "later", "1.0.0")) as later:
        await later.initialize(later.root)
        assert (await later.subscribe(chat))["snapshot"]["state"]["backgroundWork"] == [work]
    away: WireClient = await connect("1.0.0", "away")
    await away.subscribe(chat)
    await away.drop()
    await terminal.close(by="agent")
    await client.wait(lambda: "backgroundWork" not in client.states[chat])
    await away.reconnect()
    await away.wait(lambda: "backgroundWork" not in away.states[chat])
    assert "backgroundWork" not in older.states[chat]


async def test_a_command_of_a_running_call_is_none(connect: Connect, served: Served) -> None:
    client = await connect("1.0.0")
    chat = await client.create_session(SESSION)
    await client.say(chat, "t1", "!echo begun; sleep 1000")
    await client.action("chat/toolCallContentChanged")
    assert "backgroundWork" not in (await client.subscribe(chat))["snapshot"]["state"]
    await client.act(chat, "chat/turnCancelled", turnId="t1")
    await client.idle(chat)
    assert not client.actions("chat/backgroundWorkSet")
