"""The built-in agent in a served host, with an MCP server of the test behind an address."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route

from portico.agents.agent import AgentContext
from portico.agents.loop.agent import loop
from portico.testing.model import ModelRule, ModelServer, Script, ScriptedCall, Step
from tests.doors.ahp.conftest import Served


class _Uvicorn(uvicorn.Server):
    def install_signal_handlers(self) -> None:
        pass


@asynccontextmanager
async def serving(*routes: Route) -> AsyncIterator[str]:
    """The address of a server with these routes."""
    server = _Uvicorn(uvicorn.Config(Starlette(routes=list(routes)), port=0, lifespan="off", log_config=None))
    running = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110  (uvicorn tells nobody)
        await asyncio.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await running


@asynccontextmanager
async def with_loop(served: Served, mcp_url: str, tool: str) -> AsyncIterator[ModelServer]:
    """The built-in agent, whose model uses one tool of the server `tickets` and is done."""
    call = Step(calls=[ScriptedCall(name=f"tickets__{tool}", args={})])
    done = Step(calls=[ScriptedCall(name="finish", args={"finalSummary": "Done."})])
    async with ModelServer(Script(models=["alpha"], rules=[ModelRule(steps=[call, done])])) as model:
        home = served.folder / "agent"
        home.mkdir()
        (home / "settings.toml").write_text('[agents.loop]\nretries = 0\nprotocol = "tools"\n')
        [agent] = loop(AgentContext(home, {"mcp": {"tickets": {"url": mcp_url}}}))
        agent._environ = {"OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": "k"}  # type: ignore[attr-defined]
        served.host.agents["loop"] = agent
        await served.broker.describe_agents()
        try:
            yield model
        finally:
            await agent.close()
