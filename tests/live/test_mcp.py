"""The user's MCP servers in real ACP agents, one of them named as ours is."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from portico.agents.acp import acp
from portico.agents.agent import Agent, AgentContext
from portico.kernel.events import Json
from portico.kernel.session import Session
from portico.kernel.state import TurnState
from portico.testing.model import ModelServer
from tests.agents.acp_agent import said
from tests.live.host import hosting, play
from tests.live.programs import LIVE, Live
from tests.live.test_acp import REPORT, called

pytestmark = pytest.mark.live

TURNS = 10
SERVER = Path(__file__).parents[1] / "agents" / "mcp_server.py"


@pytest.fixture(scope="module")
def over_http() -> Iterator[str]:
    command = [sys.executable, str(SERVER), "http"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        process.terminate()


def agent_with(folder: Path, live: Live, model: str, servers: Json) -> Agent:
    settings = {"acp": {live.name: live.table(folder / "vendor", model)}, "mcp": servers}
    return next(agent for agent in acp(AgentContext(folder / "home", settings)) if agent.id == f"acp:{live.name}")


async def calling(session: Session, tool: str, args: Json) -> TurnState:
    """A turn that calls it. Codex connects to the servers in the background: the first turns may miss them."""
    for _ in range(TURNS):
        turn = await play(session, {"calls": [{"match": tool, "args": args}]}, {"say": "{{result}}"}, allow=True)
        if called(turn):
            break
    return turn


@pytest.mark.parametrize("live", LIVE, ids=lambda live: live.name)
async def test_servers_of_the_settings_work_in_a_real_agent(live: Live, tmp_path: Path, over_http: str) -> None:
    """On stdio and over HTTP, beside the session's own tools, although one has the name of our server."""
    servers = {
        "portico": {"command": [sys.executable, str(SERVER)], "env": {"TICKETS": "t1"}},
        "far": {"url": over_http},
    }
    async with ModelServer() as model, hosting(tmp_path, agent_with(tmp_path, live, model.url, servers)) as host:
        host.tools["job_boolean_true"] = REPORT
        session = await host.start(by="test", cwd=str(tmp_path / "work"))
        for name, key in (("portico", "t1"), ("far", "none")):
            turn = await calling(session, f".*{name}[^a-z].*add", {"a": 2, "b": 3})
            assert f", key {key}" in said(turn), (turn.error, [r.body.get("tools") for r in model.requests][-1])
            assert [call.ok for call in called(turn)] == [True]
        turn = await calling(session, ".*job_boolean_true", {"argument": "it does"})
        assert [(call.tool, call.output) for call in called(turn)] == [("job_boolean_true", "noted: it does")]
