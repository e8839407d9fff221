"""Serves one editor on standard input and output."""

from acp.stdio import stdio_streams

from portico.client import Client
from portico.client.acp.agent import HostAgent
from portico.client.acp.connection import EditorConnection

LINE_BYTES = 50 * 1024 * 1024
"""The longest line that an editor may send, as in the official SDKs: pictures are inside."""


async def serve_stdio(client: Client, agent: str | None = None, model: str | None = None) -> None:
    """Return when the editor closes its end. Turns continue in the host."""
    reader, writer = await stdio_streams(limit=LINE_BYTES)
    served = HostAgent(client, agent, model)
    connection = EditorConnection(reader, writer, served.handle)
    served.connect(connection)
    try:
        await connection.serve()
    finally:
        await served.close()  # first: a prompt that is cancelled after this does not cancel its turn
        await connection.close()
