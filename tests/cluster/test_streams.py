"""A host reads the deltas of another host's session only while one of its clients needs them."""

from typing import Any

from portico.kernel.events import Message, PartDelta, Record
from portico.kernel.state import TextPart
from portico.kernel.turn import Turn
from tests.cluster.conftest import Node, Nodes
from tests.cluster.test_cluster import eventually


async def shown(node: Node, session: str) -> list[Any]:
    """What a client that reads the session at this host gets of the running turn."""
    active = (await node.host.get(session)).state.active
    return [(part.id, part.text) for part in active.parts if isinstance(part, TextPart)] if active is not None else []


async def test_a_session_of_another_host_is_read_again_with_its_deltas(nodes: Nodes) -> None:
    a, b = await nodes("a"), await nodes("b")
    more: list[Turn] = []

    async def play(message: Message, turn: Turn) -> None:
        more.append(turn)
        turn.text("one ")
        await a.agent.go.wait()

    a.agent.play = play
    taps: list[Record] = []
    b.log.on_commit(taps.extend)
    session = await a.host.start(by="test", agent="play")
    await session.send(Message("wait"), by="test")
    await eventually(lambda: bool(more))
    await a.log.flush()
    await b.cluster.catch_up()
    channel = session.channel
    assert b.log.is_partial(channel)
    assert [record for record in taps if isinstance(record.event, PartDelta)] == []
    assert await shown(b, session.id) == await shown(a, session.id) != []
    more[0].text("two ")  # a client has just read the session at b
    await a.log.flush()
    await b.cluster.catch_up()
    assert not b.log.is_partial(channel)
    assert await shown(b, session.id) == await shown(a, session.id)
    b.cluster._used.clear()
    more[0].text("three ")
    await a.log.flush()
    await b.cluster.catch_up()
    assert b.log.is_partial(channel)
    assert await shown(b, session.id) == await shown(a, session.id)
    a.agent.go.set()
    await (await b.host.get(session.id)).wait(more[0].id)
    await eventually(lambda: b.log.head(channel) == a.log.head(channel))
    assert (await b.host.get(session.id)).state == (await a.host.get(session.id)).state
