"""Sessions with a parent: forks from any turn, and sub-agents."""

import asyncio
from collections.abc import Callable

import pytest

from portico.agents.agent import AgentError, Message, Turn
from portico.features.chats.commands import SetDraft
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel import limits
from portico.kernel.errors import Conflict, NotFound
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.state import TextPart
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.features import host_of
from tests.host.plays import hang


async def story(host: Host, *texts: str) -> Session:
    session = await host.start(by="test", cwd="/", config={"k": 1})
    for text in texts:
        await session.wait(await session.send(Message(f"[[say:{text}]]"), by="test"))
    return session


async def test_fork_of_everything(host: Host) -> None:
    source = await story(host, "one", "two")
    fork = await host.fork(source.id, by="ada", uri="mine")
    assert fork.state.turns == source.state.turns
    assert (fork.state.parent, fork.state.config, fork.state.title) == (source.id, {"k": 1}, "Copy of [[say:one]]")
    assert fork.state.origin == e.Origin("fork", source.id, source.state.turns[-1].id)
    assert source.state.children == [fork.id]
    assert (await host.get("mine")) is fork
    await fork.wait(await fork.send(Message("[[say:three]]"), by="test"))
    assert (len(fork.state.turns), len(source.state.turns)) == (3, 2)
    idents = [turn.id for turn in fork.state.turns]
    assert len(set(idents)) == 3, "its own ids stay above the copied ones"


async def test_fork_from_any_turn(host: Host) -> None:
    source = await story(host, "one", "two", "three")
    for count, turn in enumerate(source.state.turns, 1):
        fork = await host.fork(source.id, by="ada", turn=turn.id)
        assert fork.state.turns == source.state.turns[:count]
    with pytest.raises(NotFound, match="finished turn"):
        await host.fork(source.id, by="ada", turn="t99")


@pytest.mark.parametrize("last", ["fine", "fail", "more"])
async def test_the_agent_forks_by_itself_only_what_it_has_as_we_do(open_host: HostOpener, last: str) -> None:
    """Its own memory of a turn that failed, or of one that came after the fork, is not what the history says."""

    async def play(message: Message, turn: Turn) -> None:
        agent.openings[-1].known_as(f"vendor-{len(agent.openings)}")
        if message.text == "fail":
            raise AgentError("no")

    agent = PlayAgent(play)
    host = await open_host(agent)
    source = await host.start(by="test", cwd="/")
    await source.wait(await source.send(Message("fail" if last == "fail" else "fine"), by="test"))
    fork = await host.fork(source.id, by="test")
    if last == "more":
        await source.wait(await source.send(Message("fine"), by="test"))
    await fork.wait(await fork.send(Message("go"), by="test"))
    assert agent.openings[-1].fork_of == ("vendor-1" if last == "fine" else None)


async def test_fork_of_a_running_session_takes_what_is_finished(open_host: HostOpener) -> None:
    host = await open_host(PlayAgent(hang))
    source = await host.start(by="test", cwd="/")
    running = await source.send(Message("go"), by="test")
    fork = await host.fork(source.id, by="ada")
    assert fork.state.turns == []
    with pytest.raises(NotFound):
        await host.fork(source.id, by="ada", turn=running)


async def test_a_fork_survives_a_restart_and_its_source(open_host: HostOpener) -> None:
    host = await open_host()
    source = await story(host, "one")
    turns = source.state.turns
    fork = await host.fork(source.id, by="ada")
    host = await open_host()
    assert (await host.get(fork.id)).state.turns == turns


async def test_a_long_history_is_copied_in_several_events(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    source = await story(host, *("x" * 500 for _ in range(10)))
    monkeypatch.setattr(limits, "EVENT_BYTES", 4000)
    fork = await host.fork(source.id, by="ada")
    assert fork.state.turns == source.state.turns
    copies = [r for r in await host.log.read(fork.channel) if isinstance(r.event, e.HistoryCopied)]
    assert len(copies) > 1


async def spawned(open_host: HostOpener, fail: bool = False) -> tuple[Session, Session]:
    async def play(message: Message, turn: Turn) -> None:
        call = turn.tool("task", "{}")
        child = await turn.spawn("count", title="Counter", call=call)
        child.text("one, two")
        if message.text == "hang":
            await asyncio.get_running_loop().create_future()
        if fail:
            raise AgentError("broken")
        await child.finish()
        await call.end(output="done")

    host = await open_host(PlayAgent(play))
    parent = await host.start(by="test", cwd="/")
    await parent.send(Message("hang" if not fail else "go"), by="test")
    state = await parent.wait_until(lambda state: bool(state.children))
    child = await host.get(state.children[0])
    await child.wait_until(lambda state: bool(state.turns and state.turns[0].parts))
    return parent, child


async def test_a_sub_agent_has_its_own_session(open_host: HostOpener) -> None:
    parent, child = await spawned(open_host)
    turn = parent.state.turns[0]
    assert child.state.origin == e.Origin("agent", parent.id, turn.id, turn.parts[0].id)
    assert (child.state.title, child.state.turns[0].message) == ("Counter", Message("count", origin="agent"))
    assert child.summary.status == "running"
    await parent.cancel(by="ada")
    assert child.state.turns[0].outcome == parent.state.turns[0].outcome == "cancelled"
    part = child.state.turns[0].parts[0]
    assert isinstance(part, TextPart)
    assert (part.text, part.done) == ("one, two", True)


@pytest.mark.parametrize(
    "command",
    [
        lambda child: c.SendMessage(session=child, text="and me?"),
        lambda child: c.QueueMessage(session=child, message=Message("later")),
        lambda child: c.RunCommand(session=child, line="ls"),
        lambda child: SetDraft(session=child, text="half"),
    ],
)
async def test_only_its_agent_talks_to_a_sub_agent(open_host: HostOpener, command: Callable[[str], c.Command]) -> None:
    parent, child = await spawned(open_host)
    for _ in ("while it runs", "after its end"):
        before = child.state.pos
        with pytest.raises(Conflict, match=rf"is a sub-agent.*Write to '{parent.id}', or fork it"):
            await child.do(command(child.id), "ada")
        assert child.state.pos == before
        if parent.state.active is not None:
            await parent.cancel(by="ada")
    fork = await host_of(child).fork(child.id, by="ada")
    assert await fork.send(Message("hang"), by="ada")
    await fork.cancel(by="ada")


async def test_a_failing_parent_ends_its_sub_agents(open_host: HostOpener) -> None:
    parent, child = await spawned(open_host, fail=True)
    assert (await parent.wait(parent.state.turns[0].id)).outcome == "failed"
    assert (await child.wait(child.state.turns[0].id)).outcome == "failed"


async def test_cancelling_the_sub_agent_alone(open_host: HostOpener) -> None:
    parent, child = await spawned(open_host)
    await child.cancel(by="ada")
    assert child.state.turns[0].outcome == "cancelled"
    assert parent.state.active is not None
    await parent.cancel(by="ada")


async def test_a_restart_closes_sub_agents_too(open_host: HostOpener) -> None:
    _, child = await spawned(open_host)
    child = await (await open_host()).get(child.id)
    assert child.state.turns[0].outcome == "interrupted"


async def test_sub_agents_of_sub_agents_have_a_bound(open_host: HostOpener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHILD_DEPTH", 2)

    async def play(message: Message, turn: Turn) -> None:
        for _ in range(int(message.text)):
            turn = await turn.spawn("deeper")

    host = await open_host(PlayAgent(play))
    session = await host.start(by="test", cwd="/")
    assert (await session.wait(await session.send(Message("2"), by="test"))).outcome == "completed"
    turn = await session.wait(await session.send(Message("3"), by="test"))
    assert (turn.outcome, turn.error and turn.error.code) == ("failed", "bad_request")
    assert host.running == 0
    assert all(summary.status != "running" for summary in host.list())


async def test_a_child_is_written_together_with_its_parent_s_line_of_it(host: Host) -> None:
    """A kill between the two left a chat that those who watched its session never heard of."""
    session = await story(host, "one")
    batches: list[list[str]] = []
    host.log.on_commit(lambda records: batches.append([e.tag(each.event) for each in records]))
    fork = await host.fork(session.id, by="test")
    plain = await host.start(by="test", cwd="/", parent=session.id)
    assert session.state.children == [fork.id, plain.id]
    for batch in batches:
        assert batch.count("session.started") == batch.count("child.started")
