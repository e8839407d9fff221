"""Lists of sessions that were started in an agent's own program. `session.adopt` adopts one."""

from starlette.requests import Request

from portico.features.native.commands import FindSessions, FoundPage, FoundSessions
from portico.server.app import App
from portico.server.body import identified_caller
from portico.server.route import Param, Table
from portico.server.routes import Routes


def table(app: App) -> Table:
    read = Routes(app)
    query: dict[str, str | Param] = {"cwd": "only sessions of this folder", "cursor": "`next` of the page before"}
    summary = "Sessions that were started in the agent's own program and are not adopted. Starts the agent if needed."

    @read("/v1/agents/{id}/native-sessions", "drive", summary, query=query, codes=["not_found"])
    async def of_agent(request: Request) -> FoundPage:
        asked = request.query_params
        command = FindSessions(agent=request.path_params["id"], cwd=asked.get("cwd"), cursor=asked.get("cursor"))
        found: FoundSessions = await app.host.do(command, identified_caller(request))
        return found.agents[0]

    summary = "The same of all agents: the first page of each."
    query = {"cwd": "only sessions of this folder", "start": "`false`: only what is cached, without starting agents"}

    @read("/v1/native-sessions", "drive", summary, query=query)
    async def of_all(request: Request) -> FoundSessions:
        asked = request.query_params
        command = FindSessions(cwd=asked.get("cwd"), start=asked.get("start") != "false")
        found: FoundSessions = await app.host.do(command, identified_caller(request))
        return found

    return read.table
