"""The MCP servers that an editor brings for a session, in real agents: ACP programs, and Copilot through its SDK."""

import sys
from pathlib import Path

import pytest

from portico.features.client_servers.commands import ClientServer, SetServers
from portico.kernel.commands import SCOPES, Caller
from portico.testing.model import ModelServer
from tests.agents.acp_agent import said
from tests.live.copilot_agent import copilot_agent
from tests.live.host import agent_of, hosting
from tests.live.programs import LIVE
from tests.live.test_mcp import SERVER, calling, over_http

pytestmark = pytest.mark.live

OWNER = Caller("owner", "owner", frozenset(SCOPES))
SDK = "copilot-sdk"
NAMES = [*(live.name for live in LIVE), SDK]

__all__ = ["over_http"]  # a fixture of another file


@pytest.mark.parametrize("name", NAMES)
async def test_servers_of_an_editor_work_in_a_real_agent(name: str, tmp_path: Path, over_http: str) -> None:
    """On stdio and over HTTP, in their session only; the next ones replace them."""
    async with ModelServer() as model:
        live = {each.name: each for each in LIVE}
        agent = copilot_agent(tmp_path, model.url) if name == SDK else agent_of(tmp_path, live[name], model.url)
        async with hosting(tmp_path, agent) as host:
            session = await host.start(by="test", cwd=str(tmp_path / "work"))
            near = ClientServer(name="near", command=[sys.executable, str(SERVER)], env={"TICKETS": "t1"})
            await host.do(
                SetServers(session=session.id, servers=[near, ClientServer(name="far", url=over_http)]), OWNER
            )
            for server, key in (("near", "t1"), ("far", "none")):
                turn = await calling(session, f".*{server}[^a-z].*add", {"a": 2, "b": 3})
                offered = [request.body.get("tools") for request in model.requests][-1]
                assert f", key {key}" in said(turn), (turn.error, offered)
            other = ClientServer(name="near", command=[sys.executable, str(SERVER)], env={"TICKETS": "t2"})
            await host.do(SetServers(session=session.id, servers=[other]), OWNER)
            turn = await calling(session, ".*near[^a-z].*add", {"a": 2, "b": 3})
            assert ", key t2" in said(turn), turn.error
