"""`portico mcp`: Portico as an MCP server on standard input and output, for programs that start their servers."""

import asyncio
import logging
import sys

from portico.cli.output import HomeOption, run
from portico.client import Client


def mcp(home: HomeOption = None) -> None:
    """Serve a program that speaks the Model Context Protocol, with the sessions of the running host.

    Programs start this command themselves. With PORTICO_TOKEN (or --token) it has the tools of that token.

    Example: portico mcp
    """
    from portico.client.mcp import McpBridge  # late: no other verb speaks it

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")

    def write(line: bytes) -> None:
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()

    async def serve() -> None:
        async with Client.local(home) as client:
            await client.about()  # fail early, so that the program can report that no host is running
            await McpBridge(client, write).run(lambda: asyncio.to_thread(sys.stdin.buffer.readline))

    run(serve())
