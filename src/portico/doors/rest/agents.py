"""Agents: the installed ones, known ones that are not installed, and connecting an agent or model from a page."""

from msgspec import Struct
from starlette.requests import Request

from portico.agents.suggestions import KnownAgent, not_installed
from portico.kernel.agent import AgentInfo, Check
from portico.server.app import App
from portico.server.body import EmptyBody, read_as
from portico.server.route import Table
from portico.server.routes import Routes


class Agents(Struct):
    agents: list[AgentInfo]
    default: str | None
    """The agent that is used if none is specified."""
    known: list[KnownAgent]
    """Known agents that are not installed."""


class FoundAgents(Struct):
    added: list[str]
    """Ids of the new agents."""


def table(app: App) -> Table:
    host, read = app.host, Routes(app)

    @read("/v1/agents", "read", "Agents and models, with what is missing.")
    async def agents(request: Request) -> Agents:
        found = await host.describe()
        return Agents(found, host.readiness.likely(found), not_installed(host.agents))

    summary = "Start an agent and speak its first handshake."

    @read("/v1/agents/{id}/check", "drive", summary, methods=("POST",), body=EmptyBody, errors=["not_found"])
    async def check(request: Request) -> Check:
        await read_as(request, EmptyBody)
        return await host.readiness.check(request.path_params["id"])

    summary = "Look for agents again: on the PATH and in the settings."

    @read("/v1/agents/find", "admin", summary, methods=("POST",), body=EmptyBody)
    async def find(request: Request) -> FoundAgents:
        await read_as(request, EmptyBody)
        return FoundAgents(app.find_agents())

    return read.table
