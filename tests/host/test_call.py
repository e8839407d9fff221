"""Tool calls: the agent's own, the host's, and those of connected clients."""

import asyncio

import pytest

from portico.agents.agent import Call, Message, Turn
from portico.kernel import events as e
from portico.kernel import limits
from portico.kernel.errors import BadRequest, Forbidden, NotFound
from portico.kernel.events import ErrorInfo, Json, ToolSpec
from portico.kernel.session import Session
from portico.kernel.state import CallPart, TurnState
from portico.kernel.tool import Tool, ToolResult
from portico.testing.fixtures import HostOpener
from portico.testing.play import Play, PlayAgent
from tests.host.commands import join, leave


def calls(turn: TurnState) -> list[CallPart]:
    return [part for part in turn.parts if isinstance(part, CallPart)]


async def played(open_host: HostOpener, play: Play) -> tuple[Session, TurnState]:
    session = await (await open_host(PlayAgent(play))).start(by="test", cwd="/")
    return session, await session.wait(await session.send(Message("go"), by="test"))


async def test_the_way_of_a_call(open_host: HostOpener) -> None:
    async def play(message: Message, turn: Turn) -> None:
        call = turn.tool("shell", title="Build", kind="execute")
        call.feed('{"command": ')
        call.feed('"make"}')
        call.ready(title="Run make")
        call.output("one\n")
        call.output("two\n")
        call.content([{"type": "terminal", "id": "1"}])
        await call.end(title="Ran make", detail="2 lines")
        await call.end(output="twice")
        call.output("late")

    session, turn = await played(open_host, play)
    [call] = calls(turn)
    assert (call.tool, call.kind, call.title, call.past, call.detail) == (
        "shell",
        "execute",
        "Run make",
        "Ran make",
        "2 lines",
    )
    assert (call.input, call.output) == ('{"command": "make"}', "one\ntwo\n")
    assert (call.done, call.ok, call.outcome, call.content) == (
        True,
        True,
        "completed",
        [{"type": "terminal", "id": "1"}],
    )
    ends = [r for r in await session.host.log.read(session.channel) if isinstance(r.event, e.ToolEnded)]
    assert len(ends) == 1


async def test_ids_that_the_agent_chose_are_kept_but_never_twice(open_host: HostOpener) -> None:
    """A second call with the id of one that had ended wrote into its record."""

    async def play(message: Message, turn: Turn) -> None:
        for _ in range(3):
            await turn.tool("read", "{}", id="tool-1").end()

    _, turn = await played(open_host, play)
    idents = [call.id for call in calls(turn)]
    assert idents[0] == "tool-1"
    assert len(set(idents)) == 3


async def test_a_call_that_the_turn_left_open_ends_with_it(open_host: HostOpener) -> None:
    async def play(message: Message, turn: Turn) -> None:
        turn.tool("read", '{"path": "a"}').output("half")
        turn.tool("shell").feed('{"comm')

    _, turn = await played(open_host, play)
    first, second = calls(turn)
    assert (first.done, first.ok, first.outcome, first.output) == (True, False, "cancelled", "half")
    assert first.error == ErrorInfo("cancelled", "The turn ended (completed) before this call did.")
    assert (second.done, second.input) == (True, ""), "input that never became whole is forgotten"


async def test_long_output_is_cut_and_kept_whole_in_a_blob(open_host: HostOpener) -> None:
    whole = "".join(f"{i}\n" for i in range(20_000))
    assert len(whole) > limits.TOOL_OUTPUT_CHARS

    async def play(message: Message, turn: Turn) -> None:
        await turn.tool("shell", "{}").end(output="x" * limits.TOOL_OUTPUT_CHARS)
        await turn.tool("shell", "{}").end(output=whole)

    session, turn = await played(open_host, play)
    fits, long = calls(turn)
    assert (fits.blob, fits.output) == (None, "x" * limits.TOOL_OUTPUT_CHARS)
    assert long.output.startswith("0\n1\n")
    assert long.output.endswith("19999\n")
    assert "characters left out" in long.output
    assert len(long.output) < limits.TOOL_OUTPUT_CHARS + 100
    assert long.blob is not None
    assert await session.host.log.blob(long.blob) == whole.encode()


async def test_a_flood_of_live_output_can_still_be_ended(
    open_host: HostOpener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn's end repeated the whole live output in one event, which was then too large to be written."""
    monkeypatch.setattr(limits, "TOOL_OUTPUT_CHARS", 1000)
    monkeypatch.setattr(limits, "DELTA_BYTES", 2000)
    monkeypatch.setattr(limits, "EVENT_BYTES", 10_000)

    async def play(message: Message, turn: Turn) -> None:
        call = turn.tool("shell", "{}")
        for _ in range(20):
            call.output("y" * 5000)
            await turn.drained()

    _, turn = await played(open_host, play)
    assert turn.outcome == "completed"
    assert len(calls(turn)[0].output) < 1100


async def test_a_host_tool_runs_and_reports(open_host: HostOpener) -> None:
    async def add(arguments: Json, call: Call) -> ToolResult:
        call.output("adding")
        if "a" not in arguments:
            raise BadRequest("'a' is missing.")
        return ToolResult(True, str(arguments["a"] + 1))

    async def play(message: Message, turn: Turn) -> None:
        for text in ('{"a": 1}', "{}", "not json", "[1]"):
            await turn.perform(turn.session_tool("add", text))
        await turn.perform(turn.session_tool("subtract", "{}"))

    host = await open_host(PlayAgent(play))
    host.tools["add"] = Tool(ToolSpec("add"), add)
    session = await host.start(by="test", cwd="/")
    turn = await session.wait(await session.send(Message("go"), by="test"))
    assert [(call.ok, call.output, call.error and call.error.code) for call in calls(turn)] == [
        (True, "2", None),
        (False, "", "bad_request"),
        (False, "", "bad_request"),
        (False, "", "bad_request"),
        (False, "", "not_found"),
    ]


async def test_an_effect_can_wait_until_its_call_is_in_the_log(open_host: HostOpener) -> None:
    """A kill in the middle of the effect left no trace of what had been under way."""
    found: list[bool] = []

    async def effect(arguments: Json, call: Call) -> ToolResult:
        session = call.turn.session
        await call.turn.settled()
        events = [record.event for record in await session.host.log.read(session.channel)]
        found.append(any(isinstance(event, e.ToolReady) and event.call == call.id for event in events))
        return ToolResult(True)

    async def play(message: Message, turn: Turn) -> None:
        for _ in range(3):
            await turn.perform(turn.session_tool("effect", "{}"))

    host = await open_host(PlayAgent(play))
    host.tools["effect"] = Tool(ToolSpec("effect"), effect)
    session = await host.start(by="test", cwd="/")
    await session.wait(await session.send(Message("go"), by="test"))
    assert found == [True, True, True]


async def client_call(open_host: HostOpener) -> tuple[Session, str]:
    """A session in whose running turn the client `c1` is asked to run its tool `open`."""

    async def play(message: Message, turn: Turn) -> None:
        result = await turn.perform(turn.session_tool("open", '{"file": "a"}'))
        turn.text(f"{result.ok} {result.output}")

    host = await open_host(PlayAgent(play))
    session = await host.start(by="test", cwd="/")
    await join(session, "c1", "Editor", [ToolSpec("open", "Opens a file")])
    await session.send(Message("go"), by="test")
    state = await session.wait_until(lambda state: bool(state.active and state.active.parts))
    assert state.active is not None
    return session, state.active.parts[0].id


async def test_a_client_runs_its_own_tool(open_host: HostOpener) -> None:
    session, call = await client_call(open_host)
    turn = session.state.turns[-1]
    assert calls(turn)[0].owner == "c1"
    session.tools.report(call, [{"type": "text", "text": "opening"}], client="c1")
    with pytest.raises(Forbidden):
        await session.tools.complete(call, ToolResult(True), client="c2")
    with pytest.raises(NotFound):
        await session.tools.complete("c99", ToolResult(True), client="c1")
    await session.tools.complete(call, ToolResult(True, "opened"), client="c1")
    await session.wait(turn.id)
    assert calls(turn)[0].output == "opened"
    with pytest.raises(NotFound):
        await session.tools.complete(call, ToolResult(True), client="c1")


async def test_the_calls_of_a_client_that_is_gone_fail(open_host: HostOpener) -> None:
    session, _ = await client_call(open_host)
    turn = session.state.turns[-1]
    await leave(session, "c1")
    await session.tools.abandon("c1")
    await session.wait(turn.id)
    assert calls(turn)[0].error == ErrorInfo("client_gone", "The client 'c1' that runs this tool is gone.")
    assert session.state.clients == []
    await leave(session, "c1")


async def test_tools_of_clients_never_take_the_hosts_names(open_host: HostOpener) -> None:
    async def run(arguments: Json, call: Call) -> ToolResult:
        return ToolResult(True, "host")

    async def play(message: Message, turn: Turn) -> None:
        await turn.perform(turn.session_tool("open", "{}"))

    agent = PlayAgent(play)
    host = await open_host(agent)
    host.tools["open"] = Tool(ToolSpec("open", "the host's"), run)
    session = await host.start(by="test", cwd="/")
    await join(session, "c1", "Editor", [ToolSpec("open", "a client's"), ToolSpec("save")])
    await join(session, "c1", "Editor", [ToolSpec("open", "a client's"), ToolSpec("close")])
    turn = await session.wait(await session.send(Message("go"), by="test"))
    assert calls(turn)[0].output == "host"
    assert [(tool.name, tool.description) for tool in agent.openings[0].tools] == [
        ("open", "the host's"),
        ("close", ""),
    ]
    assert len(session.state.clients) == 1


async def test_new_tools_reach_the_agent_with_the_next_turn(open_host: HostOpener) -> None:
    async def play(message: Message, turn: Turn) -> None:
        await asyncio.sleep(0)

    agent = PlayAgent(play)
    session = await (await open_host(agent)).start(by="test", cwd="/")
    await session.wait(await session.send(Message("one"), by="test"))
    await join(session, "c1", "", [ToolSpec("open")])
    await session.wait(await session.send(Message("two"), by="test"))
    await session.wait(await session.send(Message("three"), by="test"))
    assert [[tool.name for tool in opening.tools] for opening in agent.openings] == [[], ["open"]]
