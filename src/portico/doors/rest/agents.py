"""Agents: the installed ones, known ones that are not installed, and connecting an agent or model from a page."""

from urllib.parse import urlsplit

from msgspec import Struct
from starlette.requests import Request

from portico.agents.suggestions import KnownAgent, not_installed
from portico.doors.app import App
from portico.doors.body import EmptyBody, read_as
from portico.doors.route import Table
from portico.doors.routes import Routes
from portico.errors import BadRequest
from portico.host.agent import AgentInfo, Check
from portico.settings_load import load

LOOP = "loop"
"""The built-in agent, which works with any model endpoint."""


class Agents(Struct):
    agents: list[AgentInfo]
    default: str | None
    """The agent that is used if none is specified."""
    known: list[KnownAgent]
    """Known agents that are not installed."""


class FoundAgents(Struct):
    added: list[str]
    """Ids of the new agents."""


class ModelBody(Struct, forbid_unknown_fields=True):
    base_url: str
    """The address of an endpoint that speaks OpenAI's chat completions, such as `https://models.example.org/v1`."""
    api_key: str = ""


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

    summary = "Connect the built-in agent to a model: an address and a key."

    @read("/v1/agents/loop/model", "admin", summary, methods=("POST",), body=ModelBody, errors=["conflict"])
    async def model(request: Request) -> Check:
        from portico.settings_edit import add_table  # late import: the parser is not needed at start

        body = await read_as(request, ModelBody)
        address = urlsplit(body.base_url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise BadRequest("'base_url' is an address such as https://models.example.org/v1.", field="base_url")
        values = {"base_url": body.base_url} | ({"api_key": body.api_key} if body.api_key else {})
        known = load(app.home.settings_path).settings.agents.get(LOOP, {})
        name = address.hostname.replace(".", "-")
        add_table(app.home.settings_path, ("agents", LOOP, "endpoints", name) if known else ("agents", LOOP), values)
        return await host.readiness.check(LOOP)

    return read.table
