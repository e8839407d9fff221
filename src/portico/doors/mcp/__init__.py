"""The MCP door, `/mcp`: Portico as a server of tools over streamable HTTP, so that an agent can drive agents.

It translates and decides nothing. A caller can do here what its token's scopes allow elsewhere.
"""

from starlette.requests import Request
from starlette.responses import Response

from portico import mcp as protocol
from portico.automation.automations import Automations
from portico.doors.app import App
from portico.doors.mcp.tools import HostTools
from portico.doors.route import Route, Table, caller
from portico.events import Json
from portico.jobs.jobs import Jobs


def mcp(app: App, jobs: Jobs | None = None, automations: Automations | None = None) -> Table:
    async def answer(request: Request) -> Response:
        reply = await protocol.answer(await request.body(), HostTools(app, jobs, caller(request), automations))
        if reply is None:
            return Response(status_code=202)
        return Response(reply, media_type="application/json")

    return [
        Route(
            "/mcp",
            answer,
            "read",
            ("POST",),
            "Model Context Protocol: tools that drive this host.",
            limited=True,
            doc={"body": Json, "answer": (Json, list[Json]), "others": {202: None}},
        )
    ]
