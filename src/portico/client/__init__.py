"""The Python client: async, typed, reconnecting from its cursor. The command line and the tests use it.

    async with Client.local() as portico:
        session = await portico.start(agent="demo", cwd="/tmp")
        async for record in session.send("read README.md"):
            print(record.event)

It speaks the REST door (`/v1`) and imports nothing of the host but its shapes (events, state, agent info).
"""

from portico.client.client import Client, RemoteSession
from portico.client.record import RemoteRecord

__all__ = ["Client", "RemoteRecord", "RemoteSession"]
