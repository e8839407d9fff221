"""The user's MCP servers in the built-in agent: real servers, over stdio and streamable HTTP."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from portico.agents.agent import AgentContext, Message
from portico.agents.loop import LoopAgent
from portico.agents.loop.servers import NAME_CHARS, tool_name
from portico.features.sandboxes.record import NetworkRecord
from portico.kernel.events import Json, ToolOutput
from portico.kernel.state import QuestionPart
from portico.testing.model import ScriptedCall, Step
from portico.workspace.child import started
from tests.agents.loop.conftest import Desk, calls, ends, texts
from tests.features import feature
from tests.live.host import processes

SERVER = Path(__file__).parents[1] / "mcp_server.py"


@pytest.fixture(scope="module", params=["stdio", "http", "stateless"])
def table(request: pytest.FixtureRequest) -> Iterator[Json]:
    """`[agents.mcp.tickets]`, with a server behind it."""
    if request.param == "stdio":
        yield {"command": [sys.executable, str(SERVER)], "env": {"TICKETS": "t1"}}
        return
    command = [sys.executable, str(SERVER), request.param]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        yield {"url": f"http://127.0.0.1:{int(process.stdout.readline())}/mcp?{request.param}"}
        process.terminate()


async def open_with(desk: Desk, servers: Json, **start: object) -> None:
    desk.settings('[agents.loop]\nretries = 0\nprotocol = "tools"\n')
    await desk.opener.close()
    desk.host = await desk.opener(LoopAgent(AgentContext(desk.home, {"mcp": servers}), desk.environ))
    desk.session = await desk.host.start(by="test", agent="loop", cwd=str(desk.project), **start)  # type: ignore[arg-type]


def uses(tool: str, **arguments: object) -> Step:
    return Step(calls=[ScriptedCall(name=tool, args=arguments)])


DONE = Step(calls=[ScriptedCall(name="finish", args={"finalSummary": "Done."})])


@pytest.mark.parametrize("sandbox", ["off", "strict"])
async def test_requests_for_a_sandboxed_session_are_recorded(desk: Desk, table: Json, sandbox: str) -> None:
    """The model and the servers of the built-in agent are reached by the host, and were not in the record."""
    await open_with(desk, {"tickets": table}, config={"sandbox": sandbox})
    desk.says(uses("tickets__add", a=2, b=3), DONE)
    assert (await desk.run()).outcome == "completed"
    found = await feature(desk.host, NetworkRecord).of(desk.session.channel)
    used = {use.port: use for use in found.hosts}
    model, server = (urlsplit(url).port for url in (desk.server.url, table.get("url", "")))
    assert used.keys() == {each for each in (model, server) if each and sandbox != "off"}
    for use in used.values():
        assert (use.host, use.allowed_by, use.refused) == ("127.0.0.1", ["policy"], 0)
        assert use.count >= 2
        assert min(use.sent, use.received) > 100


async def test_a_tool_is_asked_for_run_and_fed_back(desk: Desk, table: Json) -> None:
    await open_with(desk, {"tickets": table})
    desk.says(uses("tickets__add", a=2, b=3), uses("tickets__fail"), DONE)
    turn = await desk.run()
    assert turn.outcome == "completed", turn.error
    add, fail = calls(turn)
    assert (add.tool, add.title, add.input, add.ok) == ("tickets__add", "tickets: add", '{"a":2,"b":3}', True)
    assert add.output.startswith("5 in ")
    if "command" in table:
        assert add.output == f"5 in {desk.project}, key t1"
    assert [(each.approvals[0].kind, each.approvals[0].allowed) for each in (add, fail)] == [("other", True)] * 2
    assert (fail.ok, fail.outcome) == (False, "failed")
    told = desk.server.requests[2].body["messages"]
    assert "no such ticket" in told[-1]["content"]
    offered = {each["function"]["name"]: each["function"] for each in desk.server.requests[0].body["tools"]}
    assert offered["tickets__add"]["description"] == "Adds two numbers."
    assert offered["tickets__add"]["parameters"]["required"] == ["a", "b"]


async def test_a_refusal_reaches_neither_the_server_nor_the_end_of_the_turn(desk: Desk, table: Json) -> None:
    await open_with(desk, {"tickets": table})
    desk.says(uses("tickets__add", a=2, b=3), DONE)
    turn = await desk.run(allow=False)
    assert [(call.ok, call.outcome, call.output) for call in calls(turn)] == [(False, "cancelled", "")]
    assert "refused" in desk.server.requests[1].body["messages"][-1]["content"]


async def test_what_a_server_asks_is_a_question_of_the_session(desk: Desk, table: Json) -> None:
    await open_with(desk, {"tickets": table}, config={"approvals": "allow"})
    desk.says(uses("tickets__paint"), DONE)
    turn = await desk.session.send(Message("agent: go"), by="test")
    async with asyncio.timeout(30):
        state = await desk.session.wait_until(
            lambda state: (
                bool(state.turn(turn) and state.turn(turn).outcome)  # type: ignore[union-attr]
                or any(isinstance(part, QuestionPart) for part in (state.active.parts if state.active else []))
            )
        )
        if state.active is not None:
            [question] = [part for part in state.active.parts if isinstance(part, QuestionPart)]
            await desk.session.questions.answer(question.id, "accept", {"colour": "red"}, by="test")
        ended = await desk.session.wait(turn)
    [paint] = calls(ended)
    if table.get("url", "").endswith("stateless"):  # such a server has no way back to its client, and says so
        assert not paint.ok
    else:
        assert paint.output == "accept: red"


async def test_a_cancel_ends_the_call_and_the_server_goes_on(desk: Desk, table: Json) -> None:
    await open_with(desk, {"tickets": table}, config={"approvals": "allow"})
    desk.says(uses("tickets__slow"), DONE)
    turn = await desk.session.send(Message("agent: go"), by="test")
    async with asyncio.timeout(30):
        if table.get("url", "").endswith("stateless"):  # one JSON answer: nothing is told on the way
            await desk.session.wait_until(lambda state: bool(state.active and calls(state.active)))
        else:
            async for records in desk.host.log.follow(desk.session.channel):
                if any(isinstance(each.event, ToolOutput) and each.event.text == "half way\n" for each in records):
                    break
        await desk.session.cancel(by="test")
        assert (await desk.session.wait(turn)).outcome == "cancelled"
    before = processes(desk.home.parent)
    desk.says(uses("tickets__add", a=1, b=1), DONE)
    assert calls(await desk.run())[0].ok
    assert processes(desk.home.parent) == before


async def test_a_server_that_dies_fails_its_call_and_is_started_again(desk: Desk) -> None:
    await open_with(desk, {"tickets": {"command": [sys.executable, str(SERVER)]}}, config={"approvals": "allow"})
    desk.says(uses("tickets__die"), DONE)
    [call] = calls(await desk.run())
    assert call.error is not None
    assert "exit code 3" in call.error.message
    desk.says(uses("tickets__add", a=1, b=1), DONE)
    assert calls(await desk.run())[0].ok
    [pid] = processes(desk.home.parent)
    await desk.opener.close()
    assert started(pid) is None


async def test_servers_that_do_not_answer_are_left_out_with_a_notice(desk: Desk, tmp_path: Path) -> None:
    table = {
        "gone": {"command": ["no-such-program"]},
        "closed": {"url": "http://127.0.0.1:9/mcp"},
        "mute": {"command": [sys.executable, "-c", "print('I am no server')"]},
    }
    await open_with(desk, table)
    desk.says(DONE)
    turn = await desk.run()
    assert turn.outcome == "completed", turn.error
    notices = texts(turn, "notice")
    for name in table:
        assert f"The MCP server '{name}' is left out" in notices
    assert texts(await desk.run(), "notice") == ""  # and not asked again at once


async def test_one_that_was_switched_off_is_not_started(desk: Desk) -> None:
    await open_with(desk, {"tickets": {"command": [sys.executable, str(SERVER)]}})
    [shown] = (await desk.host.agent("loop").describe()).customizations
    assert (shown["id"], shown["name"]) == ("mcp:tickets", "tickets")
    await desk.session.keep("customization/mcp:tickets", {"enabled": False}, by="test")
    desk.says(DONE)
    assert (await desk.run()).outcome == "completed"
    assert "tickets__add" not in str(desk.server.requests[0].body["tools"])
    assert processes(desk.home.parent) == []


async def test_a_server_that_a_killed_process_left_is_not_waited_for(desk: Desk) -> None:
    """Between two turns its process is killed: the next turn starts another."""
    await open_with(desk, {"tickets": {"command": [sys.executable, str(SERVER)]}}, config={"approvals": "allow"})
    desk.says(uses("tickets__add", a=1, b=1), DONE)
    await desk.run()
    [pid] = processes(desk.home.parent)
    os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(30):
        while processes(desk.home.parent):  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # nobody tells when a file of the roll goes
    assert calls(await desk.run())[0].ok


async def test_in_the_text_protocol_they_are_tools_as_well(desk: Desk) -> None:
    await open_with(desk, {"tickets": {"command": [sys.executable, str(SERVER)]}}, config={"approvals": "allow"})
    desk.settings('[agents.loop]\nretries = 0\nprotocol = "text"\n')
    desk.says(Step(say=['{"actions": [{"tool": "tickets__add", "a": 1, "b": 1}], "done": false}']), ends())
    assert calls(await desk.run())[0].ok


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [("a", "b", "a__b"), ("a", "b.c/d", "a__b_c_d"), ("a", "taken", "a__taken_71bc4a62"), ("a", "b" * 99, "a__bbb")],
)
def test_names_are_what_endpoints_take(server: str, tool: str, name: str) -> None:
    found = tool_name(server, tool, {"a__taken"})
    assert found.startswith(name[:6])
    assert len(found) <= NAME_CHARS
    assert found != "a__taken"
