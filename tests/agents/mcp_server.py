"""A real MCP server, made with the official SDK: on stdio, or (with `http`) behind an address that it prints.

`python mcp_server.py [http]`
"""

import asyncio
import os
import socket
import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

server = MCPServer("tickets")


class Colour(BaseModel):
    colour: str


@server.tool()
async def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return f"{a + b} in {os.getcwd()}, key {os.environ.get('TICKETS', 'none')}"


@server.tool()
async def fail() -> str:
    """Always fails."""
    raise ToolError("no such ticket")


@server.tool()
async def slow(ctx: Context) -> str:
    """Tells how far it is, and never ends."""
    await ctx.report_progress(1, 2, "half way")
    await asyncio.sleep(600)
    return "never"


@server.tool()
async def paint(ctx: Context) -> str:
    """Asks a person."""
    answer = await ctx.elicit("Which colour?", Colour)
    return f"{answer.action}: {answer.data.colour if answer.action == 'accept' else '-'}"


@server.tool()
async def die() -> str:
    """Ends the server in the middle of the call."""
    os._exit(3)


async def over_http(stateless: bool) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    app = server.streamable_http_app(stateless_http=stateless, json_response=stateless)
    await uvicorn.Server(uvicorn.Config(app, log_level="error")).serve([listening])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(over_http(sys.argv[1] == "stateless"))
    else:
        server.run("stdio")
