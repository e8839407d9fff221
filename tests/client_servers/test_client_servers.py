"""MCP servers that a client brings for one session: `session.servers`, and the agents that use them."""

import sys
from pathlib import Path
from typing import Any

import pytest
from acp.schema import EnvVariable, HttpHeader, HttpMcpServer, McpServerStdio, SseMcpServer

from portico.agents.agent import AgentContext
from portico.agents.loop import LoopAgent
from portico.client.acp.servers import EditorServer, client_servers
from portico.features.client_servers.commands import ClientServer, SetServers
from portico.features.client_servers.feature import SERVERS, ClientServers, named
from portico.kernel import commands as c
from portico.kernel.errors import BadRequest
from portico.server.identity import new_token
from portico.testing.model import ScriptedCall, Step
from tests.agents.loop.conftest import Desk, calls
from tests.agents.loop.conftest import desk as desk
from tests.doors.standing import problem, standing
from tests.features import feature

SERVER = Path(__file__).parents[1] / "agents/mcp_server.py"
DONE = Step(calls=[ScriptedCall(name="finish", args={"finalSummary": "Done."})])


@pytest.mark.parametrize(
    ("servers", "names"),
    [
        (["tickets"], ["tickets"]),
        (["My Tickets!"], ["My-Tickets"]),
        (["a", "a"], ["a", "a-2"]),
        (["数"], ["server"]),
        (["x" * 100], ["x" * 64]),
        ([], []),
    ],
)
def test_a_name_is_one_that_models_take(servers: list[str], names: list[str]) -> None:
    assert [*named([ClientServer(name=each, command=["x"]) for each in servers])] == names


@pytest.mark.parametrize(
    ("servers", "words"),
    [
        ([{"name": "a"}], "either a command or a url"),
        ([{"name": "a", "command": ["x"], "url": "http://x"}], "either a command or a url"),
        ([{"name": "a", "url": "file:///etc/passwd"}], "http://"),
        ([{"name": "a", "command": ["x"]}] * (SERVERS + 1), "at most"),
    ],
)
def test_what_is_refused(servers: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        named([ClientServer(**each) for each in servers])


def test_the_servers_of_an_editor() -> None:
    env, header = EnvVariable(name="KEY", value="1"), HttpHeader(name="Authorization", value="Bearer x")
    given: list[EditorServer] = [
        McpServerStdio(name="one", command="/bin/one", args=["-v"], env=[env]),
        HttpMcpServer(type="http", name="two", url="http://127.0.0.1:1/mcp", headers=[header]),
        SseMcpServer(type="sse", name="three", url="http://127.0.0.1:1/sse", headers=[]),
    ]
    assert client_servers(given) == [
        ClientServer(name="one", command=["/bin/one", "-v"], env={"KEY": "1"}),
        ClientServer(name="two", url="http://127.0.0.1:1/mcp", headers={"Authorization": "Bearer x"}),
    ]


async def test_programs_without_approval_need_the_scope_terminal(tmp_path: Path) -> None:
    """The attack: a token that may only send messages starts a program of its choice."""
    async with standing(tmp_path) as here:
        session = await here.start()
        body = {"servers": [{"name": "tickets", "command": ["touch", str(tmp_path / "ran")], "env": {"KEY": "hidden"}}]}
        path = f"/v1/sessions/{session}/servers"
        async with here.client(new_token(here.home, "small", ["read", "drive", "approve", "files"])) as http:
            problem(await http.put(path, json=body), 403, "forbidden")
        assert (await here.http.put(path, json=body)).status_code == 200
        assert [*feature(here.server.host, ClientServers).of(session)] == ["tickets"]
        problem(await here.http.put(path, json={"servers": [{"name": "x"}]}), 400, "bad_request", "servers")
        audit = (await here.http.get("/v1/audit")).text
        assert "session.servers" in audit
        assert "hidden" not in audit
        assert "hidden" not in (await here.http.get(f"/v1/sessions/{session}")).text
        await here.http.delete(f"/v1/sessions/{session}")
        assert feature(here.server.host, ClientServers).of(session) == {}


async def test_the_agent_of_the_session_uses_them_and_others_do_not(desk: Desk) -> None:
    desk.settings('[agents.loop]\nretries = 0\nprotocol = "tools"\n')
    await desk.opener.close()
    host = desk.host = await desk.opener(LoopAgent(AgentContext(desk.home, {}), desk.environ))
    desk.session = await host.start(by="test", agent="loop", cwd=str(desk.project))
    other = await host.start(by="test", agent="loop", cwd=str(desk.project))
    server = ClientServer(name="tickets", command=[sys.executable, str(SERVER)], env={"TICKETS": "t1"})
    await host.do(SetServers(session=desk.session.id, servers=[server]), c.Caller.inside("editor"))
    desk.says(Step(calls=[ScriptedCall(name="tickets__add", args={"a": 2, "b": 3})]), DONE)
    turn = await desk.run()
    assert [(call.tool, call.ok, call.output) for call in calls(turn)] == [
        ("tickets__add", True, f"5 in {desk.project}, key t1")
    ]
    assert [*feature(host, ClientServers).of(other.id)] == []
    await host.do(SetServers(session=desk.session.id, servers=[]), c.Caller.inside("editor"))
    desk.says(DONE)
    await desk.run()
    offered = {each["function"]["name"] for each in desk.server.requests[-1].body["tools"]}
    assert "tickets__add" not in offered, "from the next turn on"
