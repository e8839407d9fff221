"""The MCP door, `/mcp`: Portico as an MCP server over streamable HTTP, so that agents can control agents.

It only translates and contains no rules. The scopes of a token allow the same actions as in other doors.
"""

from starlette.requests import Request
from starlette.responses import Response

from portico import mcp as protocol
from portico.doors.app import App
from portico.doors.door import Door
from portico.doors.mcp.tools import HostTools
from portico.doors.route import Route, caller
from portico.events import Json


class McpDoor(Door):
    def __init__(self, app: App) -> None:
        super().__init__(app)
        self.routes = [
            Route(
                "/mcp",
                self._answer,
                "read",
                ("POST",),
                "Model Context Protocol: tools that drive this host.",
                limited=True,
                doc={"body": Json, "answer": (Json, list[Json]), "others": {202: None}},
            )
        ]

    async def _answer(self, request: Request) -> Response:
        reply = await protocol.answer(await request.body(), HostTools(self.app, caller(request)))
        if reply is None:
            return Response(status_code=202)
        return Response(reply, media_type="application/json")
