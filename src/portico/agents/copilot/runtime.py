"""The Copilot runtime as a supervised process, and the SDK's client on it.

The SDK could start the runtime itself, but then its exit would go unnoticed: no event arrives, and waiting for the end
of a turn hangs. So we start it like every other agent, read the port it prints, and let the SDK connect there with a
token that only the two know.
"""

import asyncio
import contextlib
import logging
import re
import socket
from collections.abc import Awaitable
from typing import TypeVar

from copilot import CopilotClient, RuntimeConnection
from copilot._jsonrpc import JsonRpcError, ProcessExitedError

from portico.agents.copilot.speed import drop_unheard, read_times_fast
from portico.agents.supervisor import Connected, Process
from portico.kernel.errors import AgentDied, AgentError

FAULTS = (JsonRpcError, ProcessExitedError, RuntimeError, ValueError, OSError)
"""What the SDK raises when the runtime refuses, has exited or sends invalid data."""

_PORT = re.compile(rb"listening on port (\d+)", re.IGNORECASE)
T = TypeVar("T")
logger = logging.getLogger("portico.agents.copilot")


class Runtime(Connected):
    def __init__(self, process: Process, client: CopilotClient) -> None:
        super().__init__(process)
        self.client = client

    @classmethod
    async def connect(cls, process: Process, token: str) -> "Runtime":
        port = await _announced(process)
        client = CopilotClient(connection=RuntimeConnection.for_uri(f"127.0.0.1:{port}", connection_token=token))
        runtime = cls(process, client)
        read_times_fast()
        await runtime.ask(client.start())
        drop_unheard(client)
        _hurry(client)
        return runtime

    async def ask(self, work: Awaitable[T]) -> T:
        """Return the result. Raises AgentDied as soon as the process exits, AgentError when the runtime refuses."""
        try:
            return await self.process.alive(work)
        except FAULTS as error:
            if isinstance(error, AgentError):
                raise
            if isinstance(error, ProcessExitedError | OSError):
                await asyncio.wait({self.process.gone}, timeout=0.3)
                raise AgentDied(self.process.reason) from error
            raise AgentError(f"Copilot: {error}") from error

    async def close(self) -> None:
        with contextlib.suppress(*FAULTS):  # the process is ended right after this in any case
            await self.client.force_stop()


def _hurry(client: CopilotClient) -> None:
    """The SDK writes each message in two pieces, and the kernel holds back the second until the first is confirmed:
    40 ms for every request. The SDK has no option for it, so this reaches for its socket; without it, it is just slow.
    """
    wire = getattr(getattr(client, "_process", None), "_socket", None)
    if isinstance(wire, socket.socket):
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    else:
        logger.debug("the SDK's socket is not where it was: every request waits a little")


async def _announced(process: Process) -> int:
    """Read the output until it contains the port. Later output is read too, so that the pipe never fills."""
    while line := await process.reader.readline():
        if found := _PORT.search(line):
            return int(found[1])
    await asyncio.wait({process.gone}, timeout=1.0)
    raise AgentDied(process.reason)
