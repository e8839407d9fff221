"""An outage of the database of up to a minute: running turns wait and continue, commands are refused, and nothing is
shown before it is durable."""

import asyncio

import pytest

from portico.cluster.postgres import log as module
from portico.kernel import commands as c
from portico.kernel import limits
from portico.kernel.errors import LogUnavailable
from portico.kernel.events import Message, Record, TurnEnded
from portico.kernel.turn import Turn
from tests.cluster.conftest import Node, Nodes
from tests.cluster.test_cluster import eventually
from tests.postgres import Databases

ADA = c.Caller("ada", "ada", frozenset(c.SCOPES), label="ada")


@pytest.fixture(autouse=True)
def minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr(module, "OUTAGE_SECONDS", 60.0)
    monkeypatch.setattr("portico.cluster.postgres.store.READ_AGAIN_SECONDS", 0.3)


async def running(node: Node) -> tuple[str, Turn]:
    """A session with a turn that has written something and waits."""
    begun: list[Turn] = []

    async def play(message: Message, turn: Turn) -> None:
        begun.append(turn)
        turn.text("before ")
        await node.agent.go.wait()
        turn.text("after")

    node.agent.play = play
    session = await node.host.start(by="test", agent="play")
    await session.send(Message("wait"), by="test")
    await eventually(lambda: bool(begun))
    await node.log.flush()
    return session.id, begun[0]


async def text_of(node: Node, session: str, turn: str) -> tuple[str, str | None]:
    found = (await node.host.get(session)).state.turn(turn)
    assert found is not None
    return "".join(getattr(part, "text", "") for part in found.parts), found.outcome


async def test_a_turn_survives_an_outage_and_nothing_is_shown_early(nodes: Nodes, databases: Databases) -> None:
    """Turns failed when the database was away for two seconds."""
    a, b = await nodes("a", lease=2.0), await nodes("b", lease=2.0)
    session, turn = await running(a)
    shown: list[Record] = []
    a.log.on_commit(shown.extend)
    databases.server.stop(at_once=True)
    try:
        turn.text("during ")
        a.agent.go.set()
        await eventually(lambda: a.log.down is not None)
        with pytest.raises(LogUnavailable):
            await a.host.do(c.RenameSession(session=session, title="x"), ADA)
        with pytest.raises(LogUnavailable):
            await b.host.do(c.StartSession(agent="play"), ADA)
        await asyncio.sleep(2.5)  # longer than the lease
        assert (shown, a.log._down) == ([], None)
    finally:
        databases.server.start()
    async with asyncio.timeout(30):
        ended = await (await a.host.get(session)).wait(turn.id)
    assert ended.outcome == "completed"
    await eventually(lambda: a.log.down is None and b.log.down is None)
    await b.cluster.catch_up()
    for node in (a, b):
        assert await text_of(node, session, turn.id) == ("before during after", "completed")
    events = [record.event for record in await a.log.read(f"session/{session}", limit=1000)]
    assert sum(isinstance(event, TurnEnded) for event in events) == 1
    await a.host.do(c.RenameSession(session=session, title="x"), ADA)
    assert a.cluster.owns(f"session/{session}")


async def test_after_a_longer_outage_the_turn_has_failed(
    nodes: Nodes, databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "OUTAGE_SECONDS", 1.0)
    a = await nodes("a")
    session, turn = await running(a)
    databases.server.stop(at_once=True)
    try:
        turn.text("lost")
        await eventually(lambda: a.log._down is not None)
    finally:
        databases.server.start()
    async with asyncio.timeout(30):
        ended = await (await a.host.get(session)).wait(turn.id)
    assert (ended.outcome, ended.error.code if ended.error else "") == ("failed", "log_unavailable")


async def test_the_buffer_is_bounded(nodes: Nodes, databases: Databases, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that produces more than that has to wait, as with a slow disk."""
    monkeypatch.setattr(limits, "PENDING_BYTES", 10_000)
    a = await nodes("a")
    session, turn = await running(a)
    databases.server.stop(at_once=True)
    try:
        for _ in range(20):
            turn.text("x" * 1_000)
        waiting = asyncio.create_task(a.log.wait_capacity())
        await asyncio.sleep(1)
        assert not waiting.done()
    finally:
        databases.server.start()
    await asyncio.wait_for(waiting, 30)
    a.agent.go.set()
    async with asyncio.timeout(30):
        ended = await (await a.host.get(session)).wait(turn.id)
    assert (ended.outcome, (await text_of(a, session, turn.id))[0].count("x")) == ("completed", 20_000)
